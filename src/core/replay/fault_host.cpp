// Hosts lose power; GPUs fall off the bus, hang, get hot, are used by strangers.
#include "core/replay/faults.h"
#include "core/replay/world.h"

namespace takt::replay {
namespace {

void any_gpu(World& world, Random& random, void (*what)(Machine&, std::size_t, World&, Random&)) {
  Machine& machine = any_engine(world, random).machine();
  what(machine, random.below(machine.gpus()), world, random);
}

Instant a_while(World& world, Random& random) {
  return world.now + random.between(seconds(2), random.one_in(4) ? minutes(3) : seconds(30));
}

}  // namespace

void hosts_crash(World& world, Random& random) {
  if (!random.one_in(250)) return;
  world.crash_host(any_engine(world, random),
                   random.between(seconds(5), random.one_in(3) ? minutes(5) : seconds(40)));
}

void gpus_are_lost(World& world, Random& random) {
  if (!random.one_in(80)) return;
  any_gpu(world, random, [](Machine& machine, std::size_t gpu, World& w, Random& r) {
    machine.sicken(gpu, GpuHealth::lost, a_while(w, r), w.now);
  });
}

void gpus_hang(World& world, Random& random) {
  if (!random.one_in(60)) return;
  any_gpu(world, random, [](Machine& machine, std::size_t gpu, World& w, Random& r) {
    machine.sicken(gpu, GpuHealth::unresponsive, a_while(w, r), w.now);
  });
}

void gpus_are_hot(World& world, Random& random) {
  if (!random.one_in(40)) return;
  any_gpu(world, random, [](Machine& machine, std::size_t gpu, World& w, Random& r) {
    machine.heat(gpu, a_while(w, r));
  });
}

void strangers_use_gpus(World& world, Random& random) {
  if (!random.one_in(40)) return;
  any_gpu(world, random, [](Machine& machine, std::size_t gpu, World& w, Random& r) {
    machine.occupy(gpu, a_while(w, r));
  });
}

}  // namespace takt::replay
