#pragma once
// All workloads, faults and checkers by name. Adding one is a function in a file of its kind and a
// line here.
#include <memory>
#include <string>
#include <vector>

#include "core/replay/checker.h"

namespace takt::replay {

class World;

struct Part {
  const char* name;
  void (*act)(World&, Random&);  // once a step
  bool only_remote = false;      // makes no sense where controller and node share a host
};

const std::vector<Part>& workloads();
const std::vector<Part>& faults();
const Part* find(const std::vector<Part>& parts, const std::string& name);

// A fresh one of each.
std::vector<std::unique_ptr<Checker>> all_checkers();

}  // namespace takt::replay
