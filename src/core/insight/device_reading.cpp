#include "core/insight/device_reading.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/insight/attempt_meter.h"

namespace takt::insight {
namespace {

// The driver rounds: a ratio this little above 1 is 1.
constexpr double ratio_tolerance = 1e-6;
// Idle boards show up to 0.9 GiB of the driver's own where it is not told apart (FACTS B2: memory).
constexpr Bytes driver_memory_max = gibibytes(1);

struct Owners {
  std::vector<const GpuProcess*> own;
  std::vector<const GpuProcess*> all;  // on this device, with those of others
  bool others_compute = false;         // a compute process of somebody else is on it
};

const Gpu* find_gpu(const Node& node, const DeviceUuid& uuid) {
  const auto it = std::find_if(node.gpus.begin(), node.gpus.end(),
                               [&](const Gpu& gpu) { return gpu.uuid == uuid; });
  return it == node.gpus.end() ? nullptr : &*it;
}

bool only_device_on_gpu(const Grant& grant, const DeviceUuid& gpu) {
  return std::count_if(grant.devices.begin(), grant.devices.end(),
                       [&](const DeviceGrant& d) { return d.gpu == gpu; }) == 1;
}

// Whether a process of the GPU sits on the device granted. A process whose instance the driver does
// not tell can only be placed if it is ours and we have a single device on that GPU.
bool on_device(const GpuProcess& process, const DeviceGrant& device, bool ours, bool single) {
  if (device.kind != DeviceKind::mig_instance) return true;
  if (process.mig_instance) return *process.mig_instance == device.uuid;
  return ours && single;
}

Owners owners_on(const std::vector<GpuProcess>& processes, const DeviceGrant& device,
                 AttemptId attempt, bool single) {
  Owners owners;
  for (const GpuProcess& process : processes) {
    const bool ours = process.attempt == attempt;
    if (!on_device(process, device, ours, single)) continue;
    owners.all.push_back(&process);
    if (ours) owners.own.push_back(&process);
    // A desktop's display server is on every workstation's GPU and computes nothing that counts.
    if (!ours && process.kind != ProcessKind::graphics) owners.others_compute = true;
  }
  return owners;
}

Measured<Bytes> process_memory(const Owners& owners, const Measured<Bytes>& total) {
  Bytes own;
  for (const GpuProcess* process : owners.own) {
    if (!process->memory) return tl::make_unexpected(process->memory.error());
    if (process->memory->value < 0)
      return missing(MissingKind::out_of_range, "negative memory of a process");
    own += *process->memory;
  }
  Bytes all;
  for (const GpuProcess* process : owners.all)
    if (process->memory && process->memory->value > 0) all += *process->memory;
  // A driver that tells more than there is tells nothing (driver 535's process list, FACTS C1 19).
  if (total && all > *total)
    return missing(MissingKind::out_of_range, "the processes hold more than the device has");
  return own;
}

// SM share of our processes, of the device. Scaled down if the driver's numbers of all processes
// add to more than the device, so that the owners' shares never do.
Measured<double> process_busy(const Owners& owners) {
  double own = 0;
  double all = 0;
  for (const GpuProcess* process : owners.all) {
    const bool ours = std::find(owners.own.begin(), owners.own.end(), process) != owners.own.end();
    if (!process->sm_percent) {
      if (ours) return tl::make_unexpected(process->sm_percent.error());
      continue;
    }
    const bool possible = *process->sm_percent >= 0 && *process->sm_percent <= 100;
    if (!possible && ours)
      return missing(MissingKind::out_of_range, "SM share of a process outside 0-100");
    if (!possible) continue;
    all += *process->sm_percent;
    if (ours) own += *process->sm_percent;
  }
  return own / std::max(all, 100.0);
}

Measured<double> checked_ratio(const Measured<double>& value) {
  if (!value) return value;
  if (!std::isfinite(*value) || *value < 0 || *value > 1 + ratio_tolerance)
    return missing(MissingKind::out_of_range, "a ratio outside 0-1");
  return std::min(*value, 1.0);
}

Measured<double> gpu_util(const Gpu& gpu) {
  // FACTS B1, field 203: not valid with MIG.
  if (gpu.mig.enabled && *gpu.mig.enabled)
    return missing(MissingKind::not_supported, "GPU_UTIL is not valid on a GPU with MIG");
  if (!gpu.utilization_percent) return tl::make_unexpected(gpu.utilization_percent.error());
  if (*gpu.utilization_percent < 0 || *gpu.utilization_percent > 100)
    return missing(MissingKind::out_of_range, "GPU_UTIL outside 0-100");
  return *gpu.utilization_percent / 100.0;
}

Measured<Bytes> checked_used(const Measured<Bytes>& used, const Measured<Bytes>& total) {
  if (used && (used->value < 0 || (total && *used > *total)))
    return missing(MissingKind::out_of_range, "the device says it uses more memory than it has");
  return used;
}

bool draws_like_working(const Gpu& gpu, const MeterOptions& options) {
  if (!gpu.power_watts) return false;
  if (gpu.power_limit_watts && *gpu.power_limit_watts > 0)
    return *gpu.power_watts >= options.suspect_power_ratio * *gpu.power_limit_watts;
  return *gpu.power_watts >= options.suspect_power_watts;
}

void doubt_zero(Measured<double>& value) {
  if (value && *value <= 0)
    value = missing(MissingKind::out_of_range,
                    "suspect: zero, though a process is active and the power is far above idle");
}

// Numbers of the whole GPU: only for who has it alone.
void read_whole_gpu(DeviceReading& r, const Gpu& gpu) {
  r.busy[0] = checked_ratio(gpu.sm_active_ratio);
  r.busy[2] = gpu_util(gpu);
  r.tensor = checked_ratio(gpu.tensor_active_ratio);
  r.dram = checked_ratio(gpu.dram_active_ratio);
  r.device_memory = checked_used(gpu.memory_used, gpu.memory_total);
}

void refuse_device_numbers(DeviceReading& r, const Missing& why) {
  r.busy[0] = tl::make_unexpected(why);
  r.busy[2] = tl::make_unexpected(why);
  r.tensor = tl::make_unexpected(why);
  r.dram = tl::make_unexpected(why);
  r.device_memory = tl::make_unexpected(why);
}

Measured<Bytes> instance_memory(const Gpu& gpu, const DeviceUuid& uuid,
                                Measured<Bytes> MigInstance::*field) {
  for (const MigInstance& instance : gpu.mig.instances)
    if (instance.uuid == uuid) return instance.*field;
  return missing(MissingKind::not_found, "the MIG instance is not in the report");
}

void read_device_numbers(DeviceReading& r, const Gpu& gpu, const DeviceGrant& device,
                         const Owners& owners) {
  switch (device.kind) {
    case DeviceKind::whole_gpu: read_whole_gpu(r, gpu); break;
    case DeviceKind::mig_instance:
      // GPM and GPU_UTIL are the parent's; its numbers are never copied to an instance.
      refuse_device_numbers(r,
                            {MissingKind::not_supported,
                             "no number of the MIG instance itself; GPU_UTIL is not valid there"});
      r.device_memory = checked_used(instance_memory(gpu, device.uuid, &MigInstance::memory_used),
                                     instance_memory(gpu, device.uuid, &MigInstance::memory_total));
      break;
    case DeviceKind::share:
      refuse_device_numbers(r, {MissingKind::not_supported, "shared, not attributable"});
      break;
  }
  if (owners.others_compute)
    refuse_device_numbers(r,
                          {MissingKind::not_supported, "somebody else's process is on the device"});
}

}  // namespace

DeviceReading read_device(const Node& node, const Grant& grant, std::size_t index,
                          AttemptId attempt, const MeterOptions& options) {
  DeviceReading r;
  const DeviceGrant& device = grant.devices[index];
  const Gpu* gpu = find_gpu(node, device.gpu);
  if (gpu == nullptr) {
    const Missing lost{MissingKind::device_lost, "not in the report"};
    refuse_device_numbers(r, lost);
    r.process_memory = tl::make_unexpected(lost);
    r.busy[1] = tl::make_unexpected(lost);
    return r;
  }
  Owners owners;
  if (gpu->processes) {
    owners = owners_on(*gpu->processes, device, attempt, only_device_on_gpu(grant, device.gpu));
    const bool mig = device.kind == DeviceKind::mig_instance;
    r.process_memory =
        process_memory(owners, mig ? instance_memory(*gpu, device.uuid, &MigInstance::memory_total)
                                   : gpu->memory_total);
    r.busy[1] = process_busy(owners);
  } else {
    r.process_memory = tl::make_unexpected(gpu->processes.error());
    r.busy[1] = tl::make_unexpected(gpu->processes.error());
  }
  read_device_numbers(r, *gpu, device, owners);
  r.process_memory_seen = !owners.own.empty() && r.process_memory.has_value();
  r.process_busy_seen = !owners.own.empty() && r.busy[1].has_value();
  if (!owners.own.empty() && draws_like_working(*gpu, options) && !owners.others_compute &&
      device.kind == DeviceKind::whole_gpu)
    for (Measured<double>& value : r.busy) doubt_zero(value);
  r.holds_memory =
      (r.process_memory && r.process_memory->value > 0) ||
      (owners.own.empty() && r.device_memory && *r.device_memory > driver_memory_max) ||
      (!r.process_memory && r.device_memory && r.device_memory->value > 0);
  return r;
}

}  // namespace takt::insight
