#include "edge/launch/launcher.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "core/base/fault_point.h"
#include "edge/launch/adopted_record.h"
#include "edge/launch/cgroup_tree.h"
#include "edge/launch/record_folder.h"
#include "edge/launch/record_watch.h"
#include "edge/launch/shim/processes.h"
#include "edge/launch/shim_process.h"

namespace takt::launch {
namespace {

namespace fs = std::filesystem;

// With shims that are silent the host hangs, and the agent has more to do than to wait for each.
constexpr Duration answer_wait_min = milliseconds(100);
// A shim that has written its exit record needs a moment for its cgroups.
constexpr Duration lock_wait_max = seconds(1);
// Records on their way out; not an attempt's name, so nobody else looks at them.
constexpr char gone_suffix[] = ".gone";

bool is_folder(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

Error about(const std::string& place, ErrorKind kind, const std::string& rest) {
  return Error{kind, fmt::format("{}: {}", place, rest)};
}

std::optional<Error> refuse_records_dir(const std::string& dir) {
  if (dir.empty() || dir[0] != '/') {
    return about("records folder '" + dir + "'", ErrorKind::invalid, "give an absolute path");
  }
  std::error_code error;
  fs::create_directories(fs::path(dir).parent_path(), error);
  if (mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) {
    return about("records folder " + dir, ErrorKind::io,
                 fmt::format("cannot be made ({}): choose another", std::strerror(errno)));
  }
  struct stat status {};
  if (stat(dir.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    return about("records folder " + dir, ErrorKind::io, "not a folder: choose another");
  }
  // Who can write here can have the agent run anything as anybody.
  if (status.st_uid != geteuid() || (status.st_mode & 022) != 0) {
    return about(
        "records folder " + dir, ErrorKind::forbidden,
        fmt::format("must belong to uid {} and be writable for it alone: chown and chmod it",
                    geteuid()));
  }
  // A read-only file system denies root too; access() knows.
  if (access(dir.c_str(), W_OK | X_OK) != 0) {
    return about("records folder " + dir, ErrorKind::io,
                 fmt::format("cannot be written ({}): mount it writable or choose another",
                             std::strerror(errno)));
  }
  return std::nullopt;
}

void finish_removals(const std::string& records_dir) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(records_dir, error)) {
    if (!entry.path().filename().string().ends_with(gone_suffix)) continue;
    (void)remove_spec(entry.path().string());
    fs::remove_all(entry.path(), error);
  }
}

// Why an order cannot be carried out here, or nothing.
std::optional<std::string> refuse_order(const control::LaunchOrder& order) {
  const auto absolute = [](const std::string& path) { return !path.empty() && path[0] == '/'; };
  if (order.argv.empty() || order.argv[0].empty()) return "no program is named: say what to run";
  if (!absolute(order.workdir)) {
    return fmt::format("workdir '{}': give an absolute path", order.workdir);
  }
  for (const std::string& path : {order.stdout_path, order.stderr_path}) {
    if (!path.empty() && !absolute(path)) {
      return fmt::format("output file '{}': give an absolute path", path);
    }
  }
  if (geteuid() != 0 && order.identity.uid != geteuid()) {
    return fmt::format(
        "user {} (uid {}): this agent runs as uid {} and can start jobs of that user only; run it "
        "as "
        "root to serve several users",
        order.identity.user, order.identity.uid, geteuid());
  }
  return std::nullopt;
}

// Two servers on one host number their jobs alike. Without a mark of its own in the name, one could
// remove what the other has just made under the same one.
std::string cgroup_name(const std::string& records_dir, AttemptId attempt) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const char c : records_dir) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return fmt::format("{}-{:08x}", to_string(attempt), hash >> 32);
}

}  // namespace

Launcher::Launcher(LauncherOptions options, std::unique_ptr<CgroupTree> cgroups,
                   std::unique_ptr<RecordWatch> watch)
    : options_(std::move(options)),
      cgroups_(std::move(cgroups)),
      watch_(std::move(watch)),
      boot_id_(shim::read_boot_id().text) {}

Launcher::~Launcher() = default;

