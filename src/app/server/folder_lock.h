#pragma once
// The runtime folder holds what the jobs' shims wrote down; an agent reads it as its own. Two
// servers in one folder would end and forget each other's jobs, so a server takes it first.
#include <string>

#include "core/base/result.h"
#include "edge/store/file_lock.h"

namespace takt::server {

// Takes <folder>/lock. Errors: conflict (a running takt has it; names its pid), forbidden, io.
Result<store::FileLock> lock_runtime_folder(const std::string& folder);

}  // namespace takt::server
