#pragma once
// A lock file held with flock as long as this lives; the kernel releases it when the process dies.
// The file itself stays and holds the pid, for sentences: removing it would let two processes hold
// two locks.
#include <string>
#include <tl/expected.hpp>

#include <sys/types.h>

namespace takt::store {

class FileLock {
 public:
  // Why there is no lock; the caller makes it a sentence.
  struct Refusal {
    enum class Kind { cannot_open, cannot_lock, held } kind = Kind::cannot_open;
    int error = 0;       // errno of the first two
    std::string holder;  // pid of who has it, or "" when it has not said so
  };
  // `path` of the lock file, made with `mode` if missing.
  static tl::expected<FileLock, Refusal> take(const std::string& path, mode_t mode);
  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace takt::store
