#pragma once
// Tells when a look at the records would show something new: inotify on the folders, a pidfd for
// every process whose end writes no record (a shim that is killed, what it left behind).
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/base/result.h"

namespace takt::launch {

class RecordWatch {
 public:
  static Result<std::unique_ptr<RecordWatch>> open(const std::string& records_dir);
  ~RecordWatch();
  RecordWatch(const RecordWatch&) = delete;
  RecordWatch& operator=(const RecordWatch&) = delete;

  int fd() const { return epoll_; }  // readable when there is news
  // Makes fd() quiet. To be called before looking, so that no news falls between.
  void drain();
  void watch_folder(const std::string& folder);  // again is fine
  // The process that began at `start` (clock ticks since boot); again is fine.
  void watch_process(std::int64_t pid, std::int64_t start);

 private:
  RecordWatch(int epoll, int inotify) : epoll_(epoll), inotify_(inotify) {}
  const int epoll_;
  const int inotify_;
  std::mutex mutex_;
  std::map<std::pair<std::int64_t, std::int64_t>, int> processes_;  // (pid, start) → pidfd
};

}  // namespace takt::launch
