#include "edge/launch/shim/supervision.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "core/base/fault_point.h"
#include "edge/launch/shim/family.h"
#include "edge/launch/shim/processes.h"

namespace takt::shim {
namespace {

constexpr std::int64_t default_grace_us = 10'000'000;
// Less than the launcher's patience with the answer.
constexpr int join_wait_ms = 8000;
// start() of the launcher waits this long for the news that exec has worked.
constexpr int exec_wait_ms = 50;
// Between two rounds of KILL. A process in the driver (state D) takes its time.
constexpr std::int64_t kill_pause_us = 100'000;
// A foreign process in our cgroup raises no SIGCHLD: look again.
constexpr int look_again_ms = 20;

std::int64_t clock_us(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}
std::int64_t monotonic_us() { return clock_us(CLOCK_MONOTONIC); }
std::int64_t wall_us() { return clock_us(CLOCK_REALTIME); }

}  // namespace

Supervision::~Supervision() {
  if (signal_fd_ >= 0) close(signal_fd_);
  if (report_fd_ >= 0) close(report_fd_);
  free_spec(spec_);
}

Begin Supervision::begin(Sentence& why) {
  const char* const damage = read_spec(folder_, spec_);
  if (damage != nullptr) return refuse(damage, why);
  const int no_room = reserve_exit_record(folder_);
  if (no_room != 0) {
    std::snprintf(why.text, sizeof why.text,
                  "the record folder cannot be written (%s): make room there or mount it writable",
                  std::strerror(no_room));
    return Begin::failed;
  }
  fault_point("shim.after-reserve");
  if (stop_requested()) return refuse("stopped before it was started", why);
  if (!open_logs(why)) return refuse(why.text, why);
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGCHLD);
  sigaddset(&wanted, SIGTERM);
  signal_fd_ = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
  int release_fd = -1;
  if (signal_fd_ < 0 || !fork_job(release_fd, why)) {
    if (signal_fd_ < 0) std::snprintf(why.text, sizeof why.text, "%s", std::strerror(errno));
    return refuse(why.text, why);
  }
  if (!await_cgroups(why)) {
    abandon_job(release_fd);
    return refuse(why.text, why);
  }
  fault_point("shim.before-write-job");
  const int unwritten = write_job_record(job_);
  fault_point("shim.after-write-job");
  if (unwritten != 0) {
    abandon_job(release_fd);
    std::snprintf(why.text, sizeof why.text,
                  "the job's record cannot be written (%s): make room in the records folder",
                  std::strerror(unwritten));
    return refuse(why.text, why);
  }
  // From here on the job is known. Who asked for a stop before could not find us: look once more.
  if (stop_requested()) on_stop_request();
  fault_point("shim.before-release");
  (void)write_all(release_fd, "g");
  fault_point("shim.after-release");
  close(release_fd);
  logs_.begin(spec_.log_bytes_max, monotonic_us());
  await_exec();
  return Begin::started;
}

// Puts on record that there will be no job.
Begin Supervision::refuse(const char* sentence, Sentence& why) {
  if (sentence != why.text) std::snprintf(why.text, sizeof why.text, "%s", sentence);
  failure_ = why;
  ended_us_ = wall_us();
  const int error = write_exit(true);
  remove_cgroups(spec_);
  return error == 0 ? Begin::recorded : Begin::failed;
}

// The server's own files are opened here, since what is bounded is what the shim itself has opened.
bool Supervision::open_logs(Sentence& why) {
  log_fds_[0] = open_log(spec_, spec_.stdout_path, why);
  if (log_fds_[0] == -1) return false;
  const bool same = log_fds_[0] >= 0 && std::strcmp(spec_.stdout_path, spec_.stderr_path) == 0;
  log_fds_[1] =
      same ? fcntl(log_fds_[0], F_DUPFD_CLOEXEC, 0) : open_log(spec_, spec_.stderr_path, why);
  if (log_fds_[1] == -1) return false;
  if (log_fds_[0] >= 0) logs_.add(log_fds_[0]);
  if (log_fds_[1] >= 0 && !same) logs_.add(log_fds_[1]);
  return true;
}

