#pragma once
// Copies a job's output to a descriptor while it is written.
#include <atomic>
#include <string>

#include "core/base/result.h"

namespace takt::cli {

// `follow`: until the job has ended (or `leave` is set); otherwise what is there now. `stream` is
// "stdout" or "stderr". Uses a connection of its own.
Result<void> copy_log(const std::string& job, const std::string& stream, int fd, bool follow,
                      const std::atomic<bool>& leave);

}  // namespace takt::cli
