#include "edge/http/listen_socket.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

namespace takt::http {
namespace {

constexpr std::size_t kPathBytesMax = sizeof(sockaddr_un::sun_path) - 1;  // 107 on Linux
constexpr int kBacklog = 512;

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

std::string words(int error) { return std::strerror(error); }

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Result<void> check_path(const std::string& path) {
  if (path.empty()) return fail(ErrorKind::invalid, "the socket's path is empty: give it one");
  if (path.find('\0') != std::string::npos) {
    return fail(ErrorKind::invalid, "the socket's path holds a NUL byte");
  }
  if (path.size() > kPathBytesMax) {
    return fail(ErrorKind::invalid,
                fmt::format("the socket's path {} has {} bytes, the kernel allows {}: choose a "
                            "shorter folder",
                            path, path.size(), kPathBytesMax));
  }
  return {};
}

// Two servers that start at once on one stale socket must not each remove the other's: the folder
// is locked (flock) from the look at the path until we listen.
Result<int> lock_folder(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) {
    const int error = errno;
    if (error == ENOENT) {
      return fail(ErrorKind::not_found,
                  fmt::format("the folder {} of the socket does not exist: create it or choose "
                              "another socket",
                              folder));
    }
    const ErrorKind kind = error == EACCES ? ErrorKind::forbidden : ErrorKind::invalid;
    return fail(
        kind, fmt::format("the folder {} of the socket cannot be used: {}", folder, words(error)));
  }
  for (int tries = 0; ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK || tries == 200) {
      return fail(ErrorKind::conflict,
                  fmt::format("the folder {} of the socket stays locked by another program: is "
                              "another takt starting there? Try again",
                              folder));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return fd.release();
}

// Whether somebody listens: then an Error; nothing when the socket file is a dead server's.
Result<void> refuse_if_alive(const std::string& path) {
  Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (probe.get() < 0) return fail(ErrorKind::io, "cannot make a socket: " + words(errno));
  const sockaddr_un address = address_of(path);
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    ucred owner{};
    socklen_t size = sizeof(owner);
    ::getsockopt(probe.get(), SOL_SOCKET, SO_PEERCRED, &owner, &size);
    return fail(ErrorKind::conflict,
                fmt::format("{} is in use by a running takt (pid {}): stop that one first, or give "
                            "this one another socket",
                            path, owner.pid));
  }
  switch (errno) {
    case ECONNREFUSED: return {};
    case EAGAIN:
      return fail(ErrorKind::conflict,
                  fmt::format("{} is in use by a running takt that is too busy to answer: stop "
                              "that one first, or give this one another socket",
                              path));
    case EACCES:
      return fail(ErrorKind::forbidden,
                  fmt::format("{} belongs to somebody else and may not be opened: give this takt "
                              "another socket",
                              path));
    default:
      return fail(ErrorKind::io,
                  fmt::format("cannot tell whether {} is in use: {}", path, words(errno)));
  }
}

Result<void> make_room(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return {};
    return fail(ErrorKind::io, fmt::format("cannot look at {}: {}", path, words(errno)));
  }
  if (!S_ISSOCK(status.st_mode)) {
    return fail(ErrorKind::invalid,
                fmt::format("{} exists and is not a socket: it is left as it is; move it away or "
                            "choose another path for the socket",
                            path));
  }
  if (auto dead = refuse_if_alive(path); !dead) return dead;
  if (::unlink(path.c_str()) != 0) {
    return fail(
        ErrorKind::forbidden,
        fmt::format("{} is left over from a takt that has ended and cannot be removed ({}): "
                    "remove it or choose another socket",
                    path, words(errno)));
  }
  return {};
}

}  // namespace

Result<ListenSocket> ListenSocket::take(const std::string& path, unsigned mode) {
  if (auto fine = check_path(path); !fine) return tl::make_unexpected(fine.error());
  auto locked = lock_folder(path);
  if (!locked) return tl::make_unexpected(locked.error());
  const Fd lock(*locked);
  if (auto room = make_room(path); !room) return tl::make_unexpected(room.error());

  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return fail(ErrorKind::io, "cannot make a socket: " + words(errno));
  // Linux gives the file the mode of the unbound socket, less the umask: the file is never more
  // open than asked. The chmod afterwards undoes the umask.
  ::fchmod(fd.get(), mode);
  const sockaddr_un address = address_of(path);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const int error = errno;
    const bool denied = error == EACCES || error == EROFS || error == EPERM;
    return fail(denied ? ErrorKind::forbidden : ErrorKind::io,
                fmt::format("cannot create the socket {}: {}; is its folder writable for this "
                            "user? Or choose another socket",
                            path, words(error)));
  }
  ListenSocket taken(fd.release(), path);
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) {
    taken.device_ = status.st_dev;
    taken.inode_ = status.st_ino;
  }
  if (::chmod(path.c_str(), mode) != 0 || ::listen(taken.fd_, kBacklog) != 0) {
    return fail(ErrorKind::io, fmt::format("cannot listen on {}: {}", path, words(errno)));
  }
  return taken;
}

ListenSocket::ListenSocket(ListenSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::exchange(other.path_, {})),
      device_(other.device_),
      inode_(other.inode_) {}

ListenSocket::~ListenSocket() {
  remove_file();
  if (fd_ >= 0) ::close(fd_);
}

void ListenSocket::remove_file() {
  if (path_.empty()) return;
  struct stat status {};
  const bool ours =
      ::lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
  if (ours) ::unlink(path_.c_str());
  path_.clear();
}

}  // namespace takt::http