bool Supervision::fork_job(int& release_fd, Sentence& why) {
  int release[2];
  int report[2];
  if (pipe2(release, O_CLOEXEC) != 0 || pipe2(report, O_CLOEXEC | O_NONBLOCK) != 0) {
    std::snprintf(why.text, sizeof why.text, "no pipe for the job: %s", std::strerror(errno));
    return false;
  }
  const char* v2 = nullptr;
  for (int i = 0; i < spec_.cgroups_size; ++i) {
    if (!is_v1(spec_.cgroups[i])) v2 = spec_.cgroups[i];
  }
  bool joined = false;
  fault_point("shim.before-fork");
  const pid_t child = fork_into(v2, joined);
  if (child < 0) {
    std::snprintf(why.text, sizeof why.text, "no process for the job (%s): end some on this host",
                  std::strerror(errno));
    return false;
  }
  if (child == 0) {
    if (log_fds_[0] >= 0) dup2(log_fds_[0], STDOUT_FILENO);
    if (log_fds_[1] >= 0) dup2(log_fds_[1], STDERR_FILENO);
    // The lock must go with the shim, and the answer to the launcher come from it.
    // The pipes' ends were opened last: all below them goes, and the two ends that are the shim's.
    syscall(SYS_close_range, static_cast<unsigned>(ready_fd), static_cast<unsigned>(release[0] - 1),
            0U);
    close(release[1]);
    close(report[0]);
    become_job(spec_, joined ? v2 : nullptr, release[0], report[1]);
  }
  fault_point("shim.after-fork");
  for (const int fd : log_fds_) {
    if (fd >= 0) close(fd);
  }
  close(release[0]);
  close(report[1]);
  job_ = child;
  release_fd = release[1];
  report_fd_ = report[0];
  return true;
}

// Without the byte the child ends by itself; one that hangs before it does not.
void Supervision::abandon_job(int release_fd) {
  close(release_fd);
  kill(job_, SIGKILL);
  while (waitpid(job_, &status_, 0) < 0 && errno == EINTR) {
  }
  job_ = 0;
}

// The child says that it is in its cgroups, or why not.
bool Supervision::await_cgroups(Sentence& why) {
  pollfd wait{report_fd_, POLLIN, 0};
  if (poll(&wait, 1, join_wait_ms) <= 0) {
    std::snprintf(why.text, sizeof why.text,
                  "the job's cgroups could not be joined within %d s: the host hangs; try again",
                  join_wait_ms / 1000);
    return false;
  }
  const ssize_t size = read(report_fd_, why.text, sizeof why.text - 1);
  why.text[std::max<ssize_t>(size, 0)] = '\0';
  if (std::strcmp(why.text, joined_word) == 0) return true;
  if (size <= 0) std::snprintf(why.text, sizeof why.text, "the job's process ended too early");
  return false;
}

int Supervision::write_job_record(pid_t job) const {
  LineWriter line;
  line.add(job_head, protocol_version);
  line.add("attempt", spec_.attempt);
  line.add("generation", spec_.generation);
  line.add("pid", std::int64_t{job});
  line.add("pid_start", start_of(job));
  line.add("boot_id", read_boot_id().text);
  line.add("shim_pid", std::int64_t{getpid()});
  line.add("shim_start", start_of(getpid()));
  for (int i = 0; i < spec_.cgroups_size; ++i) line.add("cgroup", spec_.cgroups[i]);
  line.add("members", spec_.members);
  line.add("started_us", wall_us());
  if (!line.fits()) return ENAMETOOLONG;
  return write_record(folder_, job_file, "job.new", line.text());
}

void Supervision::await_exec() {
  pollfd wait{report_fd_, POLLIN, 0};
  if (poll(&wait, 1, exec_wait_ms) > 0) read_report();
}

// The pipe closes at exec; what comes before is the sentence why there was none.
void Supervision::read_report() {
  Sentence said;
  const ssize_t size = read(report_fd_, said.text, sizeof said.text - 1);
  if (size < 0) return;
  said.text[size] = '\0';
  if (size > 0) failure_ = said;
  close(report_fd_);
  report_fd_ = -1;
}

