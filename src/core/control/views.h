#pragma once
// Computes what is shown, from the state and the last plan.
#include <vector>

#include "core/control/reconcile.h"
#include "core/control/state.h"
#include "core/control/view.h"

namespace takt::control {

struct Sight {
  const State& state;
  const Cluster& cluster;
  const schedule::Plan& plan;  // the last one
  const Policy& policy;
  const Places& places;
  Instant now;
};

JobView job_view(const Sight& sight, const Job& job);
// Jobs that are not over, by id; with `all` also those that are.
std::vector<JobView> job_views(const Sight& sight, bool all);
std::vector<NodeView> node_views(const Cluster& cluster);
Counts counts(const State& state);

}  // namespace takt::control
