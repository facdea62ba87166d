#pragma once
// What people ask and what nodes tell becomes facts here. Pure: nothing is changed, nothing is
// done; the loop journals the facts and folds them.
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

// What a command comes to. On refusal `facts` is empty and nothing was changed.
struct Accepted {
  std::vector<Fact> facts;
  std::vector<JobId> jobs;  // what Submit made
  std::vector<std::string> warnings;
};

Result<Accepted> handle(const State& state, const Cluster& cluster, const Policy& policy,
                        const Submit& command, Instant now);
Result<Accepted> handle(const State& state, const Policy& policy, const Cancel& command,
                        Instant now);
Result<Accepted> handle(const State& state, const Policy& policy, const CancelAll& command,
                        Instant now);

// Compares what a node reports with what should be: starts, exits, losses, releases, and processes
// that outgrow their share.
std::vector<Fact> handle(const State& state, const Policy& policy, const NodeReport& report,
                         Instant now);

// What the passing of time brings: hard stops.
std::vector<Fact> tick(const State& state, const Policy& policy, Instant now);

// Stores a report; true when it changes what could be placed. An engine hands a node's reports on
// in the order in which they were made.
bool observe(Cluster& cluster, const NodeReport& report, Instant now);
// Marks silent nodes unreachable; true when one changed.
bool observe_silence(Cluster& cluster, const Policy& policy, Instant now);

}  // namespace takt::control