bool Supervision::stop_requested() const {
  return faccessat(folder_, stop_file, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void Supervision::on_stop_request() {
  std::int64_t grace_us = default_grace_us;
  const Blob blob = read_whole(folder_, stop_file, record_bytes_max);
  FieldReader reader(blob.text(), record_end);
  Field field;
  while (reader.next(field)) {
    if (field.name == "grace_us" && !parse_number(field.value, grace_us))
      grace_us = default_grace_us;
  }
  std::free(blob.data);
  grace_us = std::max<std::int64_t>(grace_us, 0);
  const std::int64_t kill_at = monotonic_us() + grace_us;
  switch (phase_) {
    case Phase::running:
      kill_at_ = kill_at;
      phase_ = Phase::asked_to_end;
      ask_family_to_end(spec_);
      break;
    case Phase::asked_to_end: kill_at_ = std::min(kill_at_, kill_at); break;
    case Phase::killing: break;
  }
}

void Supervision::read_signals() {
  signalfd_siginfo info;
  bool child = false;
  while (read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_signo == static_cast<std::uint32_t>(SIGTERM)) on_stop_request();
    if (info.ssi_signo == static_cast<std::uint32_t>(SIGCHLD)) child = true;
  }
  if (child) reap();
}

void Supervision::reap() {
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid == 0) break;
    if (pid < 0) {
      if (errno == EINTR) continue;
      no_children_ = true;  // ECHILD: as subreaper this means that no descendant is left
      break;
    }
    if (pid == job_) {
      job_ended_ = true;
      status_ = status;
      ended_us_ = wall_us();
      if (report_fd_ >= 0) read_report();
    }
  }
}

// What the clock and the state of things ask for.
void Supervision::advance() {
  const std::int64_t now = monotonic_us();
  if (job_ended_ && phase_ == Phase::running && !(no_children_ && cgroup_is_empty(spec_))) {
    phase_ = Phase::asked_to_end;
    kill_at_ = now + spec_.leftover_grace_us;
    ask_family_to_end(spec_);
  }
  if (phase_ == Phase::asked_to_end && now >= kill_at_) {
    phase_ = Phase::killing;
    killing_since_ = now;
  }
  if (phase_ == Phase::killing) kill_again(now);
}

void Supervision::kill_again(std::int64_t now) {
  kill_family(spec_);
  reap();
  if (exit_written_ || now - killing_since_ <= spec_.kill_patience_us) return;
  if (!job_ended_) {
    // What will end it as soon as the kernel lets it go; then the record is written once more.
    status_ = SIGKILL;
    ended_us_ = wall_us();
  }
  exit_written_ = write_exit(false) == 0;
}

int Supervision::timeout_ms() const {
  if (phase_ == Phase::killing) return static_cast<int>(kill_pause_us / 1000);
  if (phase_ == Phase::running) return -1;
  const std::int64_t left_ms = (kill_at_ - monotonic_us()) / 1000 + 1;
  // Without children left only the cgroup is waited for.
  const std::int64_t most_ms = no_children_ ? look_again_ms : 3'600'000;
  return static_cast<int>(std::clamp<std::int64_t>(left_ms, 0, most_ms));
}

void Supervision::wait_for_end() {
  for (;;) {
    advance();
    if (no_children_ && cgroup_is_empty(spec_)) break;
    // A negative descriptor is passed over.
    pollfd events[3] = {{signal_fd_, POLLIN, 0}, {report_fd_, POLLIN, 0}, {logs_.fd(), POLLIN, 0}};
    const int ready = poll(events, 3, logs_.timeout_ms(timeout_ms(), monotonic_us()));
    logs_.check(ready > 0 && events[2].revents != 0, monotonic_us());
    if (ready <= 0) continue;
    if (events[1].revents != 0 && report_fd_ >= 0) read_report();
    if (events[0].revents != 0) read_signals();
  }
  logs_.finish();
  (void)write_exit(true);
  fault_point("shim.before-remove-cgroups");
  remove_cgroups(spec_);
  fault_point("shim.after-remove-cgroups");
}

int Supervision::write_exit(bool processes_gone) const {
  const Usage usage = read_usage(spec_);
  LineWriter line;
  line.add(exit_head, protocol_version);
  line.add("attempt", spec_.attempt);
  line.add("generation", spec_.generation);
  if (failure_.text[0] != '\0') {
    line.add("cause", "start_failed");
    line.add("message", failure_.text);
  } else if (WIFSIGNALED(status_)) {
    line.add("cause", "signalled");
    line.add("signal", std::int64_t{WTERMSIG(status_)});
  } else {
    line.add("cause", "exited");
    line.add("code", std::int64_t{WEXITSTATUS(status_)});
  }
  line.add("oom", std::int64_t{usage.oom});
  line.add("cpu_us", usage.cpu_us);
  line.add("user_us", usage.user_us);
  line.add("system_us", usage.system_us);
  if (usage.memory_peak >= 0) line.add("memory_peak", usage.memory_peak);
  line.add("ended_us", ended_us_);
  line.add("processes_gone", std::int64_t{processes_gone});
  fault_point("shim.before-write-exit");
  const int error = write_exit_record(folder_, line.text());
  fault_point("shim.after-write-exit");
  return error;
}

}  // namespace takt::shim
