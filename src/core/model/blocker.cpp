#include "core/model/blocker.h"

namespace takt {

std::string to_string(BlockerKind kind) {
  switch (kind) {
    case BlockerKind::no_agent: return "no-agent";
    case BlockerKind::no_gpu: return "no-gpu";
    case BlockerKind::no_such_type: return "no-such-type";
    case BlockerKind::larger_than_cluster: return "larger-than-cluster";
    case BlockerKind::gpus_busy: return "gpus-busy";
    case BlockerKind::cpus_short: return "cpus-short";
    case BlockerKind::memory_short: return "memory-short";
    case BlockerKind::foreign_process: return "foreign-process";
    case BlockerKind::device_unhealthy: return "device-unhealthy";
    case BlockerKind::draining: return "draining";
    case BlockerKind::behind_reservation: return "behind-reservation";
    case BlockerKind::isolation_unavailable: return "isolation-unavailable";
    case BlockerKind::held: return "held";
    case BlockerKind::backing_off: return "backing-off";
    case BlockerKind::engine_queue_full: break;
  }
  return "engine-queue-full";
}

}  // namespace takt
