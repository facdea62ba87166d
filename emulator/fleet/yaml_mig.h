#pragma once
// The MIG part of a YAML fleet: mode and instances, placed as the card allows.
#include <string>

#include "fleet/fleet.h"
#include "fleet/gpu_models.h"
#include "fleet/yaml_fields.h"

namespace takt::emulator {

void read_mig(const YAML::Node& node, const std::string& where, Problems& problems, FleetGpu& gpu,
              const GpuModel& model);

}  // namespace takt::emulator
