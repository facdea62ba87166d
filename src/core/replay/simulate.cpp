#include "core/replay/simulate.h"

#include <algorithm>

namespace takt::replay {
namespace {

// Of the calm. The longest that anything may take then: some attempts with their pauses, one after
// the other on one GPU.
constexpr int kCalmStepsMax = 4000;

}  // namespace

Outcome play(const Scenario& scenario, const FactText& text, Trace trace) {
  World world(scenario, text);
  world.trace = std::move(trace);
  for (int i = 0; i < scenario.steps && !world.violation; ++i) world.step();
  for (int i = 0; i < kCalmStepsMax && !world.violation; ++i) {
    world.calm_step();
    if (world.all_over()) break;
  }
  if (!world.violation) world.finish();
  Outcome outcome;
  outcome.scenario = scenario;
  outcome.violation = world.violation;
  outcome.steps = world.steps;
  outcome.print = world.print();
  outcome.jobs = world.users.known();
  outcome.launches = world.launches;
  outcome.crashes = world.crashes;
  outcome.facts = world.disk.size();
  return outcome;
}

namespace {

// Scenarios that have less in them, the most promising first.
std::vector<Scenario> smaller(const Outcome& failure) {
  std::vector<Scenario> all;
  const Scenario& s = failure.scenario;
  if (failure.violation->step < s.steps) {
    all.push_back(s);
    all.back().steps = failure.violation->step;
  }
  for (const auto part : {&Scenario::faults, &Scenario::workloads})
    for (std::size_t i = 0; i < (s.*part).size(); ++i) {
      if (part == &Scenario::workloads && s.workloads.size() == 1) continue;
      all.push_back(s);
      auto& names = all.back().*part;
      names.erase(names.begin() + static_cast<std::ptrdiff_t>(i));
    }
  if (s.nodes > 1) {
    all.push_back(s);
    --all.back().nodes;
  }
  if (s.steps > 50) {
    all.push_back(s);
    all.back().steps = s.steps / 2;
    all.push_back(s);
    all.back().steps = s.steps * 9 / 10;
  }
  return all;
}

}  // namespace

Outcome shrunk(Outcome failure, const FactText& text, int tries_max) {
  bool progress = true;
  while (progress) {
    progress = false;
    for (const Scenario& scenario : smaller(failure)) {
      if (tries_max-- <= 0) return failure;
      Outcome outcome = play(scenario, text);
      if (!outcome.violation || outcome.violation->checker != failure.violation->checker) continue;
      failure = std::move(outcome);
      progress = true;
      break;
    }
  }
  return failure;
}

}  // namespace takt::replay
