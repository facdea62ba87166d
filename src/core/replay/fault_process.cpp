// Controller, agents and shims are killed; shims are slow, their folder is full.
#include "core/replay/faults.h"
#include "core/replay/world.h"

namespace takt::replay {
namespace {

Duration pause(Random& random) {
  return random.between(milliseconds(100), random.one_in(8) ? minutes(2) : seconds(6));
}

}  // namespace

Engine& any_engine(World& world, Random& random) {
  return *world.engines[random.below(world.engines.size())];
}

void controller_is_killed(World& world, Random& random) {
  if (random.one_in(70)) world.kill_server(pause(random));
}

void controller_is_killed_within_a_turn(World& world, Random& random) {
  if (random.one_in(50))
    world.server.die_at(static_cast<Moment>(random.below(kMoments)), pause(random));
}

void agents_are_killed(World& world, Random& random) {
  if (random.one_in(40)) world.kill_engine(any_engine(world, random), pause(random));
}

void shims_are_killed(World& world, Random& random) {
  if (random.one_in(30)) (void)any_engine(world, random).machine().kill_a_shim(random);
}

void shims_are_slow(World& world, Random& random) {
  if (random.one_in(30))
    any_engine(world, random).machine().slow_shims(random.between(milliseconds(10), seconds(9)));
}

void records_are_full(World& world, Random& random) {
  if (random.one_in(60)) any_engine(world, random).machine().no_records(random.one_in(2));
}

}  // namespace takt::replay
