#include "app/server/backup.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace takt::server {
namespace {

void remove_leftover(const std::string& path) {
  for (const char* end : {"", "-wal", "-journal", "-shm"}) ::unlink((path + end).c_str());
}

}  // namespace

Backups::Backups(std::string folder, Copy copy)
    : path_(std::move(folder) + "/backup.db.new"), copy_(std::move(copy)) {
  remove_leftover(path_);
}

Result<std::shared_ptr<const http::BodyFile>> Backups::make() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return fail(ErrorKind::conflict, "a backup is being made: try again when it is done");
  remove_leftover(path_);
  if (auto copied = copy_(path_); !copied) return tl::make_unexpected(copied.error());
  const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  const int error = errno;
  remove_leftover(path_);
  struct stat status {};
  if (fd < 0 || ::fstat(fd, &status) != 0) {
    if (fd >= 0) ::close(fd);
    return fail(ErrorKind::io, fmt::format("cannot read {}: {}", path_, std::strerror(error)));
  }
  return std::make_shared<const http::BodyFile>(fd, static_cast<std::uint64_t>(status.st_size));
}

}  // namespace takt::server
