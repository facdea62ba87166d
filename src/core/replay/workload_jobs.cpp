// Jobs as they should be.
#include "core/replay/workloads.h"
#include "core/replay/world.h"

namespace takt::replay {

JobSpec job_of(const char* kind) {
  JobSpec spec;
  spec.argv = {kind};
  spec.command_text = kind;
  spec.workdir = "/";
  return spec;
}

JobSpec whole(JobSpec spec, int gpus) {
  spec.gpus.count = gpus;
  return spec;
}

JobSpec share(JobSpec spec, Bytes memory) {
  spec.gpus.memory = memory;
  return spec;
}

void brief_jobs(World& world, Random& random) {
  if (!random.one_in(12)) return;
  JobSpec spec = job_of(kind::brief);
  if (!random.one_in(4)) spec = whole(spec, 1);
  if (random.one_in(3)) spec.time = seconds(10 + random.below(100));
  world.users.submit(spec, user(random.below(3)));
}

void gangs(World& world, Random& random) {
  if (!random.one_in(50)) return;
  JobSpec spec = whole(job_of(kind::steady), 1 + random.below(2));
  spec.tier = Tier::training;
  spec.time = minutes(1 + random.below(5));
  spec.retry = {{RetryCause::node_lost}, 3};
  world.users.submit(spec, user(random.below(3)));
}

void shares_and_slices(World& world, Random& random) {
  if (!random.one_in(25)) return;
  JobSpec spec =
      share(job_of(random.one_in(3) ? kind::steady : kind::brief), gibibytes(1 + random.below(18)));
  spec.tier = static_cast<Tier>(1 + random.below(3));
  if (random.one_in(2)) spec.isolation = Isolation::strict;
  if (!spec.isolation && random.one_in(3)) spec.gpus.compute_percent = 10 + random.below(60);
  world.users.submit(spec, user(random.below(3)));
}

void arrays(World& world, Random& random) {
  if (!random.one_in(90)) return;
  JobSpec spec = whole(job_of(random.one_in(2) ? kind::brief : kind::failing), 1);
  spec.array = {{"seed", {"0", "1", "2"}}};
  if (random.one_in(2)) spec.array["rate"] = {"1", "2"};
  world.users.submit(spec, user(random.below(3)));
}

void services(World& world, Random& random) {
  if (!random.one_in(150)) return;
  JobSpec spec = share(job_of(kind::forever), gibibytes(2 + random.below(10)));
  spec.tier = Tier::serving;
  spec.isolation = Isolation::strict;
  if (random.one_in(3)) spec.replicas = 2;
  spec.retry = {{RetryCause::node_lost, RetryCause::failed}, 5};
  world.users.submit(spec, user(random.below(3)));
}

}  // namespace takt::replay
