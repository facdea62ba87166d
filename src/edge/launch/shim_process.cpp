#include "edge/launch/shim_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>

#include "core/base/fault_point.h"
#include "edge/launch/shim/processes.h"
#include "edge/launch/shim/protocol.h"

namespace takt::launch {
namespace {

// The shim forks once more and lets go: the process that is spawned here ends at once, if all is
// well. Returns 0 or errno.
int spawn_detached(const std::string& program, const std::string& folder, int answer_fd,
                   pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, answer_fd, shim::ready_fd);
  // Own process group and all signals blocked: a Ctrl-C meant for the agent does not reach it.
  sigset_t all;
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &all);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::string name = "takt-shim";
  std::string record = folder;
  std::array<char*, 3> argv = {name.data(), record.data(), nullptr};
  std::array<char*, 1> env = {nullptr};
  const int error =
      posix_spawn(&pid, program.c_str(), &actions, &attributes, argv.data(), env.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error;
}

// True when it has ended. A program on a disk that hangs does not: nobody may wait for it for ever.
bool reap_within(pid_t pid, int patience_ms) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0U));
  if (fd >= 0) {
    pollfd wait{fd, POLLIN, 0};
    (void)poll(&wait, 1, patience_ms);
    close(fd);
  }
  int status = 0;
  return waitpid(pid, &status, WNOHANG) != 0;
}

// All that comes until the other end closes. False: the deadline passed before.
bool read_answer(int fd, Duration deadline, std::string& text) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(deadline.us);
  std::array<char, 2048> piece;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd wait{fd, POLLIN, 0};
    const int ready = poll(&wait, 1, left.count() > 0 ? static_cast<int>(left.count()) : 0);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t size = read(fd, piece.data(), piece.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return true;
    text.append(piece.data(), static_cast<std::size_t>(size));
  }
}

ShimAnswer understand(const std::string& text) {
  const std::size_t blank = text.find(' ');
  const std::string_view word = std::string_view(text).substr(0, blank);
  const std::string message = blank == std::string::npos ? "" : text.substr(blank + 1);
  if (word == shim::answer_started) return {ShimAnswer::Kind::started, "", 0};
  if (word == shim::answer_known) return {ShimAnswer::Kind::known, "", 0};
  if (word == shim::answer_busy) return {ShimAnswer::Kind::known, "", 0};
  if (word == shim::answer_recorded) return {ShimAnswer::Kind::recorded, message, 0};
  if (word == shim::answer_failed) return {ShimAnswer::Kind::failed, message, 0};
  return {ShimAnswer::Kind::failed, "takt-shim ended before it had started the job: try again", 0};
}

}  // namespace

ShimAnswer start_shim(const std::string& shim_path, const std::string& folder, Duration deadline) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return {ShimAnswer::Kind::failed,
            fmt::format("no pipe to takt-shim ({}): raise the agent's limit of open files",
                        std::strerror(errno)),
            0};
  }
  fault_point("launcher.before-spawn");
  pid_t forker = 0;
  const int error = spawn_detached(shim_path, folder, ends[1], forker);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return {ShimAnswer::Kind::failed,
            fmt::format("{}: cannot be executed ({}): install takt-shim there", shim_path,
                        std::strerror(error)),
            0};
  }
  std::string text;
  const bool whole = read_answer(ends[0], deadline, text);
  close(ends[0]);
  fault_point("launcher.after-spawn");
  ShimAnswer answer{ShimAnswer::Kind::undecided, "", 0};
  if (whole) answer = understand(text);
  // Who has answered was forked by somebody who is about to end.
  if (!reap_within(forker, whole ? 1000 : 0)) answer.unreaped = forker;
  return answer;
}

bool signal_process(std::int64_t pid, std::int64_t start, int signal) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0U));
  if (fd < 0) return false;
  // A zombie takes signals and does nothing with them.
  const bool same = shim::is_running(static_cast<pid_t>(pid), start);
  const bool sent = same && syscall(SYS_pidfd_send_signal, fd, signal, nullptr, 0U) == 0;
  close(fd);
  return sent;
}

}  // namespace takt::launch
