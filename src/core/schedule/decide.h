#pragma once
// One scheduling pass: which waiting jobs start now and where, and why the others wait.
#include "core/model/policy.h"
#include "core/schedule/place.h"
#include "core/schedule/snapshot.h"

namespace takt::schedule {

Plan decide(const Snapshot& snapshot, const Policy& policy, Instant now);

// How long the job is expected to run: its own estimate, else its tier's default; none for serving.
std::optional<Duration> estimate(const JobSpec& spec, const Policy& policy);

}  // namespace takt::schedule
