#include "edge/launch/record_watch.h"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "edge/launch/shim/processes.h"

namespace takt::launch {

Result<std::unique_ptr<RecordWatch>> RecordWatch::open(const std::string& records_dir) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  const int inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  const auto refuse = [&](const char* what) {
    const int error = errno;
    if (epoll >= 0) close(epoll);
    if (inotify >= 0) close(inotify);
    return fail(ErrorKind::io,
                fmt::format("records folder {}: {} ({}): raise fs.inotify.max_user_instances and "
                            "max_user_watches, or end programs that use them",
                            records_dir, what, std::strerror(error)));
  };
  if (epoll < 0 || inotify < 0) return refuse("cannot be watched");
  if (inotify_add_watch(inotify, records_dir.c_str(), IN_CREATE | IN_MOVED_TO | IN_ONLYDIR) < 0) {
    return refuse("cannot be watched");
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = inotify;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, inotify, &event) != 0) return refuse("cannot be watched");
  return std::unique_ptr<RecordWatch>(new RecordWatch(epoll, inotify));
}

RecordWatch::~RecordWatch() {
  for (const auto& [process, fd] : processes_) close(fd);
  close(inotify_);
  close(epoll_);
}

void RecordWatch::drain() {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::array<char, 4096> news;
  while (read(inotify_, news.data(), news.size()) > 0) {
  }
  std::array<epoll_event, 64> events;
  const int ready = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < ready; ++i) {
    const int fd = events[static_cast<std::size_t>(i)].data.fd;
    if (fd == inotify_) continue;
    for (auto it = processes_.begin(); it != processes_.end(); ++it) {
      if (it->second != fd) continue;
      close(fd);  // leaves the epoll set with its last descriptor
      processes_.erase(it);
      break;
    }
  }
}

// Records are renamed into place: half-written ones raise nothing.
void RecordWatch::watch_folder(const std::string& folder) {
  inotify_add_watch(inotify_, folder.c_str(), IN_MOVED_TO | IN_ONLYDIR);
}

void RecordWatch::watch_process(std::int64_t pid, std::int64_t start) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto process = std::make_pair(pid, start);
  if (processes_.contains(process)) return;
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0U));
  if (fd < 0) return;
  // Only now is it certain that the number means the same process still.
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (shim::start_of(static_cast<pid_t>(pid)) != start ||
      epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) {
    close(fd);
    return;
  }
  processes_.emplace(process, fd);
}

}  // namespace takt::launch
