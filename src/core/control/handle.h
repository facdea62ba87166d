#pragma once
// What people ask and what nodes tell becomes facts here. Pure: nothing is changed, nothing is
// done; the loop journals the facts and folds them.
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/control/state.h"
#include "core/model/policy.h"

namespace takt::control {

struct Submit {
  JobSpec spec;
  Identity submitter;
  Tier default_tier = Tier::batch;
  // Chosen by the client: the same one again is answered with the jobs that it made.
  std::string request = "";
};

struct Cancel {
  JobId job;
  Identity by;
  bool admin = false;
};
// All unfinished jobs of the caller.
struct CancelAll {
  Identity by;
};
// The job does not start (again) until it is released. One that runs goes on.
struct HoldJob {
  JobId job;
  Identity by;
  bool admin = false;
};
struct ReleaseJob {
  JobId job;
  Identity by;
  bool admin = false;
};
// The archive has these: they may leave the live state. Not for people.
struct Archive {
  std::vector<JobId> jobs;
};
using Command = std::variant<Submit, Cancel, CancelAll, HoldJob, ReleaseJob, Archive>;

// What a command comes to. On refusal `facts` is empty and nothing was changed.
struct Accepted {
  std::vector<Fact> facts;
  std::vector<JobId> jobs;  // what Submit made
  std::vector<std::string> warnings;
};

Result<Accepted> handle(const State& state, const Cluster& cluster, const Policy& policy,
                        const Command& command, Instant now);

// Compares what a node reports with what should be: starts, exits, losses, releases, and processes
// that outgrow their share. After `observe` of the same report.
std::vector<Fact> handle(const State& state, const Cluster& cluster, const Policy& policy,
                         const NodeReport& report, Instant now);

// What the passing of time brings: hard stops, attempts that outlive KILL, lost nodes.
std::vector<Fact> tick(const State& state, const Cluster& cluster, const Policy& policy,
                       Instant now);

// Stores a report; false when it is older than one that was stored, and then it is to be dropped.
bool observe(Cluster& cluster, const State& state, const NodeReport& report, Instant now);
// When a lease that was given out at `from` or before has surely ended on its node, by the
// controller's time: with 5 % for clocks that run unevenly (crystals differ by far less).
Instant lease_end(Duration lease, Instant from);
// Follows how long nodes have been silent.
void observe_silence(Cluster& cluster, const Policy& policy, Instant now);

// What the host's clocks say.
struct ClockReading {
  Instant wall;
  Duration since_boot;  // CLOCK_BOOTTIME: counts on while the wall clock is set
  std::string boot_id;
};
// When the wall clock was set: the fact that moves what is under way along. Smaller differences are
// left alone.
inline constexpr Duration kClockSetMin = seconds(1);
std::optional<ClockSet> clock_set(const State& state, const ClockReading& reading);
// The same for what is remembered of nodes. It goes by a mark of its own: a fact that could not be
// journaled and is made again moves nothing twice.
void observe_clock(Cluster& cluster, const ClockReading& reading);

// Finished jobs that are to leave the live state for the archive, at most so many, the oldest ends
// first. Those whose devices are not yet proven free stay.
std::vector<JobId> due_for_archive(const State& state, const FinishedRules& rules, Instant now,
                                   std::size_t at_most);

}  // namespace takt::control
