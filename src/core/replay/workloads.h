#pragma once
// Who asks for what, once a step each. The catalogue names them.
#include "core/base/random.h"
#include "core/model/job_spec.h"

namespace takt::replay {

class World;

// As a user sends it: tier and isolation open unless the workload chooses.
JobSpec job_of(const char* kind);
JobSpec whole(JobSpec spec, int gpus);
JobSpec share(JobSpec spec, Bytes memory);

// workload_jobs.cpp
void brief_jobs(World& world, Random& random);
void gangs(World& world, Random& random);
void shares_and_slices(World& world, Random& random);
void arrays(World& world, Random& random);
void services(World& world, Random& random);
// workload_trouble.cpp
void failing_jobs(World& world, Random& random);
void limited_jobs(World& world, Random& random);
void stubborn_jobs(World& world, Random& random);
void odd_requests(World& world, Random& random);
// workload_people.cpp
void people_who_cancel(World& world, Random& random);
void people_who_hold(World& world, Random& random);

}  // namespace takt::replay
