#pragma once
// Wanted against observed. `snapshot` hands the state to the scheduler, `admit` turns its plan into
// facts, `reconcile` says what engines are to do. All pure and idempotent.
#include <optional>
#include <string>
#include <vector>

#include "core/control/state.h"
#include "core/model/policy.h"
#include "core/schedule/snapshot.h"

namespace takt::control {

schedule::Snapshot snapshot(const State& state, const Cluster& cluster, const Policy& policy,
                            Instant now);

// Re-checks the plan against the state as it is. A plan for another version, or one that would
// grant a device twice, is dropped whole: `dropped` says why.
struct Admission {
  std::vector<Fact> facts;
  std::string dropped;
};
Admission admit(const State& state, const Cluster& cluster, const Policy& policy,
                const schedule::Plan& plan, Instant now);

// Where files of attempts go.
struct Places {
  std::string logs;    // folder for output files
  std::string socket;  // for TAKT_SOCKET of jobs
  // Of one output file on disk: policy's limits.log_bytes_max.
  Bytes log_max = mebibytes(256);
};

// What a node's engine is to do now, given its last report. Repeating it changes nothing. Attempts
// that were granted before `start_from` are not started any more (hand_over_from).
std::vector<Effect> reconcile(const State& state, const NodeReport& report, const Places& places,
                              std::optional<Instant> start_from = std::nullopt);
// An engine that forgets takes an attempt that it has forgotten for a new one. So a hand-over is
// repeated for half of the time that it remembers; the other half is for it to show up before it
// counts as lost. None: it forgets nothing by itself.
std::optional<Instant> hand_over_from(const EngineInfo& engine, Instant now);

// Everything an attempt needs, resolved: environment (PRODUCT: "A job finds in its environment"),
// files, identity.
LaunchOrder launch_order(const State& state, const Job& job, const Places& places);
std::string stdout_path(const Places& places, AttemptId attempt);
std::string stderr_path(const Places& places, AttemptId attempt);

}  // namespace takt::control
