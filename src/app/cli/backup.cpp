// takt backup
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "app/cli/commands.h"
#include "app/cli/output.h"
#include "app/cli/session.h"

namespace takt::cli {
namespace {

Error cannot(const std::string& what, const std::string& path) {
  return {ErrorKind::io, fmt::format("cannot {} {}: {}; nothing was changed at its place", what,
                                     path, std::strerror(errno))};
}

// Beside its place until it is complete and on disk.
class NewFile {
 public:
  explicit NewFile(std::string place)
      : place_(std::move(place)), beside_(fmt::format("{}.new-{}", place_, ::getpid())) {}
  ~NewFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!done_) ::unlink(beside_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  Result<void> open() {
    fd_ = ::open(beside_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd_ < 0) return tl::make_unexpected(cannot("create", beside_));
    return {};
  }
  Result<void> write(std::string_view piece) {
    while (!piece.empty()) {
      const ssize_t written = ::write(fd_, piece.data(), piece.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return tl::make_unexpected(cannot("write", beside_));
      piece.remove_prefix(static_cast<std::size_t>(written));
      bytes_ += static_cast<std::size_t>(written);
    }
    return {};
  }
  Result<void> put_in_place() {
    if (::fsync(fd_) != 0) return tl::make_unexpected(cannot("sync", beside_));
    if (::rename(beside_.c_str(), place_.c_str()) != 0)
      return tl::make_unexpected(cannot("rename to", place_));
    done_ = true;
    const std::filesystem::path parent = std::filesystem::path(place_).parent_path();
    const int folder = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_CLOEXEC);
    if (folder >= 0) {
      ::fsync(folder);
      ::close(folder);
    }
    return {};
  }
  std::size_t bytes() const { return bytes_; }

 private:
  const std::string place_;
  const std::string beside_;
  int fd_ = -1;
  bool done_ = false;
  std::size_t bytes_ = 0;
};

}  // namespace

int backup(const std::string& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    return complain({ErrorKind::invalid, fmt::format("{} is not a file: name another one", file)});
  NewFile copy(file);
  if (auto opened = copy.open(); !opened) return complain(opened.error());
  Session session;
  auto reply =
      session.fetch("/v1/backup", [&](std::string_view piece) { return copy.write(piece); });
  if (!reply) {
    complain(reply.error());
    return reply.error().kind == ErrorKind::unavailable ? kExitNoServer : kExitFailed;
  }
  if (auto done = copy.put_in_place(); !done) return complain(done.error());
  return put(
      fmt::format("{}: {} bytes. docs/backup.md says how it is put back.\n", file, copy.bytes()));
}

}  // namespace takt::cli
