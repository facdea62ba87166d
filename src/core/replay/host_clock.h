#pragma once
// The clocks of a simulated host: a wall clock that people set and that runs unevenly, and the time
// since boot, which only runs unevenly.
#include <cstdint>

#include "core/base/quantities.h"

namespace takt::replay {

class HostClock {
 public:
  explicit HostClock(Instant truth) : since_(truth), wall_(truth), boot_(truth) {}

  Instant wall(Instant truth) const { return wall_ + run(truth); }
  Duration since_boot(Instant truth) const { return up_ + run(truth); }
  void set(Duration by) { wall_ = wall_ + by; }
  // Parts per million that it runs too fast. Crystals stay below 200.
  void drift(std::int64_t ppm, Instant truth) {
    keep(truth);
    ppm_ = ppm;
  }
  void boot(Instant truth) {
    keep(truth);
    up_ = {};
    boot_ = truth;
  }
  Instant booted() const { return boot_; }

 private:
  Duration run(Instant truth) const {
    const std::int64_t us = (truth - since_).us;
    return {us + us / 1'000'000 * ppm_};
  }
  void keep(Instant truth) {
    wall_ = wall(truth);
    up_ = since_boot(truth);
    since_ = truth;
  }

  Instant since_;  // truth, when what follows held
  Instant wall_;
  Duration up_;
  Instant boot_;  // truth
  std::int64_t ppm_ = 0;
};

}  // namespace takt::replay
