#pragma once
// A folder that goes away, a raw connection that sends what no sane client would, and counters of
// what the process holds.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "edge/http/server.h"

namespace takt::http {

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "takt-http-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Polls until it holds; false when it does not within ten seconds.
inline bool eventually(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

class RawConnection {
 public:
  explicit RawConnection(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~RawConnection() { close(); }
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  bool connected() const { return connected_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  // False once the server has hung up, or does not take it for five seconds.
  bool send(std::string_view text) {
    while (!text.empty()) {
      pollfd wanted{fd_, POLLOUT, 0};
      if (::poll(&wanted, 1, 5000) <= 0) return false;
      const ssize_t sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // All that comes until the server hangs up or `enough` holds; gives up after ten seconds.
  std::string receive(const std::function<bool(const std::string&)>& enough = {}) {
    std::string all;
    char chunk[65536];
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!(enough && enough(all)) && std::chrono::steady_clock::now() < deadline) {
      pollfd wanted{fd_, POLLIN, 0};
      if (::poll(&wanted, 1, 100) <= 0) continue;
      const ssize_t got = ::recv(fd_, chunk, sizeof(chunk), 0);
      if (got <= 0) {
        ended_ = true;
        break;
      }
      all.append(chunk, static_cast<std::size_t>(got));
    }
    return all;
  }
  bool ended() const { return ended_; }

 private:
  int fd_ = -1;
  bool connected_ = false;
  bool ended_ = false;
};

inline std::size_t open_fds() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

inline long resident_kib() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.rfind("VmRSS:", 0) == 0) return std::strtol(line.c_str() + 6, nullptr, 10);
  }
  return -1;
}

// Answers with what it saw: method, path and body.
inline Response echo(const Request& request) {
  Response response;
  response.content_type = "text/plain";
  response.body = request.method + " " + request.path + "\n" + request.body;
  return response;
}

inline ServerOptions at(const std::string& path) {
  ServerOptions options;
  options.socket_path = path;
  return options;
}

}  // namespace takt::http