Result<std::unique_ptr<Launcher>> Launcher::open(LauncherOptions options) {
  if (auto refused = refuse_records_dir(options.records_dir)) {
    return tl::make_unexpected(std::move(*refused));
  }
  if (access(options.shim_path.c_str(), X_OK) != 0 || options.shim_path[0] != '/') {
    return fail(
        ErrorKind::invalid,
        fmt::format("takt-shim at '{}': not an executable file with an absolute path: install it "
                    "there or say where it is",
                    options.shim_path));
  }
  if (!options.logs_dir.empty()) {
    std::error_code error;
    options.logs_dir = fs::canonical(options.logs_dir, error).string();
    if (error) {
      return fail(ErrorKind::invalid,
                  fmt::format("folder of output files: {}: create it", error.message()));
    }
  }
  auto watch = RecordWatch::open(options.records_dir);
  if (!watch) return tl::make_unexpected(watch.error());
  finish_removals(options.records_dir);
  CgroupTree::Options cgroup_options;
  cgroup_options.parent = options.cgroup_parent;
  cgroup_options.enabled = options.use_cgroups;
  auto cgroups = CgroupTree::open(cgroup_options);
  return std::unique_ptr<Launcher>(
      new Launcher(std::move(options), std::move(cgroups), std::move(*watch)));
}

std::string Launcher::folder(AttemptId attempt) const {
  return options_.records_dir + "/" + to_string(attempt);
}

Result<void> Launcher::start(const control::LaunchOrder& order) {
  const std::string name = to_string(order.attempt);
  const std::string place = folder(order.attempt);
  if (parse_attempt_name(name) != order.attempt) {
    return fail(ErrorKind::invalid, "attempt " + name + ": job and attempt count from 1");
  }
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (!starting_.insert(order.attempt).second) return {};  // another thread is at it
  }
  const auto done = [&] {
    const std::lock_guard<std::mutex> guard(mutex_);
    starting_.erase(order.attempt);
  };
  const Result<void> result = begin(order, place);
  done();
  return result;
}

