#include "core/model/job_spec.h"

namespace takt {

std::string to_string(Tier tier) {
  switch (tier) {
    case Tier::serving: return "serving";
    case Tier::training: return "training";
    case Tier::batch: return "batch";
    case Tier::experimental: break;
  }
  return "experimental";
}

std::string to_string(Isolation isolation) {
  switch (isolation) {
    case Isolation::strict: return "strict";
    case Isolation::limited: return "limited";
    case Isolation::watched: break;
  }
  return "watched";
}

std::string to_string(RetryCause cause) {
  switch (cause) {
    case RetryCause::node_lost: return "node-lost";
    case RetryCause::preempted: return "preempted";
    case RetryCause::oom: return "oom";
    case RetryCause::failed: break;
  }
  return "failed";
}

std::optional<Tier> tier_from(const std::string& word) {
  for (Tier t : {Tier::serving, Tier::training, Tier::batch, Tier::experimental})
    if (to_string(t) == word) return t;
  return std::nullopt;
}

std::optional<Isolation> isolation_from(const std::string& word) {
  for (Isolation i : {Isolation::strict, Isolation::limited, Isolation::watched})
    if (to_string(i) == word) return i;
  return std::nullopt;
}

std::optional<RetryCause> retry_cause_from(const std::string& word) {
  for (RetryCause c :
       {RetryCause::node_lost, RetryCause::preempted, RetryCause::oom, RetryCause::failed})
    if (to_string(c) == word) return c;
  return std::nullopt;
}

}  // namespace takt
