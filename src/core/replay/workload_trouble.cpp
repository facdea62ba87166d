// Jobs that fail, hang, overstep, and what nobody can be given.
#include "core/replay/workloads.h"
#include "core/replay/world.h"

namespace takt::replay {

void failing_jobs(World& world, Random& random) {
  if (!random.one_in(25)) return;
  JobSpec spec = whole(job_of(random.one_in(6) ? kind::absent : kind::failing), 1);
  if (!random.one_in(4))
    spec.retry = {{RetryCause::failed, RetryCause::node_lost}, 1 + random.below(3)};
  world.users.submit(spec, user(random.below(3)));
}

void limited_jobs(World& world, Random& random) {
  if (!random.one_in(30)) return;
  JobSpec spec = whole(job_of(random.one_in(2) ? kind::forever : kind::steady), 1);
  spec.kill_after = seconds(3 + random.below(40));
  world.users.submit(spec, user(random.below(3)));
}

void stubborn_jobs(World& world, Random& random) {
  if (!random.one_in(50)) return;
  const char* what = random.one_in(3) ? kind::stuck : kind::stubborn;
  JobSpec spec = whole(job_of(what), 1);
  if (random.one_in(2)) spec.kill_after = seconds(5 + random.below(20));
  if (random.one_in(3)) {
    spec = share(job_of(kind::greedy), gibibytes(2 + random.below(8)));
    spec.isolation = Isolation::watched;
    spec.tier = Tier::batch;
    if (random.one_in(2)) spec.retry = {{RetryCause::oom}, 1};
  }
  world.users.submit(spec, user(random.below(3)));
}

void odd_requests(World& world, Random& random) {
  if (!random.one_in(40)) return;
  JobSpec spec = job_of(kind::brief);
  switch (random.below(5)) {
    case 0: spec = whole(spec, 99); break;
    case 1: spec.gpus.types = {"no-such-gpu"}; break;
    case 2: spec.argv.clear(); break;
    case 3: spec = whole(spec, -1); break;
    default: spec.array = {{"none", {}}}; break;
  }
  world.users.submit(spec, user(random.below(3)));
}

}  // namespace takt::replay
