#pragma once
// Plays scenarios and makes those that fail smaller.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/replay/disk.h"
#include "core/replay/scenario.h"
#include "core/replay/world.h"

namespace takt::replay {

struct Outcome {
  Scenario scenario;
  std::optional<Violation> violation;
  int steps = 0;            // with those of the calm at the end
  std::uint64_t print = 0;  // equal for equal runs
  std::uint64_t jobs = 0;
  std::uint64_t launches = 0;
  std::uint64_t crashes = 0;
  std::uint64_t facts = 0;
};

// Is told what reaches the disk, and the true time since the beginning.
using Trace = std::function<void(Duration since, const std::vector<control::Fact>& facts)>;

// Its steps, then a calm in which everything works and all jobs must come to an end.
Outcome play(const Scenario& scenario, const FactText& text, Trace trace = {});

// Leaves out faults, workloads, nodes and steps as long as the same checker still objects; at most
// so many tries.
Outcome shrunk(Outcome failure, const FactText& text, int tries_max);

}  // namespace takt::replay
