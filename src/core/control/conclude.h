#pragma once
// What follows the end of an attempt: another one, or the end of its job. Internal to control.
#include "core/control/state.h"

namespace takt::control {

// Before a retry; also the longest that a waiting job can be away from it.
inline constexpr Duration kRetryPauseMax = seconds(64);

// A Requeued or a Finished.
Fact conclude(const Job& job, const ExitStatus& exit, Instant now);

}  // namespace takt::control