Result<void> Launcher::begin(const control::LaunchOrder& order, const std::string& place) {
  const auto known = [&]() -> std::optional<Result<void>> {
    const Adopted record = Adopted::read(place);
    if (!record.job && !record.exit) return std::nullopt;
    const bool unreadable = record.job && !record.job->damage.empty();
    if (record.generation() == order.generation || unreadable) return Result<void>{};
    return fail(
        ErrorKind::conflict,
        fmt::format("attempt {} is on record with generation {}, not {}: it is not started again; "
                    "ask for a new attempt",
                    to_string(order.attempt), record.generation(), order.generation));
  };
  if (auto answer = known()) return *answer;
  if (mkdir(place.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail(ErrorKind::io, fmt::format("record folder {}: cannot be made ({}): make room there "
                                           "or mount it writable",
                                           place, std::strerror(errno)));
  }
  fault_point("launcher.after-folder");
  watch_->watch_folder(place);
  {
    // A shim that an earlier agent sent may be on its way: it waits for the lock, or has it, or
    // finds all that is prepared here. Whichever shim has the lock first starts the job.
    int error = 0;
    const auto lock = RecordLock::try_take(place, &error);
    if (!lock && error == 0) {
      const std::lock_guard<std::mutex> guard(mutex_);
      undecided_.emplace(order.attempt, boottime_us() + options_.shim_patience.us);
      return {};
    }
    if (!lock) {
      return fail(ErrorKind::io,
                  fmt::format("record folder {}: its lock cannot be made ({}): make room there or "
                              "mount it writable",
                              place, std::strerror(error)));
    }
    if (auto answer = known()) return *answer;
    const auto prepared = prepare(order, place);
    if (!prepared) return prepared;
  }
  return run_shim(order, place);
}

// Puts all that the shim needs into the folder, whose lock is held. An order that cannot be carried
// out becomes an exit record; then there is no spec and no shim has anything to do.
Result<void> Launcher::prepare(const control::LaunchOrder& order, const std::string& place) {
  // The agent died between the cgroups and the shim: what it had made is made anew.
  const std::string cgroup = cgroup_name(options_.records_dir, order.attempt);
  for (const std::string& left : cgroups_->folders_of(cgroup)) (void)remove_cgroup(left);
  remove_spec_cgroups(place);
  const auto abandon = [&](const Error& error, const AttemptCgroups& made) -> Result<void> {
    for (const std::string& one : made.join) (void)remove_cgroup(one);
    auto recorded = write_exit(place, order.attempt,
                               outcome(order.generation, ExitCause::start_failed, error.message));
    (void)remove_spec(place);
    if (recorded) return {};
    std::error_code ignored;
    fs::remove_all(place, ignored);
    return recorded;
  };
  if (const auto refused = refuse_order(order)) {
    return abandon(Error{ErrorKind::invalid, *refused}, {});
  }
  const auto cgroups = cgroups_->create(cgroup, order.grant.memory);
  if (!cgroups) return abandon(cgroups.error(), {});
  fault_point("launcher.after-cgroups");
  SpecOptions spec;
  spec.switch_user = geteuid() == 0;
  spec.logs_dir = options_.logs_dir;
  spec.leftover_grace = options_.leftover_grace;
  spec.kill_patience = options_.kill_patience;
  const auto text = format_spec(order, *cgroups, spec);
  if (!text) return abandon(text.error(), *cgroups);
  const auto written = write_spec(place, *text);
  if (!written) return abandon(written.error(), *cgroups);
  return {};
}

Result<void> Launcher::run_shim(const control::LaunchOrder& order, const std::string& place) {
  if (read_exit_record(place)) return {};  // prepare() refused the order, or a stop came between
  reap_forkers();
  const ShimAnswer answer = start_shim(options_.shim_path, place, answer_patience());
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (answer.unreaped != 0) unreaped_.push_back(answer.unreaped);
    if (answer.kind == ShimAnswer::Kind::undecided) {
      undecided_[order.attempt] = boottime_us() + options_.shim_patience.us;
    }
  }
  if (answer.kind != ShimAnswer::Kind::failed) return {};
  // The shim is gone (its end of the pipe is closed). Did it get as far as a record? Did another?
  const auto lock = RecordLock::try_take(place);
  const Adopted record = Adopted::read(place);
  if (!lock || record.job || record.exit) return {};
  remove_spec_cgroups(place);
  const auto written = write_exit(
      place, order.attempt, outcome(order.generation, ExitCause::start_failed, answer.message));
  if (!written && !remove_spec(place)) return {};  // to be decided by the next start or stop
  return written;
}

Duration Launcher::answer_patience() {
  const std::lock_guard<std::mutex> guard(mutex_);
  return undecided_.empty() ? options_.answer_wait
                            : std::min(answer_wait_min, options_.answer_wait);
}

void Launcher::reap_forkers() {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::erase_if(unreaped_, [](std::int64_t pid) {
    return waitpid(static_cast<pid_t>(pid), nullptr, WNOHANG) != 0;
  });
}

Result<void> Launcher::stop(AttemptId attempt, Duration grace) {
  const std::string place = folder(attempt);
  if (!is_folder(place) || read_exit_record(place)) return {};
  grace.us = std::max<std::int64_t>(grace.us, 0);
  const StopRequest request{grace, boottime_us() + grace.us};
  const auto earlier = read_stop_request(place);
  Result<void> written;
  if (!earlier || request.deadline_us < earlier->deadline_us) {
    written = write_stop_request(place, request);
  }
  // A shim looks for the request after it has recorded its job, and we for the job after the
  // request: one of the two sees the other.
  const Adopted record = Adopted::read(place);
  if (record.exit) return {};
  if (!record.job) {
    const auto lock = RecordLock::try_take(place);
    if (!lock || read_job_record(place) || read_exit_record(place)) return written;
    const SpecSummary spec = read_spec_summary(place).value_or(SpecSummary{});
    const auto fenced = write_exit(
        place, attempt,
        outcome(spec.generation, ExitCause::start_failed, "stopped before it was started"));
    if (fenced) remove_spec_cgroups(place);
    return fenced;
  }
  // On a full disk the shim hears of the stop too, and takes its own idea of a grace.
  if (signal_process(record.job->shim_pid, record.job->shim_start, SIGTERM)) return {};
  if (shim_holds_lock(place) || read_exit_record(place)) return written;
  for (const std::int64_t pid : processes(record, nullptr)) {
    kill(static_cast<pid_t>(pid), SIGTERM);
    kill(static_cast<pid_t>(pid), SIGCONT);
  }
  return written;
}

