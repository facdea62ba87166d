#pragma once
// What must hold after every crash, judged by what takt shows, what it acknowledged, and what the
// jobs wrote themselves. Pure, so that each check can be shown a violation.
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "crash/workload.h"

namespace takt::crash {

struct Violation {
  enum class Kind {
    lost,     // acknowledged, or run, and not there
    twice,    // accepted or started more often than it was asked for
    killed,   // it ran, and did not come to its end though nobody cancelled it
    granted,  // a device was given to two at the same time
    outcome,  // what takt shows is not what happened
    left,     // something is left behind
    other,
  };
  Kind kind = Kind::other;
  std::string sentence;
};
using Violations = std::vector<Violation>;

struct Evidence {
  const nlohmann::json& jobs;     // of `takt ps --all --limit 0 --json`
  std::vector<Testimony> before;  // testimonies that were there before takt was asked
  std::vector<Testimony> after;
  const Workload& workload;
  const std::set<std::string>& shims_killed;  // the attempts
  bool all_over = false;                      // every job must be
  // Jobs that are over may have left the archive.
  bool may_be_forgotten = false;
};

Violations check(const Evidence& evidence);
// Attempts that had one device at one time, and together more of it than it has: as much as the
// largest grant, a whole one, has.
Violations check_grants(const std::vector<Testimony>& testimonies);

}  // namespace takt::crash
