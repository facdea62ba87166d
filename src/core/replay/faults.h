#pragma once
// What goes wrong, once a step each, as often as the fault likes. The catalogue names them.
#include "core/base/random.h"

namespace takt::replay {

class Engine;
class World;

Engine& any_engine(World& world, Random& random);

// fault_network.cpp
void messages_are_lost(World& world, Random& random);
void messages_are_doubled(World& world, Random& random);
void messages_are_late(World& world, Random& random);
void messages_are_reordered(World& world, Random& random);
void nodes_are_cut_off(World& world, Random& random);
// fault_disk.cpp
void disk_is_full(World& world, Random& random);
void syncs_fail(World& world, Random& random);
void syncs_are_slow(World& world, Random& random);
// fault_process.cpp
void controller_is_killed(World& world, Random& random);
void controller_is_killed_within_a_turn(World& world, Random& random);
void agents_are_killed(World& world, Random& random);
void shims_are_killed(World& world, Random& random);
void shims_are_slow(World& world, Random& random);
void records_are_full(World& world, Random& random);
// fault_host.cpp
void hosts_crash(World& world, Random& random);
void gpus_are_lost(World& world, Random& random);
void gpus_hang(World& world, Random& random);
void gpus_are_hot(World& world, Random& random);
void strangers_use_gpus(World& world, Random& random);
// fault_clock.cpp
void clocks_are_set(World& world, Random& random);
void clocks_drift(World& world, Random& random);
void clocks_differ(World& world, Random& random);

}  // namespace takt::replay
