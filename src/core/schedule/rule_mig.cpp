// Rule 2: an existing MIG instance, by the memory that the device reports and not by its name.
#include <fmt/core.h>

#include <algorithm>

#include "core/schedule/rules.h"

namespace takt::schedule {
namespace {

bool taken(const Request& request, const DeviceState& device, const MigInstance& instance) {
  return std::any_of(device.holders.begin(), device.holders.end(), [&](const Holder& h) {
    return (h.device.uuid == instance.uuid || h.device.kind == DeviceKind::whole_gpu) &&
           !ends_before(request, h);
  });
}

}  // namespace

bool covers(const Request& request, const Gpu& gpu, const MigInstance& instance) {
  if (!instance.memory_total || *instance.memory_total < *request.spec->gpus.memory) return false;
  if (!request.spec->gpus.compute_percent) return true;
  // Compute slices of 7 on most parts; of as many as the largest instance has otherwise.
  const int slices = gpu.model.find("A30") != std::string::npos ||
                             gpu.model.find("RTX PRO 6000") != std::string::npos
                         ? 4
                         : 7;
  return instance.compute_slices * 100 >= *request.spec->gpus.compute_percent * slices;
}

RuleAnswer mig_instance(const Request& request, const NodeState& node) {
  RuleAnswer answer;
  const DeviceState* best_device = nullptr;
  const MigInstance* best = nullptr;
  std::int64_t largest = 0;
  int busy = 0;
  for (const DeviceState& device : node.devices) {
    if (!device.mig() || device.closed || !type_fits(request, *device.gpu)) continue;
    for (const MigInstance& instance : device.gpu->mig.instances) {
      if (instance.memory_total) largest = std::max(largest, instance.memory_total->value);
      if (!covers(request, *device.gpu, instance)) continue;
      if (taken(request, device, instance)) {
        ++busy;
        continue;
      }
      if (best == nullptr || *instance.memory_total < *best->memory_total) {
        best = &instance;
        best_device = &device;
      }
    }
  }
  if (best != nullptr) {
    answer.devices = std::vector<DeviceGrant>{
        {DeviceKind::mig_instance, best->uuid, best_device->gpu->uuid, *best->memory_total, 100}};
    answer.isolation = Isolation::strict;
    answer.because =
        fmt::format("the smallest free MIG instance that covers it: {} {} with {} MiB",
                    best_device->label, best->profile, best->memory_total->value >> 20);
    answer.score = static_cast<int>(best->memory_total->value >> 20);
    return answer;
  }
  if (largest > 0)
    answer.blockers.push_back(
        {BlockerKind::memory_short,
         fmt::format("{} MiB on one MIG instance", request.spec->gpus.memory->value >> 20),
         node.prefix + (busy > 0 ? fmt::format("{} instance{} would do, all in use", busy,
                                               busy == 1 ? "" : "s")
                                 : fmt::format("the largest instance has {} MiB", largest >> 20)),
         busy > 0 ? "wait for one of them" : "ask for less memory"});
  return answer;
}

}  // namespace takt::schedule
