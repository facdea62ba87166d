#pragma once
// Reads plans, for the tests of this room.
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/schedule/decide.h"
#include "core/schedule/ledger.h"
#include "support/cluster_builder.h"

namespace takt::schedule {

inline Plan plan_for(const Snapshot& s, const Policy& policy = {}) {
  return decide(s, policy, testing::t0);
}

inline const Grant* grant_of(const Plan& plan, JobId job) {
  for (const Placement& p : plan.placements)
    if (p.job == job) return &p.grant;
  return nullptr;
}
inline bool starts(const Plan& plan, JobId job) { return grant_of(plan, job) != nullptr; }

// Indices of the devices it got: the builder's UUIDs end in them.
inline std::set<unsigned> gpus_of(const Plan& plan, JobId job) {
  std::set<unsigned> indices;
  if (const Grant* grant = grant_of(plan, job))
    for (const DeviceGrant& d : grant->devices)
      indices.insert(
          static_cast<unsigned>(std::stoul(d.gpu.value.substr(d.gpu.value.find_last_of('-') + 1))));
  return indices;
}

inline std::vector<Blocker> blockers_of(const Plan& plan, JobId job) {
  const auto it = plan.waiting.find(job);
  return it == plan.waiting.end() ? std::vector<Blocker>{} : it->second->blockers;
}

inline std::string text_of(const std::vector<Blocker>& blockers) {
  std::string text;
  for (const Blocker& b : blockers)
    text += to_string(b.kind) + ": needs " + b.needed + "; " + b.available + "; " + b.action + "\n";
  return text;
}
inline std::string why(const Plan& plan, JobId job) { return text_of(blockers_of(plan, job)); }

inline bool blocked_by(const Plan& plan, JobId job, BlockerKind kind) {
  for (const Blocker& b : blockers_of(plan, job))
    if (b.kind == kind) return true;
  return false;
}

// A plan as text, byte for byte: for comparing two of them.
std::string text_of(const Plan& plan);

}  // namespace takt::schedule
