#include "app/server/folder_lock.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace takt::server {

Result<FolderLock> FolderLock::take(const std::string& folder) {
  const std::string path = folder + "/lock";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0)
    return fail(errno == EACCES || errno == EROFS ? ErrorKind::forbidden : ErrorKind::io,
                fmt::format("cannot open {}: {}: choose another folder with --runtime-dir", path,
                            std::strerror(errno)));
  FolderLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    char pid[32] = {};
    const ssize_t n = ::pread(fd, pid, sizeof pid - 1, 0);
    if (error != EWOULDBLOCK)
      return fail(ErrorKind::io, fmt::format("cannot lock {}: {}", path, std::strerror(error)));
    return fail(ErrorKind::conflict,
                fmt::format("the runtime folder {} is in use by a running takt (pid {}): stop that "
                            "one first, or choose another folder with --runtime-dir",
                            folder, n > 0 ? pid : "unknown"));
  }
  const std::string pid = std::to_string(::getpid());
  // What is written is for people only; a full disk does not keep a server from starting.
  if (::ftruncate(fd, 0) == 0) (void)!::pwrite(fd, pid.data(), pid.size(), 0);
  return lock;
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

FolderLock::FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

}  // namespace takt::server
