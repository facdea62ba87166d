#pragma once
// Copies a job's output to a descriptor while it is written.
#include <string>

#include "app/cli/patience.h"
#include "core/base/result.h"

namespace takt::cli {

// stream: "stdout" or "stderr". Follows until the job has ended, or ends at the end of what there
// is. A server that is away is waited for, and the output goes on where it stopped. Ends early, and
// well, when `patience` is told to leave. Errors: of the server; unavailable when patience ended;
// io when the descriptor cannot be written (no sentence: its reader went away).
Result<void> copy_log(const std::string& job, const std::string& stream, int fd, bool follow,
                      Patience& patience);

}  // namespace takt::cli