bool Launcher::knows(AttemptId attempt) const { return is_folder(folder(attempt)); }

std::vector<std::string> Launcher::devices(AttemptId attempt) const {
  return read_spec_summary(folder(attempt)).value_or(SpecSummary{}).devices;
}

Result<void> Launcher::forget(AttemptId attempt) {
  const std::string place = folder(attempt);
  if (!is_folder(place)) return {};
  const auto refuse = [&](const char* why) {
    return fail(ErrorKind::conflict, fmt::format("attempt {}: {}", to_string(attempt), why));
  };
  const Adopted record = Adopted::read(place);
  if (!record.exit && !record.job) return refuse("has not ended: stop it first");
  if (!record.exit) return refuse("runs, or its outcome is unknown yet: stop it, or scan again");
  std::optional<RecordLock> lock;
  const std::int64_t deadline = boottime_us() + lock_wait_max.us;
  while (!lock.has_value()) {
    if (auto taken = RecordLock::try_take(place)) {
      lock.emplace(std::move(*taken));
    } else if (boottime_us() > deadline) {
      return refuse("its shim still waits for processes to end: stop it, or try again");
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  if (!processes(record, nullptr).empty())
    return refuse("processes of it still live: stop it, or try again");
  std::vector<std::string> cgroups = read_spec_summary(place).value_or(SpecSummary{}).cgroups;
  if (record.job)
    cgroups.insert(cgroups.end(), record.job->cgroups.begin(), record.job->cgroups.end());
  for (std::string& left : cgroups_->folders_of(cgroup_name(options_.records_dir, attempt)))
    cgroups.push_back(std::move(left));
  for (const std::string& cgroup : cgroups) {
    if (!remove_cgroup(cgroup)) return refuse("its cgroup cannot be removed yet: try again");
  }
  // Out of sight at once: a crash between leaves no half record that means something else. The
  // order goes first: a shim that is late finds nothing to start, whatever else is left.
  const std::string gone = place + gone_suffix;
  std::error_code error;
  fs::remove_all(gone, error);
  fault_point("launcher.before-remove");
  if (!remove_spec(place)) {
    return fail(ErrorKind::io, fmt::format("record folder {}: its spec cannot be removed: {}",
                                           place, std::strerror(errno)));
  }
  fault_point("launcher.after-remove-spec");
  if (rename(place.c_str(), gone.c_str()) != 0) {
    return fail(ErrorKind::io, fmt::format("record folder {}: cannot be removed: {}", place,
                                           std::strerror(errno)));
  }
  fault_point("launcher.before-delete");
  fs::remove_all(gone, error);
  fault_point("launcher.after-remove");
  const std::lock_guard<std::mutex> guard(mutex_);
  leftovers_.erase(attempt);
  return {};
}

int Launcher::event_fd() const { return watch_->fd(); }

std::vector<std::string> Launcher::notes() const {
  std::vector<std::string> notes = cgroups_->notes();
  if (geteuid() != 0) {
    notes.push_back(
        fmt::format("the agent is not root: it starts jobs of uid {} only; run it as root to serve "
                    "several users",
                    geteuid()));
  }
  const std::lock_guard<std::mutex> guard(mutex_);
  for (const auto& [attempt, until] : undecided_) {
    if (boottime_us() < until) continue;
    notes.push_back(
        fmt::format("attempt {}: its takt-shim is at work and gets no further: the host or a disk "
                    "hangs; until that is over the attempt is neither started nor given up",
                    to_string(attempt)));
  }
  return notes;
}

}  // namespace takt::launch
