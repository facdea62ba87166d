#pragma once
// What is played: engine, workloads and faults by name. All of it follows from a seed, or is
// written down in a file to play it again.
#include <cstdint>
#include <string>
#include <vector>

namespace takt::replay {

// `local`: one node, whose host is the controller's too. `leased`: several nodes far away, which
// end what they have when they hear nothing. `placing`: a cluster that places by itself, as Slurm
// does.
enum class EngineKind { local, leased, placing };

struct Scenario {
  std::uint64_t seed = 1;
  int steps = 1000;
  EngineKind engine = EngineKind::local;
  int nodes = 1;
  std::vector<std::string> workloads;
  std::vector<std::string> faults;
  bool operator==(const Scenario&) const = default;
};

// Drawn from the catalogue.
Scenario scenario_of(std::uint64_t seed, int steps);
std::string to_string(EngineKind kind);
// A sentence when a name is not in the catalogue or a number is out of range; else empty.
std::string problem_of(const Scenario& scenario);

}  // namespace takt::replay
