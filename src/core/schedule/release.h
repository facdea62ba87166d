#pragma once
// For an engine that chooses devices by itself (Slurm): which jobs are handed to it, in which
// order, and why the others wait. takt's queue decides the order; so that it still counts, only so
// many wait over there at a time.
#include "core/model/policy.h"
#include "core/schedule/snapshot.h"

namespace takt::schedule {

// `snapshot.engine` is set. Placements have no devices: the engine tells them later.
Plan release(const Snapshot& snapshot, const Policy& policy, Instant now);

}  // namespace takt::schedule
