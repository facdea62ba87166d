#pragma once
// In which order waiting jobs are looked at: tier, then fair share between users, then age, then
// id.
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/model/policy.h"
#include "core/schedule/snapshot.h"

namespace takt::schedule {

// How much of GPUs a grant holds, in milli-GPUs: a share counts with the larger of its memory and
// its compute fraction, a MIG instance with its memory fraction.
std::int64_t milli_gpus(const Grant& grant, const std::vector<SeenNode>& nodes);

// A device that was just given counts as if it had been held this long, so that one user's burst
// does not take everything in the instant before usage is measurable.
inline constexpr std::int64_t kFreshUseSeconds = 600;

// Hands out jobs one by one. What is placed is charged to its user at once, so that the next choice
// in the same pass already sees it.
class Queue {
 public:
  Queue(const Snapshot& snapshot, Instant now);
  const WaitingJob* next();  // nullptr: all were looked at
  void charge(const std::string& user, std::int64_t milli_gpu_seconds);

 private:
  // Who is next: the least use, then the oldest submission.
  struct Turn {
    std::int64_t usage = 0;
    Instant submitted;
    JobId job;
    std::string user;
    auto operator<=>(const Turn&) const = default;
  };
  using UserJobs =
      std::map<std::string, std::vector<const WaitingJob*>>;  // by age, taken from the back
  std::map<Tier, UserJobs> tiers_;
  std::map<std::string, std::int64_t> usage_;
  std::set<Turn> order_;  // of the present tier
  std::optional<Tier> tier_;
  void enter_next_tier();
  std::optional<Turn> turn_of(const std::string& user);
};

// Usage decays by half every half-life. Integer arithmetic, linear between the halvings (at most 6
// % above the exact power), so that every machine computes the same.
std::int64_t decayed(std::int64_t usage, Duration age, Duration half_life);

}  // namespace takt::schedule
