#pragma once
// What must hold, watched from outside: checkers see what is synced, published, answered, told to
// engines, and what truly happens on machines. One idea each, in files checker_*.cpp.
#include <memory>
#include <string>
#include <vector>

#include "core/control/engine_contract.h"
#include "core/control/fact.h"
#include "core/control/handle.h"
#include "core/replay/machine.h"

namespace takt::replay {

class World;

class Checker {
 public:
  virtual ~Checker() = default;
  virtual const char* name() const = 0;
  virtual void synced(World&, const std::vector<control::Fact>&) {}
  virtual void published(World&) {}
  virtual void answered(World&, const control::Command&, const Result<control::Accepted>&) {}
  virtual void told(World&, const NodeId&, const std::vector<control::Effect>&) {}
  virtual void recovered(World&) {}
  virtual void began(World&, const Execution&) {}
  virtual void told_to_stop(World&, const Execution&) {}
  virtual void step(World&) {}
  // When everything was mended and all that could end has ended.
  virtual void end(World&) {}
};

}  // namespace takt::replay
