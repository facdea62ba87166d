#include "edge/launch/shim/family.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace takt::shim {
namespace {

Blob read_of(const char* folder_path, const char* name) {
  const int folder = open(folder_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return Blob{};
  const Blob blob = read_whole(folder, name, record_bytes_max * 16);
  close(folder);
  return blob;
}

// The single number of a file such as memory.peak, or -1.
std::int64_t number_of(const char* folder, const char* name) {
  if (*folder == '\0') return -1;
  const Blob blob = read_of(folder, name);
  std::string_view text = blob.text();
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  std::int64_t number = -1;
  if (!parse_number(text, number)) number = -1;
  std::free(blob.data);
  return number;
}

// The number behind `key` in a file of "key number" lines such as memory.events, or -1.
std::int64_t keyed_number_of(const char* folder, const char* name, std::string_view key) {
  if (*folder == '\0') return -1;
  const Blob blob = read_of(folder, name);
  std::string_view rest = blob.text();
  std::int64_t found = -1;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.size() > key.size() && line.substr(0, key.size()) == key && line[key.size()] == ' ') {
      if (!parse_number(line.substr(key.size() + 1), found)) found = -1;
    }
  }
  std::free(blob.data);
  return found;
}

// Returns 0 or errno.
int write_into(const char* folder_path, const char* name, std::string_view text) {
  const int folder = open(folder_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return errno;
  const int fd = openat(folder, name, O_WRONLY | O_CLOEXEC);
  const int error = fd < 0 ? errno : write_all(fd, text);
  if (fd >= 0) close(fd);
  close(folder);
  return error;
}

std::int64_t microseconds(const timeval& time) {
  return std::int64_t{time.tv_sec} * 1'000'000 + time.tv_usec;
}

}  // namespace

pid_t fork_into(const char* folder, bool& joined) {
  joined = false;
  const int fd =
      folder == nullptr || *folder == '\0' ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) {
    clone_args arguments{};
    arguments.flags = CLONE_INTO_CGROUP;
    arguments.exit_signal = SIGCHLD;
    arguments.cgroup = static_cast<std::uint64_t>(fd);
    // Without a stack of its own the child goes on here, on a copy of ours, as after fork().
    const pid_t child = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
    close(fd);
    if (child >= 0) {
      joined = true;
      return child;
    }
  }
  return fork();
}

bool is_v1(const char* folder) {
  const int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool found = faccessat(fd, "tasks", F_OK, 0) == 0;
  close(fd);
  return found;
}

int join_v1(const char* folder) { return write_into(folder, "tasks", "0"); }

int move_into(const char* folder, pid_t pid) {
  char number[24];
  const int size = std::snprintf(number, sizeof number, "%d", pid);
  return write_into(folder, "cgroup.procs", {number, static_cast<std::size_t>(size)});
}

void add_family(const Spec& spec, PidList& pids) {
  const ProcessTable table;
  table.add_descendants(getpid(), pids);
  if (*spec.members != '\0') add_members(spec.members, pids);
}

void ask_family_to_end(const Spec& spec) {
  PidList pids;
  add_family(spec, pids);
  for (const pid_t pid : pids) {
    kill(pid, SIGTERM);
    kill(pid, SIGCONT);
  }
}

void kill_family(const Spec& spec) {
  if (spec.kill_file) (void)write_into(spec.members, "cgroup.kill", "1");
  // Stopped first: a family that forks faster than it is read would outrun the killing.
  std::size_t known = 0;
  PidList pids;
  for (int round = 0; round < 20; ++round) {
    add_family(spec, pids);
    if (pids.size() == known) break;
    known = pids.size();
    for (const pid_t pid : pids) kill(pid, SIGSTOP);
  }
  for (const pid_t pid : pids) kill(pid, SIGKILL);
}

bool cgroup_is_empty(const Spec& spec) {
  if (*spec.members == '\0') return true;
  PidList pids;
  add_members(spec.members, pids);
  return pids.size() == 0;
}

Usage read_usage(const Spec& spec) {
  Usage usage;
  rusage waited_for;
  if (getrusage(RUSAGE_CHILDREN, &waited_for) == 0) {
    usage.user_us = microseconds(waited_for.ru_utime);
    usage.system_us = microseconds(waited_for.ru_stime);
  }
  const std::int64_t v2 = keyed_number_of(spec.cpu_v2, "cpu.stat", "usage_usec");
  const std::int64_t v1_ns = number_of(spec.cpu_v1, "cpuacct.usage");
  usage.cpu_us = v2 >= 0 ? v2 : v1_ns >= 0 ? v1_ns / 1000 : usage.user_us + usage.system_us;
  usage.memory_peak = *spec.memory_v2 != '\0'
                          ? number_of(spec.memory_v2, "memory.peak")
                          : number_of(spec.memory_v1, "memory.max_usage_in_bytes");
  usage.oom = keyed_number_of(spec.memory_v2, "memory.events", "oom_kill") > 0 ||
              keyed_number_of(spec.memory_v1, "memory.oom_control", "oom_kill") > 0;
  return usage;
}

void remove_cgroups(const Spec& spec) {
  for (int i = 0; i < spec.cgroups_size; ++i) rmdir(spec.cgroups[i]);
}

}  // namespace takt::shim
