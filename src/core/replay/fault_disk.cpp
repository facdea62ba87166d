// The controller's disk is full, its syncs fail or are slow.
#include "core/replay/faults.h"
#include "core/replay/world.h"

namespace takt::replay {

void disk_is_full(World& world, Random& random) {
  if (world.disk.full)
    world.disk.full = !random.one_in(10);
  else
    world.disk.full = random.one_in(80);
}

void syncs_fail(World& world, Random& random) {
  if (random.one_in(30)) world.disk.failing_percent = random.one_in(2) ? 0 : 5 + random.below(60);
}

void syncs_are_slow(World& world, Random& random) {
  if (!random.one_in(50)) return;
  world.disk.slow_max = random.one_in(2) ? Duration{} : random.between(milliseconds(1), seconds(6));
}

}  // namespace takt::replay
