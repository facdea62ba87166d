#include "edge/store/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace takt::store {

tl::expected<FileLock, FileLock::Refusal> FileLock::take(const std::string& path, mode_t mode) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode);
  if (fd < 0) return tl::make_unexpected(Refusal{Refusal::Kind::cannot_open, errno, ""});
  FileLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK)
      return tl::make_unexpected(Refusal{Refusal::Kind::cannot_lock, errno, ""});
    char pid[24] = {};
    const ssize_t got = ::pread(fd, pid, sizeof(pid) - 1, 0);
    std::string holder(pid, got > 0 ? static_cast<std::size_t>(got) : 0);
    while (!holder.empty() && holder.back() == '\n') holder.pop_back();
    return tl::make_unexpected(Refusal{Refusal::Kind::held, 0, std::move(holder)});
  }
  // Only for sentences; a full disk must not keep us from opening.
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd, 0) == 0) {
    [[maybe_unused]] const ssize_t written = ::pwrite(fd, pid.data(), pid.size(), 0);
  }
  return lock;
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace takt::store
