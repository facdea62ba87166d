#pragma once
// Why a job does not run: every blocker with the number that is short and one action.
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/quantities.h"

namespace takt {

enum class BlockerKind {
  no_agent,             // no node has reported yet, or it is unreachable
  no_gpu,               // no GPU at all
  no_such_type,         // none of the asked types is here
  larger_than_cluster,  // no machine can meet it, ever
  gpus_busy,            // whole GPUs are held by other jobs
  cpus_short,           // CPUs or memory of the host
  memory_short,         // no device has that much free memory
  foreign_process,      // a process that takt did not start is on the device
  device_unhealthy,
  draining,            // the last attempt's processes are not yet gone
  behind_reservation,  // would delay the job that holds the pool's reservation
  isolation_unavailable,
  held,
  backing_off,        // a retry waits before it starts again
  engine_queue_full,  // an engine that places by itself has as many waiting as it may
};

struct Blocker {
  BlockerKind kind = BlockerKind::gpus_busy;
  std::string needed;     // "2 GPUs", "40 GiB on one device"
  std::string available;  // "1 free of 4; gpu1 is held by job 17 (bob)"
  std::string action;     // one thing that helps
  bool operator==(const Blocker&) const = default;
};

std::string to_string(BlockerKind kind);

}  // namespace takt
