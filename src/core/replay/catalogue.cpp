#include "core/replay/catalogue.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/replay/checkers.h"
#include "core/replay/faults.h"
#include "core/replay/workloads.h"
#include "core/replay/world.h"

namespace takt::replay {

const std::vector<Part>& workloads() {
  static const std::vector<Part> all = {
      {"brief-jobs", brief_jobs},
      {"gangs", gangs},
      {"shares-and-slices", shares_and_slices},
      {"arrays", arrays},
      {"services", services},
      {"failing-jobs", failing_jobs},
      {"limited-jobs", limited_jobs},
      {"stubborn-jobs", stubborn_jobs},
      {"odd-requests", odd_requests},
      {"people-who-cancel", people_who_cancel},
      {"people-who-hold", people_who_hold},
  };
  return all;
}

const std::vector<Part>& faults() {
  static const std::vector<Part> all = {
      {"messages-are-lost", messages_are_lost, true},
      {"messages-are-doubled", messages_are_doubled, true},
      {"messages-are-late", messages_are_late, true},
      {"messages-are-reordered", messages_are_reordered, true},
      {"nodes-are-cut-off", nodes_are_cut_off, true},
      {"disk-is-full", disk_is_full},
      {"syncs-fail", syncs_fail},
      {"syncs-are-slow", syncs_are_slow},
      {"controller-is-killed", controller_is_killed},
      {"controller-is-killed-within-a-turn", controller_is_killed_within_a_turn},
      {"agents-are-killed", agents_are_killed},
      {"shims-are-killed", shims_are_killed},
      {"shims-are-slow", shims_are_slow},
      {"records-are-full", records_are_full},
      {"hosts-crash", hosts_crash},
      {"gpus-are-lost", gpus_are_lost},
      {"gpus-hang", gpus_hang},
      {"gpus-are-hot", gpus_are_hot},
      {"strangers-use-gpus", strangers_use_gpus},
      {"clocks-are-set", clocks_are_set},
      {"clocks-drift", clocks_drift},
      {"clocks-differ", clocks_differ, true},
  };
  return all;
}

const Part* find(const std::vector<Part>& parts, const std::string& name) {
  const auto it =
      std::find_if(parts.begin(), parts.end(), [&](const Part& p) { return name == p.name; });
  return it == parts.end() ? nullptr : &*it;
}

std::vector<std::unique_ptr<Checker>> all_checkers() {
  std::vector<std::unique_ptr<Checker>> all;
  all.push_back(check_devices());
  all.push_back(check_launches());
  all.push_back(check_promises());
  all.push_back(check_orders());
  all.push_back(check_reasons());
  all.push_back(check_evidence());
  all.push_back(check_stops());
  all.push_back(check_outcomes());
  all.push_back(check_views());
  all.push_back(check_replay());
  all.push_back(check_ledger());
  all.push_back(check_ends());
  return all;
}

std::string to_string(EngineKind kind) {
  switch (kind) {
    case EngineKind::local: return "local";
    case EngineKind::leased: return "leased";
    case EngineKind::placing: break;
  }
  return "placing";
}

namespace {

std::vector<std::string> some_of(const std::vector<Part>& parts, int least, int most, bool remote,
                                 Random& random) {
  std::vector<std::string> names;
  const int count = least + random.below(most - least + 1);
  for (int tries = 0; tries < 100 && static_cast<int>(names.size()) < count; ++tries) {
    const Part& part = parts[random.below(parts.size())];
    if (part.only_remote && !remote) continue;
    if (std::find(names.begin(), names.end(), part.name) == names.end())
      names.emplace_back(part.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Scenario scenario_of(std::uint64_t seed, int steps) {
  Random random = Random(seed).fork("scenario");
  Scenario s;
  s.seed = seed;
  s.steps = steps;
  const int engine = random.below(100);
  s.engine = engine < 40   ? EngineKind::local
             : engine < 80 ? EngineKind::leased
                           : EngineKind::placing;
  const bool remote = s.engine != EngineKind::local;
  s.nodes = s.engine == EngineKind::leased ? 1 + random.below(3) : 1;
  s.workloads = some_of(workloads(), 2, 5, remote, random);
  if (random.chance(70)) s.workloads.emplace_back("brief-jobs");
  std::sort(s.workloads.begin(), s.workloads.end());
  s.workloads.erase(std::unique(s.workloads.begin(), s.workloads.end()), s.workloads.end());
  s.faults = some_of(faults(), 0, 6, remote, random);
  return s;
}

std::string problem_of(const Scenario& s) {
  if (s.steps < 1 || s.steps > 1'000'000)
    return fmt::format("steps: {} is not within 1 and 1000000", s.steps);
  const int nodes_max = s.engine == EngineKind::leased ? 8 : 1;
  if (s.nodes < 1 || s.nodes > nodes_max)
    return fmt::format("nodes: {} is not within 1 and {}, which is what the engine {} may have",
                       s.nodes, nodes_max, to_string(s.engine));
  for (const auto& [what, parts, names] :
       {std::tuple{"workloads", &workloads(), &s.workloads}, {"faults", &faults(), &s.faults}})
    for (const std::string& name : *names)
      if (find(*parts, name) == nullptr)
        return fmt::format("{}: there is no '{}': `takt simulate --list` names all", what, name);
  return "";
}

}  // namespace takt::replay
