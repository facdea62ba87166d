#include "edge/http/client.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "edge/http/response_parser.h"

namespace takt::http {
namespace {

using Clock = std::chrono::steady_clock;

std::string words(int error) { return std::strerror(error); }

// Letters, and for targets all printable ASCII: nothing that could end a line or a word early.
bool is_method(const std::string& method) {
  return !method.empty() &&
         std::all_of(method.begin(), method.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}
bool is_target(const std::string& target) {
  return !target.empty() && target.front() == '/' &&
         std::all_of(target.begin(), target.end(), [](char c) { return c > ' ' && c < 0x7F; });
}

// Up to the deadline, rounded up, at least 0; for poll.
int milliseconds_left(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

// False when the deadline came first.
bool wait_for(int fd, short events, Clock::time_point deadline) {
  while (true) {
    pollfd wanted{fd, events, 0};
    const int left = milliseconds_left(deadline);
    const int ready = ::poll(&wanted, 1, left);
    if (ready > 0) return true;
    if (ready == 0 && Clock::now() >= deadline) return false;
    if (ready < 0 && errno != EINTR) return true;  // the next call on fd says what is wrong
  }
}

}  // namespace

struct Client::Impl {
  std::string path;
  ClientOptions options;
  int fd = -1;
  bool begun_sending = false;
  std::vector<char> chunk;

  ~Impl() { close(); }
  void close() {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }

  Result<void> connect(Clock::time_point deadline);
  tl::unexpected<Error> cannot_connect(int error) const;
  bool still_open() const;
  bool send_all(const std::string& request, Clock::time_point deadline) const;
  Result<Response> exchange(const std::string& method, const std::string& request,
                            Clock::time_point deadline, bool* untouched, BodySink sink = {});
};

Client::Client(std::string socket_path, ClientOptions options) : impl_(std::make_unique<Impl>()) {
  impl_->path = std::move(socket_path);
  impl_->options = options;
}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

tl::unexpected<Error> Client::Impl::cannot_connect(int error) const {
  if (error == EACCES || error == EPERM) {
    return fail(ErrorKind::forbidden,
                fmt::format("cannot reach takt at {}: this user may not open its socket; ask the "
                            "administrator, or name another socket",
                            path));
  }
  const bool absent = error == ENOENT || error == ECONNREFUSED || error == ENOTDIR;
  return fail(ErrorKind::unavailable,
              fmt::format("cannot reach takt at {}: is `takt serve` running? ({})", path,
                          absent ? "nobody listens there" : words(error)));
}

Result<void> Client::Impl::connect(Clock::time_point deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path) ||
      path.find('\0') != std::string::npos) {
    return fail(ErrorKind::invalid, fmt::format("the socket's path '{}' must have 1 to {} bytes",
                                                path, sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return fail(ErrorKind::io, "cannot make a socket: " + words(errno));
  while (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const int error = errno;
    if (error == EINTR) continue;
    // A Unix socket's connect never is "in progress": EAGAIN says that the server's queue is full.
    if (error != EAGAIN || Clock::now() >= deadline) {
      close();
      return cannot_connect(error);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return {};
}

// Whether the kept connection can carry another request: the server has neither closed it nor sent
// something that nobody asked for.
bool Client::Impl::still_open() const {
  pollfd state{fd, POLLIN | POLLRDHUP, 0};
  return fd >= 0 && ::poll(&state, 1, 0) == 0;
}

// False when the time is up. A connection that the server has closed is no failure here: it may
// have sent an answer before (413 to a body it does not want), which reading finds out.
bool Client::Impl::send_all(const std::string& request, Clock::time_point deadline) const {
  std::size_t done = 0;
  while (done < request.size()) {
    const ssize_t sent = ::send(fd, request.data() + done, request.size() - done, MSG_NOSIGNAL);
    if (sent > 0) {
      done += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(fd, POLLOUT, deadline)) return false;
    } else if (errno != EINTR) {
      return true;
    }
  }
  return true;
}

// `untouched` becomes true when the server ended the connection without a byte of an answer.
Result<Response> Client::Impl::exchange(const std::string& method, const std::string& request,
                                        Clock::time_point deadline, bool* untouched,
                                        BodySink sink) {
  const auto late = [&] {
    return fail(ErrorKind::unavailable,
                fmt::format("takt at {} did not answer in time: it may still carry the request "
                            "out; look before you try again",
                            path));
  };
  if (!send_all(request, deadline)) return late();
  ResponseParser parser(method == "HEAD", options.response_bytes_max);
  if (sink) parser.send_body_to(std::move(sink));
  chunk.resize(64u << 10);
  while (true) {
    const ssize_t got = ::recv(fd, chunk.data(), chunk.size(), 0);
    if (got > 0) {
      auto complete = parser.feed(std::string_view(chunk.data(), static_cast<std::size_t>(got)));
      if (!complete) return fail_at(path, complete.error());
      if (!*complete) continue;
      if (!parser.keeps_alive() || parser.surplus()) close();
      return std::move(parser.response());
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!wait_for(fd, POLLIN, deadline)) return late();
      continue;
    }
    *untouched = !parser.begun();
    return fail(ErrorKind::unavailable,
                fmt::format("takt at {} ended the connection before it had answered: it may have "
                            "carried the request out; look before you try again",
                            path));
  }
}

Result<Response> Client::call(const std::string& method, const std::string& target,
                              const std::string& body, Duration timeout) {
  impl_->begun_sending = false;
  if (!is_method(method)) {
    return fail(ErrorKind::invalid, "'" + method + "' is no HTTP method: expected e.g. GET");
  }
  if (!is_target(target)) {
    return fail(ErrorKind::invalid, "'" + target +
                                        "' is no address to call: expected a path from '/' on, "
                                        "percent-encoded");
  }
  const auto deadline = Clock::now() + std::chrono::microseconds(
                                           std::clamp<std::int64_t>(timeout.us, 0, hours(24).us));
  std::string request = method + " " + target + " HTTP/1.1\r\nHost: takt\r\n";
  if (!body.empty()) request += "Content-Type: application/json\r\n";
  if (!body.empty() || (method != "GET" && method != "HEAD")) {
    request += fmt::format("Content-Length: {}\r\n", body.size());
  }
  request += "\r\n" + body;

  const bool reused = impl_->still_open();
  if (!reused) impl_->close();
  if (impl_->fd < 0) {
    if (auto connected = impl_->connect(deadline); !connected) {
      return tl::make_unexpected(connected.error());
    }
  }
  bool untouched = false;
  impl_->begun_sending = true;
  auto response = impl_->exchange(method, request, deadline, &untouched);
  if (!response) impl_->close();
  // The server may end an idle connection at the moment that we use it again. Reading changes
  // nothing, so it is tried once more; anything else is for the caller to decide.
  if (!response && reused && untouched && (method == "GET" || method == "HEAD")) {
    if (auto connected = impl_->connect(deadline); !connected) {
      return tl::make_unexpected(connected.error());
    }
    response = impl_->exchange(method, request, deadline, &untouched);
    if (!response) impl_->close();
  }
  return response;
}

Result<Response> Client::fetch(const std::string& target, Duration timeout, BodySink sink) {
  if (!is_target(target)) return fail(ErrorKind::invalid, "'" + target + "' is no address to call");
  const auto deadline = Clock::now() + std::chrono::microseconds(
                                           std::clamp<std::int64_t>(timeout.us, 0, hours(24).us));
  impl_->close();  // on a connection of its own, which the server cannot have ended before
  if (auto connected = impl_->connect(deadline); !connected) {
    return tl::make_unexpected(connected.error());
  }
  bool untouched = false;
  auto response = impl_->exchange("GET", "GET " + target + " HTTP/1.1\r\nHost: takt\r\n\r\n",
                                  deadline, &untouched, std::move(sink));
  impl_->close();
  return response;
}

bool Client::sent() const { return impl_->begun_sending; }

Result<Peer> Client::peer() const {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (impl_->fd < 0 || ::getsockopt(impl_->fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return fail(ErrorKind::unavailable, "not connected to takt: make a call first");
  }
  return Peer{credentials.uid, credentials.gid, credentials.pid};
}

}  // namespace takt::http
