#pragma once
// Starting a shim, and speaking to one that runs.
#include <cstdint>
#include <string>

#include "core/base/quantities.h"

namespace takt::launch {

struct ShimAnswer {
  enum class Kind {
    started,    // the job is on record and released
    known,      // it was on record before: nothing was done
    recorded,   // it will not run, and the exit record says why
    failed,     // it will not run, and nothing is on record: message says why
    undecided,  // no answer within the deadline: the shim may still be at work
  };
  Kind kind = Kind::failed;
  std::string message;
  // The process that forked the shim, where it has not ended yet: to be waited for later. 0: none.
  std::int64_t unreaped = 0;
};

// Starts the shim on a record folder, detached from this process in every way, and waits for its
// answer, never longer than `deadline`. Safe in programs with threads.
ShimAnswer start_shim(const std::string& shim_path, const std::string& folder, Duration deadline);

// Sends a signal to the process that began at `start`, never to another that got its number later.
// False: it is gone, or the kernel refuses.
bool signal_process(std::int64_t pid, std::int64_t start, int signal);

}  // namespace takt::launch
