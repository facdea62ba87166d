// People change their minds.
#include "core/replay/workloads.h"
#include "core/replay/world.h"

namespace takt::replay {

void people_who_cancel(World& world, Random& random) {
  if (random.one_in(25))
    if (const auto job = world.users.a_job(random))
      world.users.cancel(*job, user(random.below(4) - 1));
  if (random.one_in(300)) world.users.cancel_all(user(random.below(3)));
}

void people_who_hold(World& world, Random& random) {
  const auto job = random.one_in(25) ? world.users.a_job(random) : std::nullopt;
  if (!job) return;
  const control::Identity who = user(random.below(4) - 1);
  if (random.one_in(2))
    world.users.hold(*job, who);
  else
    world.users.release(*job, who);
}

}  // namespace takt::replay
