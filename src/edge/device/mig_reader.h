#pragma once
// The hardware partitions of one GPU, read back from the driver: what is there, never what was
// asked for.
#include <string>

#include "core/base/quantities.h"
#include "core/model/device.h"
#include "edge/device/gpu_calls.h"

namespace takt::device {

// `device_total`: the whole GPU's memory, which profile names are derived from; zero when unknown.
MigState read_mig(GpuCalls& calls, nvmlDevice_t device, const std::string& model,
                  Bytes device_total);

}  // namespace takt::device
