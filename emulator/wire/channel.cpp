#include "wire/channel.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace takt::emulator {

Result<Channel> Channel::connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return fail(ErrorKind::invalid, path + ": too long for a socket's path");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail(ErrorKind::io, std::string("no socket: ") + std::strerror(errno));
  int failed = 0;
  do {
    failed = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ? errno : 0;
  } while (failed == EINTR);
  if (failed != 0) {
    close(fd);
    return fail(ErrorKind::unavailable, path + ": " + std::strerror(failed));
  }
  return Channel(fd);
}

Channel::Channel(Channel&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Channel& Channel::operator=(Channel&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Channel::~Channel() {
  if (fd_ >= 0) close(fd_);
}

Result<Reply> Channel::call(const Request& request) {
  std::string out = encode(request);
  ssize_t n = 0;
  do {
    n = send(fd_, out.data(), out.size(), MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  if (n != static_cast<ssize_t>(out.size()))
    return fail(ErrorKind::unavailable,
                std::string("the emulator is gone: ") + std::strerror(errno));
  std::vector<char> in(kPacketMax);
  do {
    n = recv(fd_, in.data(), in.size(), 0);
  } while (n < 0 && errno == EINTR);
  if (n <= 0) return fail(ErrorKind::unavailable, "the emulator closed the connection");
  auto reply = decode_reply(std::string_view(in.data(), static_cast<std::size_t>(n)));
  if (!reply) return fail(ErrorKind::io, "the emulator's reply is not of this version");
  return std::move(*reply);
}

}  // namespace takt::emulator
