#pragma once
// One simulated engine: what sits between the controller and a machine.
#include <vector>

#include "core/replay/machine.h"
#include "core/replay/network.h"

namespace takt::replay {

class Engine {
 public:
  virtual ~Engine() = default;
  virtual Machine& machine() = 0;
  // Takes what has arrived, does its work, reports.
  virtual void advance(Instant truth, Network& network) = 0;
  // Its process ends; another one begins after `pause`.
  virtual void die(Instant truth, Duration pause) = 0;
  virtual void heal(Instant truth) = 0;
};

}  // namespace takt::replay
