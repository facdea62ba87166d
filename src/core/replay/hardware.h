#pragma once
// Nodes of simulated clusters: few GPUs of several kinds, one of them partitioned.
#include <string>

#include "core/model/device.h"

namespace takt::replay {

Node simulated_node(const std::string& name, int number);
// One node that stands for a cluster which places by itself.
Node simulated_cluster(const std::string& name);

}  // namespace takt::replay
