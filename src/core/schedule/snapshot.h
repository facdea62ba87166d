#pragma once
// Everything a decision sees, as plain values, and everything it answers. Same snapshot, policy,
// time and seed in: the same plan out, byte for byte.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/quantities.h"
#include "core/model/blocker.h"
#include "core/model/device.h"
#include "core/model/grant.h"
#include "core/model/job_spec.h"

namespace takt::schedule {

// A job that could start. The spec is resolved: name, tier and isolation are set.
struct WaitingJob {
  JobId id;
  std::shared_ptr<const JobSpec> spec;
  std::string user;
  Instant submitted;
  Instant not_before;  // a retry backs off until then
};

// What an attempt holds until its devices are proven empty.
struct Holding {
  AttemptId attempt;
  std::string job_name;
  std::string user;
  Tier tier = Tier::experimental;
  Grant grant;
  Instant since;
  std::optional<Instant> expected_end;  // an estimate
  bool ended = false;                   // its main process is gone, the rest is being proven gone
};

struct SeenNode {
  Node node;
  bool reachable = true;
};

struct Snapshot {
  std::uint64_t version = 0;  // of the ledger; `admit` drops a plan made for another one
  std::vector<WaitingJob> waiting;
  std::vector<Holding> holdings;
  std::vector<SeenNode> nodes;
  std::map<std::string, std::int64_t> usage;  // user -> decayed milli-GPU-seconds, without holdings
};

struct Placement {
  JobId job;
  Grant grant;
  std::vector<std::string> decision;  // the rules applied, in order, as sentences
};

// Why jobs wait. Jobs of one shape share one explanation.
struct Explanation {
  std::vector<Blocker> blockers;
  std::vector<std::string> decision;
  std::optional<Instant> expected_start;
  std::string expected_start_unknown;  // why there is none
};

struct Plan {
  std::uint64_t version = 0;
  std::vector<Placement> placements;
  std::map<JobId, std::shared_ptr<const Explanation>> waiting;
};

}  // namespace takt::schedule
