#include "endtoend/scripted_server.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace takt::endtoend {
namespace {

// The first request in the buffer, taken out of it; nothing while it is incomplete.
std::optional<Asked> take_request(std::string& buffer) {
  const std::size_t end = buffer.find("\r\n\r\n");
  if (end == std::string::npos) return std::nullopt;
  const std::string head = buffer.substr(0, end);
  std::size_t length = 0;
  if (const std::size_t at = head.find("Content-Length: "); at != std::string::npos)
    length = std::strtoul(head.c_str() + at + 16, nullptr, 10);
  if (buffer.size() < end + 4 + length) return std::nullopt;
  const std::size_t blank = head.find(' ');
  Asked asked{head.substr(0, blank), head.substr(blank + 1, head.find(' ', blank + 1) - blank - 1),
              buffer.substr(end + 4, length)};
  buffer.erase(0, end + 4 + length);
  return asked;
}

}  // namespace

ScriptedServer::ScriptedServer(const std::string& socket_path, Answer answer)
    : path_(socket_path), answer_(std::move(answer)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path_.c_str(), sizeof(address.sun_path) - 1);
  listening_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::bind(listening_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(listening_, 64) != 0)
    std::abort();
  accepting_ = std::thread([this] { accept_all(); });
}

ScriptedServer::~ScriptedServer() {
  stopping_ = true;
  accepting_.join();
  for (std::thread& connection : connections_) connection.join();
  ::close(listening_);
  ::unlink(path_.c_str());
}

void ScriptedServer::accept_all() {
  while (!stopping_) {
    pollfd wanted{listening_, POLLIN, 0};
    if (::poll(&wanted, 1, 20) <= 0) continue;
    const int fd = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) connections_.emplace_back([this, fd] { serve(fd); });
  }
}

void ScriptedServer::serve(int fd) {
  std::string buffer;
  while (!stopping_) {
    if (auto asked = take_request(buffer)) {
      {
        const std::lock_guard lock(mutex_);
        asked_.push_back(*asked);
      }
      const auto answer = answer_(*asked);
      if (!answer) break;
      if (::send(fd, answer->data(), answer->size(), MSG_NOSIGNAL) < 0) break;
      continue;
    }
    pollfd wanted{fd, POLLIN, 0};
    if (::poll(&wanted, 1, 20) <= 0) continue;
    char chunk[65536];
    const ssize_t got = ::recv(fd, chunk, sizeof chunk, 0);
    if (got <= 0) break;
    buffer.append(chunk, static_cast<std::size_t>(got));
  }
  ::close(fd);
}

std::vector<Asked> ScriptedServer::asked(const std::string& method) const {
  const std::lock_guard lock(mutex_);
  std::vector<Asked> found;
  for (const Asked& a : asked_)
    if (method.empty() || a.method == method) found.push_back(a);
  return found;
}

std::string http_answer(int status, const std::string& body, const std::string& headers) {
  return "HTTP/1.1 " + std::to_string(status) + " x\r\nContent-Type: application/json\r\n" +
         headers + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace takt::endtoend
