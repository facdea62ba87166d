#pragma once
// What both passes (decide, release) say alike of jobs that wait. Internal to schedule.
#include <string>

#include "core/schedule/snapshot.h"

namespace takt::schedule {

// Equal for jobs that ask for the same and so get the same answer on the same ledger.
std::string shape_of(const WaitingJob& job);
// A retry that is not due yet.
Explanation backing_off(const WaitingJob& job, Instant now);

}  // namespace takt::schedule
