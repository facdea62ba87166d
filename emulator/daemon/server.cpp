#include "daemon/server.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "wire/autostart.h"

namespace takt::emulator {
namespace {

constexpr int kBacklog = 512;
constexpr int kEventsMax = 64;

std::uint64_t now_us() {
  using namespace std::chrono;
  return static_cast<std::uint64_t>(
      duration_cast<microseconds>(system_clock::now().time_since_epoch()).count());
}

double monotonic_seconds() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Server::Server(Fleet fleet, std::string folder, double idle_exit_seconds)
    : fleet_(std::move(fleet)), folder_(std::move(folder)), idle_exit_seconds_(idle_exit_seconds) {
  std::uint64_t start = now_us();
  for (std::size_t i = 0; i < fleet_.gpus.size(); ++i)
    gpus_.push_back(std::make_unique<Gpu>(fleet_, i, start));
}

Server::~Server() {
  for (const auto& [fd, connection] : connections_) close(fd);
  for (const auto& [fd, gpu] : listeners_) close(fd);
  if (epoll_ >= 0) close(epoll_);
}

Result<int> Server::listen_on(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return fail(ErrorKind::invalid, path + ": too long for a socket");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  unlink(path.c_str());  // of a daemon that was killed
  int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      chmod(path.c_str(), 0666) != 0 || ::listen(fd, kBacklog) != 0) {
    auto error = fail(ErrorKind::io, path + ": " + std::strerror(errno));
    if (fd >= 0) close(fd);
    return error;
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  return fd;
}

Result<void> Server::listen() {
  mkdir(folder_.c_str(), 0777);
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  // driver.sock last: whoever can reach it can reach the GPUs.
  for (std::size_t i = 0; i <= gpus_.size(); ++i) {
    bool driver = i == gpus_.size();
    auto fd = listen_on(folder_ + (driver ? "/driver.sock" : "/gpu" + std::to_string(i) + ".sock"));
    if (!fd) return tl::make_unexpected(fd.error());
    listeners_[*fd] = driver ? -1 : static_cast<int>(i);
  }
  return {};
}

void Server::accept_on(int listener, int gpu) {
  while (true) {
    int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    ucred peer{};
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
      close(fd);
      continue;
    }
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
    connections_[fd] = {fd, gpu, next_id_++, static_cast<unsigned>(peer.pid)};
  }
}

void Server::drop(int fd) {
  auto at = connections_.find(fd);
  if (at == connections_.end()) return;
  if (at->second.gpu >= 0)
    gpus_[static_cast<std::size_t>(at->second.gpu)]->disconnected(at->second.id, now_us());
  connections_.erase(at);
  close(fd);
}

void Server::serve(int fd) {
  static thread_local char packet[kPacketMax];
  ssize_t n = recv(fd, packet, sizeof packet, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  auto request =
      n > 0 ? decode_request(std::string_view(packet, static_cast<std::size_t>(n))) : std::nullopt;
  if (!request) return drop(fd);
  const Connection& c = connections_.at(fd);
  std::optional<Reply> reply =
      c.gpu < 0 ? std::optional(answer_driver(*request))
                : gpus_[static_cast<std::size_t>(c.gpu)]->answer(*request, c.id, c.pid, now_us());
  if (!reply) return;
  std::string out = encode(*reply);
  if (send(fd, out.data(), out.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(out.size())) drop(fd);
}

Reply Server::answer_driver(const Request& request) const {
  Reply reply;
  if (request.call == "hello") {
    reply.texts = {fleet_.name, fleet_.driver_version,
                   fleet_.nvml_version.empty() ? fleet_.driver_version : fleet_.nvml_version};
    for (const auto& gpu : fleet_.gpus) reply.texts.push_back(gpu.uuid);
    reply.numbers = {static_cast<std::uint64_t>(fleet_.driver), fleet_.cuda_version.value_or(0),
                     fleet_.gpus.size()};
    return reply;
  }
  if (request.call == "processname" && request.numbers.size() == 1) {
    for (const auto& gpu : fleet_.gpus)
      for (const auto& p : gpu.processes)
        if (p.pid == request.numbers[0] && !p.name.empty()) return {Code::success, {}, {p.name}};
    for (const auto& gpu : gpus_)
      for (const auto& share : gpu->clients().shares())
        if (share.client->pid == request.numbers[0])
          return {Code::success, {}, {share.client->name}};
    return {Code::not_found, {}, {}};
  }
  return {Code::function_not_found, {}, {}};
}

// Ends only while nobody starts a daemon for this folder and nobody waits in a queue.
bool Server::try_to_end() {
  auto lock = FolderLock::take(folder_, FolderLock::Wait::no);
  if (!lock) return false;
  for (const auto& [fd, gpu] : listeners_) {
    pollfd waiting{fd, POLLIN, 0};
    if (poll(&waiting, 1, 0) > 0) return false;
  }
  remove_sockets();
  return true;
}

void Server::remove_sockets() {
  for (std::size_t i = 0; i < gpus_.size(); ++i)
    unlink((folder_ + "/gpu" + std::to_string(i) + ".sock").c_str());
  unlink((folder_ + "/driver.sock").c_str());
  unlink((folder_ + "/lock").c_str());
  rmdir(folder_.c_str());
}

Result<void> Server::run(int signal_fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = signal_fd;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, signal_fd, &event);
  double idle_since = monotonic_seconds();
  epoll_event events[kEventsMax];
  while (true) {
    int wait_ms = -1;
    if (!connections_.empty()) {
      idle_since = monotonic_seconds();
    } else if (idle_exit_seconds_ > 0) {
      double left = idle_exit_seconds_ - (monotonic_seconds() - idle_since);
      if (left <= 0) {
        if (try_to_end()) return {};
        left = 0.2;
      }
      wait_ms = static_cast<int>(left * 1000) + 1;
    }
    int n = epoll_wait(epoll_, events, kEventsMax, wait_ms);
    if (n < 0 && errno != EINTR)
      return fail(ErrorKind::io, std::string("epoll_wait: ") + std::strerror(errno));
    for (int i = 0; i < n; ++i) {
      int fd = events[i].data.fd;
      if (fd == signal_fd) {
        remove_sockets();
        return {};
      }
      if (auto listener = listeners_.find(fd); listener != listeners_.end())
        accept_on(fd, listener->second);
      else if (connections_.count(fd) != 0)
        serve(fd);
    }
    if (n > 0) idle_since = monotonic_seconds();
  }
}

}  // namespace takt::emulator
