#include "wire/autostart.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "wire/selector.h"

namespace takt::emulator {
namespace {

constexpr int kReadyFd = 3;
constexpr int kTriesMax = 20;

std::string real_path(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  std::string out = resolved == nullptr ? std::string() : resolved;
  std::free(resolved);
  return out;
}

// Between fork and exec of a process with threads: only calls that are safe in a signal handler.
[[noreturn]] void become_daemon(const char* program, char* const* arguments,
                                char* const* environment, int ready) {
  setsid();
  pid_t second = fork();
  if (second != 0) _exit(second < 0 ? 1 : 0);
  int null = open("/dev/null", O_RDWR);
  dup2(null, 0);
  dup2(null, 1);
  dup2(null, 2);
  if (ready != kReadyFd)
    dup2(ready, kReadyFd);
  else
    fcntl(ready, F_SETFD, 0);
  for (int fd = kReadyFd + 1; fd < 65536; ++fd)
    if (close(fd) != 0 && fd > 1024) break;
  if (chdir("/") != 0) _exit(1);
  umask(0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(program, arguments, environment);
  const char problem[] = "takt-emulator could not be executed";
  if (write(kReadyFd, problem, sizeof problem - 1) < 0) _exit(126);
  _exit(127);
}

std::string read_all(int fd) {
  std::string out;
  char buffer[512];
  while (true) {
    ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return out;
    out.append(buffer, static_cast<std::size_t>(n));
  }
}

Result<void> start(const FleetPlace& place, const std::string& program) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return fail(ErrorKind::io, std::string("no pipe: ") + std::strerror(errno));
  const char* idle = std::getenv(kIdleVariable);
  std::string fd_text = std::to_string(kReadyFd);
  std::vector<std::string> words = {program,
                                    "--fleet",
                                    place.selector,
                                    "--socket-dir",
                                    place.folder,
                                    "--idle-exit",
                                    idle == nullptr || *idle == '\0' ? "5" : idle,
                                    "--ready-fd",
                                    fd_text};
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  char* environment[] = {nullptr};
  pid_t child = fork();
  if (child == 0) become_daemon(program.c_str(), arguments.data(), environment, ends[1]);
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return fail(ErrorKind::io, std::string("no process for the emulator: ") + std::strerror(errno));
  }
  std::string said = read_all(ends[0]);
  close(ends[0]);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (said == "ready\n") return {};
  if (said.empty()) said = program + " ended before it was ready";
  return fail(ErrorKind::unavailable, said);
}

// A connection that the daemon has taken: one in the queue of a daemon that is just ending is not.
Result<Channel> greeted(const FleetPlace& place) {
  auto channel = Channel::connect(place.driver_socket());
  if (!channel) return channel;
  Request hello;
  hello.call = "hello";
  auto reply = channel->call(hello);
  if (!reply) return tl::make_unexpected(reply.error());
  return channel;
}

}  // namespace

Result<FleetPlace> place_of(const std::string& text) {
  FleetSelector chosen = selector_of(text);
  std::string path = real_path(chosen.path);
  if (path.empty())
    return fail(ErrorKind::not_found, std::string(kFleetVariable) + "=" + text + ": " +
                                          std::strerror(errno) +
                                          "; expected the path of a fleet file");
  FleetPlace place;
  place.selector = chosen.state.empty() ? path : path + "#" + chosen.state;
  if (const char* folder = std::getenv(kFolderVariable); folder != nullptr && *folder != '\0') {
    place.folder = folder;
    return place;
  }
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (char c : place.selector) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  char name[64];
  std::snprintf(name, sizeof name, "/tmp/takt-emulator-%016llx",
                static_cast<unsigned long long>(hash));
  place.folder = name;
  return place;
}

Result<FolderLock> FolderLock::take(const std::string& folder, Wait wait) {
  std::string path = folder + "/lock";
  for (int attempt = 0; attempt < kTriesMax; ++attempt) {
    // Any user may clean up after any other's daemon: this is a plaything, not a boundary.
    if (mkdir(folder.c_str(), 0777) == 0) (void)!chmod(folder.c_str(), 0777);
    int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) {
      if (errno == ENOENT) continue;  // the folder was removed by a daemon that ended
      return fail(ErrorKind::io, path + ": " + std::strerror(errno));
    }
    (void)!fchmod(fd, 0666);
    if (flock(fd, wait == Wait::yes ? LOCK_EX : LOCK_EX | LOCK_NB) != 0) {
      int problem = errno;
      close(fd);
      if (problem == EINTR) continue;
      return fail(ErrorKind::unavailable, path + ": " + std::strerror(problem));
    }
    // The file may have been removed while we waited: then the lock is on nothing.
    struct stat ours {
    }, there{};
    if (fstat(fd, &ours) == 0 && stat(path.c_str(), &there) == 0 && ours.st_ino == there.st_ino)
      return FolderLock(fd);
    close(fd);
  }
  return fail(ErrorKind::unavailable, path + ": the folder keeps vanishing; try again");
}

FolderLock::FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FolderLock::~FolderLock() {
  if (fd_ >= 0) close(fd_);
}

Result<Channel> connect_or_start(const FleetPlace& place, const std::string& program) {
  Error last{ErrorKind::unavailable, "the emulator ends whenever it is started"};
  for (int attempt = 0; attempt < kTriesMax; ++attempt) {
    if (auto channel = greeted(place)) return channel;
    auto lock = FolderLock::take(place.folder, FolderLock::Wait::yes);
    if (!lock) return tl::make_unexpected(lock.error());
    if (auto channel = greeted(place)) return channel;  // someone was quicker
    if (auto started = start(place, program); !started) {
      // Leave nothing behind for a fleet that cannot be played.
      unlink((place.folder + "/lock").c_str());
      rmdir(place.folder.c_str());
      return tl::make_unexpected(started.error());
    }
    auto channel = greeted(place);
    if (channel) return channel;
    last = channel.error();
  }
  return tl::make_unexpected(last);
}

}  // namespace takt::emulator
