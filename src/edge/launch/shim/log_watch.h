#pragma once
// Looks after the output files of one attempt: while they grow, once a second, and sooner the
// faster they grow; while nobody writes, not at all (the kernel tells of the next write, once).
// Without inotify: once a second.
#include <cstdint>

namespace takt::shim {

class LogWatch {
 public:
  LogWatch() = default;
  ~LogWatch();
  LogWatch(const LogWatch&) = delete;
  LogWatch& operator=(const LogWatch&) = delete;

  // At most two files; the descriptor stays the caller's. Before begin().
  void add(int fd);
  void begin(std::int64_t bytes_max, std::int64_t now_us);
  // To be polled for reading; -1: nothing to poll.
  int fd() const { return events_fd_; }
  // Milliseconds until check() is due, `other` where that is sooner. -1: never.
  int timeout_ms(int other, std::int64_t now_us) const;
  // Looks if it is due. `written`: fd() was readable.
  void check(bool written, std::int64_t now_us);
  // Looks at once, for the last time.
  void finish();

 private:
  struct File {
    int fd = -1;
    std::int64_t size = 0;  // at the last look, holes and all
  };
  bool arm();
  std::int64_t next_look_us(std::int64_t growth, std::int64_t room, std::int64_t passed_us);

  File files_[2];
  int files_size_ = 0;
  int events_fd_ = -1;
  std::int64_t bytes_max_ = 0;
  std::int64_t speed_ = 0;  // of the fastest file, in bytes per millisecond
  std::int64_t last_us_ = 0;
  std::int64_t due_us_ = -1;  // monotonic; -1: when somebody writes
};

}  // namespace takt::shim
