#pragma once
// The runtime folder holds what the jobs' shims wrote down; an agent reads it as its own. Two
// servers in one folder would end and forget each other's jobs, so a server takes it first.
#include <string>

#include "core/base/result.h"

namespace takt::server {

class FolderLock {
 public:
  // Errors: conflict (a running takt has it; names its pid), forbidden, io. The file <folder>/lock
  // stays when the lock goes with the process: its content means nothing then.
  static Result<FolderLock> take(const std::string& folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace takt::server
