#pragma once
// The state of the controller: exactly what folding the journal gives, nothing else. What nodes
// report is beside it (Cluster), is never journaled, and is replaced by each report.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "core/control/engine_contract.h"
#include "core/control/fact.h"
#include "core/control/view.h"

namespace takt::control {

struct Attempt {
  AttemptId id;
  std::uint64_t generation = 0;
  Grant grant;
  Instant granted;
  std::optional<Instant> started;
  std::int64_t pid = 0;
  std::optional<StopRequested> stop;
  std::optional<ExitStatus> exit;
  std::optional<Instant> ended;
  bool released = false;
  bool active() const { return !released; }
};

struct Job {
  JobId id;
  // Neither ever changes. The tasks of one submission share one spec; `accepted` has an empty one.
  std::shared_ptr<const JobAccepted> accepted;
  std::shared_ptr<const JobSpec> shared_spec;
  std::uint32_t attempts = 0;
  std::optional<Attempt> attempt;  // the last one
  bool cancel_requested = false;
  std::string cancelled_by;
  std::optional<Finished> finished;
  Instant not_before;

  const JobSpec& spec() const { return *shared_spec; }
  const Identity& submitter() const { return accepted->submitter; }
  bool waiting() const { return !finished && (!attempt || attempt->exit.has_value()); }
  // Its last attempt still holds devices.
  bool holding() const { return attempt && attempt->active(); }
  JobState state() const;
};

// Decayed milli-GPU-seconds at an instant; brought forward when it is read (schedule/queue.h).
struct Usage {
  std::int64_t amount = 0;
  Instant at;
  bool operator==(const Usage&) const = default;
};

// Finished jobs kept in the live state; older ones leave it.
inline constexpr std::size_t kFinishedKept = 20'000;

struct State {
  std::uint64_t next_job = 1;
  std::uint64_t next_generation = 1;
  std::uint64_t ledger_version =
      0;  // grows with everything a plan depends on; not journaled itself
  std::map<JobId, Job> jobs;
  std::set<JobId> waiting;     // could start: no attempt under way
  std::set<JobId> holding;     // hold devices
  std::deque<JobId> finished;  // oldest first
  std::map<std::string, Usage> usage;
};

// The only writer of State. It decides nothing: whatever is a matter of choice is in the fact.
void fold(State& state, const Fact& fact, Duration fair_share_half_life);

// The shortest list of facts that folds to an equal state: a snapshot.
std::vector<Fact> facts_of(const State& state);

// What the nodes reported last.
struct SeenReport {
  NodeReport report;
  Instant received;
  bool reachable = true;
};
struct Cluster {
  std::map<NodeId, SeenReport> nodes;
  std::uint64_t version = 0;  // grows when a report changes what could be placed
};

}  // namespace takt::control
