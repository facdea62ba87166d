// Clocks are set, run unevenly, and differ from host to host.
#include "core/replay/faults.h"
#include "core/replay/world.h"

namespace takt::replay {
namespace {

HostClock& any_clock(World& world, Random& random) {
  if (world.local() || random.one_in(3)) return world.server_clock();
  return any_engine(world, random).machine().clock;
}

}  // namespace

void clocks_are_set(World& world, Random& random) {
  if (!random.one_in(100)) return;
  const Duration most = random.one_in(3) ? hours(24) : seconds(40);
  any_clock(world, random).set(random.between({-most.us}, most));
}

void clocks_drift(World& world, Random& random) {
  if (random.one_in(100)) any_clock(world, random).drift(random.below(401) - 200, world.now);
}

void clocks_differ(World& world, Random& random) {
  if (world.steps != 1) return;
  for (const auto& engine : world.engines)
    engine->machine().clock.set(random.between(hours(-30), hours(30)));
}

}  // namespace takt::replay
