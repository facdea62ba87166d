// Messages are lost, late, doubled, reordered; nodes are cut off.
#include "core/replay/faults.h"
#include "core/replay/world.h"

namespace takt::replay {

void messages_are_lost(World& world, Random& random) {
  if (random.one_in(40)) world.network.weather.lost_percent = 10 + random.below(50);
  if (random.one_in(40)) world.network.weather.lost_percent = 0;
}

void messages_are_doubled(World& world, Random&) { world.network.weather.doubled_percent = 30; }

void messages_are_late(World& world, Random& random) {
  if (!random.one_in(30)) return;
  const bool very = random.one_in(4);
  world.network.weather.late_max = random.between(milliseconds(10), very ? minutes(2) : seconds(8));
}

void messages_are_reordered(World& world, Random&) {
  Weather& weather = world.network.weather;
  weather.in_order = false;
  if (weather.late_max < milliseconds(300)) weather.late_max = milliseconds(300);
}

void nodes_are_cut_off(World& world, Random& random) {
  if (!random.one_in(60)) return;
  Engine& engine = any_engine(world, random);
  const Duration longest = random.one_in(3) ? minutes(4) : seconds(20);
  world.network.cut(engine.machine().id(), world.now + random.between(seconds(1), longest));
}

}  // namespace takt::replay
