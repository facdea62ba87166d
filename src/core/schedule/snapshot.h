#pragma once
// Everything a decision sees, as plain values, and everything it answers. Same snapshot, policy,
// time and seed in: the same plan out, byte for byte.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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

// An engine that chooses devices by itself, and how many of our attempts wait there.
struct PlacingEngine {
  std::string name;
  NodeId node;  // as which it reports
  bool reachable = false;
  std::size_t waiting = 0;
};

struct Snapshot {
  std::uint64_t version = 0;  // of the ledger; `admit` drops a plan made for another one
  std::vector<WaitingJob> waiting;
  std::vector<Holding> holdings;
  std::vector<SeenNode> nodes;
  std::optional<PlacingEngine> engine;        // none: the placing is ours
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

// Why each job waits, by job. A pass fills it in any order, each job once, and settles it; a list,
// since a pass over a long queue makes thousands of entries and few of them are read.
class Reasons {
 public:
  using Entry = std::pair<JobId, std::shared_ptr<const Explanation>>;
  void add(JobId job, std::shared_ptr<const Explanation> why) {
    entries_.emplace_back(job, std::move(why));
  }
  void reserve(std::size_t jobs) { entries_.reserve(jobs); }
  // What follows holds from then on.
  void settle() {
    const auto by_job = [](const Entry& a, const Entry& b) { return a.first < b.first; };
    if (!std::is_sorted(entries_.begin(), entries_.end(), by_job))
      std::sort(entries_.begin(), entries_.end(), by_job);
  }
  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  using const_iterator = std::vector<Entry>::const_iterator;
  using value_type = Entry;
  const_iterator begin() const { return entries_.begin(); }
  const_iterator end() const { return entries_.end(); }
  const_iterator find(JobId job) const {
    const auto it = std::lower_bound(begin(), end(), job,
                                     [](const Entry& entry, JobId id) { return entry.first < id; });
    return it != end() && it->first == job ? it : end();
  }

 private:
  std::vector<Entry> entries_;
};

struct Plan {
  std::uint64_t version = 0;
  std::vector<Placement> placements;
  Reasons waiting;
};

}  // namespace takt::schedule
