#include "edge/launch/shim/log_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>

#include "edge/launch/shim/log_cap.h"

namespace takt::shim {
namespace {

constexpr std::int64_t pause_max_us = 1'000'000;
// The first look after a silence, and the most often that is looked: at 3 GB/s, what a page cache
// takes, a file is some 100 MB too large then.
constexpr std::int64_t pause_min_us = 20'000;

}  // namespace

LogWatch::~LogWatch() {
  for (int i = 0; i < files_size_; ++i) close(files_[i].fd);
  if (events_fd_ >= 0) close(events_fd_);
}

void LogWatch::add(int fd) {
  if (files_size_ == 2) return;
  const int own = reopen_for_cutting(fd);
  if (own >= 0) files_[files_size_++].fd = own;
}

void LogWatch::begin(std::int64_t bytes_max, std::int64_t now_us) {
  bytes_max_ = bytes_max;
  if (bytes_max_ <= 0 || files_size_ == 0) return;
  // The kernel has a limit of these per user; without one there is the clock.
  events_fd_ = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  last_us_ = now_us;
  due_us_ = now_us + pause_min_us;
}

// One event for the next write, and no more.
bool LogWatch::arm() {
  if (events_fd_ < 0) return false;
  for (int i = 0; i < files_size_; ++i) {
    char path[40];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", files_[i].fd);
    if (inotify_add_watch(events_fd_, path, IN_MODIFY | IN_ONESHOT) < 0) return false;
  }
  return true;
}

int LogWatch::timeout_ms(int other, std::int64_t now_us) const {
  if (due_us_ < 0) return other;
  const std::int64_t left = std::max<std::int64_t>(due_us_ - now_us, 0);
  const int own = static_cast<int>(left / 1000 + 1);
  return other < 0 ? own : std::min(other, own);
}

// Half of the time in which it would be full. A writer that rests between two looks is as fast as
// before, or nearly.
std::int64_t LogWatch::next_look_us(std::int64_t growth, std::int64_t room,
                                    std::int64_t passed_us) {
  const std::int64_t seen = growth / std::max<std::int64_t>(passed_us / 1000, 1);
  speed_ = std::max({seen, speed_ / 2, std::int64_t{1}});
  const std::int64_t full_us = std::max<std::int64_t>(room, 0) / speed_ * 1000;
  return std::clamp(full_us / 2, pause_min_us, pause_max_us);
}

void LogWatch::check(bool written, std::int64_t now_us) {
  if (written) {
    char news[1024];
    while (read(events_fd_, news, sizeof news) > 0) {
    }
    if (due_us_ < 0) {
      last_us_ = now_us;
      due_us_ = now_us + pause_min_us;
    }
  }
  if (due_us_ < 0 || now_us < due_us_) return;
  // Armed before looking: what is written in between is told.
  const bool armed = now_us - last_us_ >= pause_max_us && arm();
  std::int64_t growth = 0;
  std::int64_t room = bytes_max_;
  for (int i = 0; i < files_size_; ++i) {
    File& file = files_[i];
    const std::int64_t left = cap_log(file.fd, bytes_max_);
    const std::int64_t size = lseek(file.fd, 0, SEEK_END);
    if (left < 0 || size < 0) continue;
    // A file without holes has become smaller when it was cut: as fast as it can be, then.
    growth = std::max(growth, size >= file.size ? size - file.size : bytes_max_);
    room = std::min(room, bytes_max_ - left);
    file.size = size;
  }
  const std::int64_t pause = next_look_us(growth, room, now_us - last_us_);
  last_us_ = now_us;
  due_us_ = growth == 0 && armed ? -1 : now_us + pause;
}

void LogWatch::finish() {
  for (int i = 0; i < files_size_; ++i) (void)cap_log(files_[i].fd, bytes_max_);
}

}  // namespace takt::shim
