#pragma once
// What follows the end of an attempt: another one, or the end of its job. Internal to control.
#include "core/control/state.h"

namespace takt::control {

// A Requeued or a Finished.
Fact conclude(const Job& job, const ExitStatus& exit, Instant now);

}  // namespace takt::control
