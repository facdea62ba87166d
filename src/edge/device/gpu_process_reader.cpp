#include "edge/device/gpu_process_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <tuple>

namespace takt::device {
namespace {

constexpr std::size_t kShort = sizeof(nvmlProcessInfo_t);
constexpr std::size_t kLong = sizeof(nvmlProcessInfo_driver535_t);
constexpr std::int64_t kLargestPid = 1 << 22;  // Linux: PID_MAX_LIMIT
constexpr unsigned kMostInstanceNumber = 1024;
constexpr std::size_t kFirstCapacity = 64;
constexpr std::size_t kMostCapacity = 1 << 16;

std::vector<ListedProcess> read_entries(std::span<const std::byte> buffer, std::size_t count,
                                        std::size_t stride) {
  std::vector<ListedProcess> entries;
  for (std::size_t i = 0; i < count; ++i) {
    nvmlProcessInfo_t info;
    std::memcpy(&info, buffer.data() + i * stride, sizeof info);
    entries.push_back({info.pid, info.usedGpuMemory, info.gpuInstanceId, info.computeInstanceId});
  }
  return entries;
}

bool make_sense(const std::vector<ListedProcess>& entries) {
  const auto instance_ok = [](unsigned id) {
    return id == NVML_NO_INSTANCE_ID || id < kMostInstanceNumber;
  };
  return std::all_of(entries.begin(), entries.end(), [&](const ListedProcess& entry) {
    return entry.pid > 0 && entry.pid <= kLargestPid && instance_ok(entry.gpu_instance) &&
           instance_ok(entry.compute_instance);
  });
}

using ProcessList = Measured<std::vector<ListedProcess>>;

// Asks with growing buffers until the list fits. `parse` turns the filled buffer into entries.
template <class Info, class Parse>
ProcessList list_with(
    GpuCalls& calls, const NvmlFunction<nvmlReturn_t (*)(nvmlDevice_t, unsigned*, Info*)>& function,
    nvmlDevice_t device, Parse parse) {
  for (std::size_t capacity = kFirstCapacity; capacity <= kMostCapacity; capacity *= 4) {
    std::vector<std::byte> buffer(capacity * kLong, kUntouched);
    unsigned count = static_cast<unsigned>(capacity);
    const nvmlReturn_t code =
        calls.call(function, device, &count, reinterpret_cast<Info*>(buffer.data()));
    if (code == NVML_ERROR_INSUFFICIENT_SIZE) continue;
    if (code != NVML_SUCCESS) return tl::make_unexpected(nvml_missing(function.name, code));
    if (count > capacity)
      return missing(MissingKind::out_of_range,
                     fmt::format("{} says it wrote {} entries into room for {}", function.name,
                                 count, capacity));
    return parse(buffer, count);
  }
  return missing(MissingKind::out_of_range, fmt::format("{}: the list never fits", function.name));
}

ProcessList parse_oldest(std::span<const std::byte> buffer, std::size_t count) {
  std::vector<ListedProcess> entries;
  for (std::size_t i = 0; i < count; ++i) {
    nvmlProcessInfo_v1_t info;
    std::memcpy(&info, buffer.data() + i * sizeof info, sizeof info);
    entries.push_back({info.pid, info.usedGpuMemory, NVML_NO_INSTANCE_ID, NVML_NO_INSTANCE_ID});
  }
  if (!make_sense(entries))
    return missing(MissingKind::out_of_range, "impossible pids in the list");
  return entries;
}

// The newest form of the call that the driver has.
template <class Newest, class Older, class Oldest>
ProcessList list_processes(GpuCalls& calls, nvmlDevice_t device, const Newest& newest,
                           const Older& older, const Oldest& oldest) {
  if (newest.pointer != nullptr) return list_with(calls, newest, device, parse_process_list);
  if (older.pointer != nullptr) return list_with(calls, older, device, parse_process_list);
  return list_with(calls, oldest, device, parse_oldest);
}

Measured<Bytes> memory_of(const ListedProcess& entry, Bytes memory_total) {
  if (entry.memory == NVML_VALUE_NOT_AVAILABLE_ULL)
    return missing(MissingKind::not_supported, "the driver does not tell a process's memory here");
  const std::uint64_t most = memory_total.value > 0 ? static_cast<std::uint64_t>(memory_total.value)
                                                    : std::uint64_t{1} << 50;
  if (entry.memory > most)
    return missing(MissingKind::out_of_range,
                   fmt::format("the driver gave {} bytes for one process", entry.memory));
  return Bytes{static_cast<std::int64_t>(entry.memory)};
}

std::optional<DeviceUuid> instance_of(const ListedProcess& entry, const MigState& mig) {
  for (const MigInstance& instance : mig.instances)
    if (instance.gpu_instance == entry.gpu_instance &&
        instance.compute_instance == entry.compute_instance && !instance.uuid.value.empty())
      return instance.uuid;
  return std::nullopt;
}

}  // namespace

Measured<std::vector<ListedProcess>> parse_process_list(std::span<const std::byte> buffer,
                                                        std::size_t count) {
  if (count == 0) return std::vector<ListedProcess>{};
  const std::vector<ListedProcess> with_short = read_entries(buffer, count, kShort);
  if (make_sense(with_short)) return with_short;
  // The end of the last long entry: written only by a driver with long entries.
  const auto end_of_long = buffer.subspan(count * kLong - (kLong - kShort), kLong - kShort);
  const bool untouched = std::all_of(end_of_long.begin(), end_of_long.end(),
                                     [](std::byte b) { return b == kUntouched; });
  std::vector<ListedProcess> with_long = read_entries(buffer, count, kLong);
  if (!untouched && make_sense(with_long)) return with_long;
  return missing(MissingKind::out_of_range,
                 "the driver's process list makes no sense in any known layout");
}

Measured<std::vector<GpuProcess>> GpuProcessReader::read(GpuCalls& calls, nvmlDevice_t device,
                                                         const MigState& mig, Bytes memory_total,
                                                         Instant now) {
  auto processes = list(calls, device, mig, memory_total);
  if (processes && !processes->empty() && !mig.enabled.value_or(false))
    read_utilization(calls, device, now, *processes);
  return processes;
}

Measured<std::vector<GpuProcess>> GpuProcessReader::list(GpuCalls& calls, nvmlDevice_t device,
                                                         const MigState& mig,
                                                         Bytes memory_total) const {
  const NvmlFunctions& f = calls.functions();
  const ProcessList compute = list_processes(
      calls, device, f.nvmlDeviceGetComputeRunningProcesses_v3,
      f.nvmlDeviceGetComputeRunningProcesses_v2, f.nvmlDeviceGetComputeRunningProcesses);
  if (!compute) return tl::make_unexpected(compute.error());
  ProcessList graphics = list_processes(calls, device, f.nvmlDeviceGetGraphicsRunningProcesses_v3,
                                        f.nvmlDeviceGetGraphicsRunningProcesses_v2,
                                        f.nvmlDeviceGetGraphicsRunningProcesses);
  if (!graphics && graphics.error().kind == MissingKind::not_supported)
    graphics = std::vector<ListedProcess>{};  // a card without a graphics part
  if (!graphics) return tl::make_unexpected(graphics.error());

  std::map<std::tuple<std::int64_t, unsigned, unsigned>, GpuProcess> merged;
  const auto add = [&](const ListedProcess& entry, ProcessKind kind) {
    const auto [at, fresh] =
        merged.try_emplace({entry.pid, entry.gpu_instance, entry.compute_instance});
    GpuProcess& process = at->second;
    const Measured<Bytes> memory = memory_of(entry, memory_total);
    if (fresh) {
      process.pid = entry.pid;
      process.kind = kind;
      process.mig_instance = instance_of(entry, mig);
      process.memory = memory;
      return;
    }
    if (process.kind != kind) process.kind = ProcessKind::both;
    // Both lists give the same process's whole memory: the larger one, not the sum.
    if (memory && (!process.memory || *process.memory < *memory)) process.memory = memory;
  };
  for (const ListedProcess& entry : *compute) add(entry, ProcessKind::compute);
  for (const ListedProcess& entry : *graphics) add(entry, ProcessKind::graphics);

  std::vector<GpuProcess> processes;
  for (auto& [key, process] : merged) processes.push_back(std::move(process));
  if (mig.enabled.value_or(false))
    for (GpuProcess& process : processes)
      process.sm_percent =
          missing(MissingKind::not_supported, "not told for processes on a MIG GPU");
  return processes;
}

void GpuProcessReader::read_utilization(GpuCalls& calls, nvmlDevice_t device, Instant now,
                                        std::vector<GpuProcess>& processes) {
  if (newest_sample_ == 0)
    newest_sample_ = static_cast<std::uint64_t>(std::max<std::int64_t>((now - seconds(1)).us, 1));
  const auto& function = calls.functions().nvmlDeviceGetProcessUtilization;
  std::vector<nvmlProcessUtilizationSample_t> samples(256);
  unsigned count = static_cast<unsigned>(samples.size());
  nvmlReturn_t code = calls.call(function, device, samples.data(), &count, newest_sample_);
  if (code == NVML_ERROR_INSUFFICIENT_SIZE && count <= kMostCapacity) {
    samples.resize(std::max<std::size_t>(count, samples.size()));
    count = static_cast<unsigned>(samples.size());
    code = calls.call(function, device, samples.data(), &count, newest_sample_);
  }
  // "Not found" is the driver's way to say that nobody used the GPU since then.
  if (code == NVML_ERROR_NOT_FOUND) count = 0;
  if (code != NVML_SUCCESS && code != NVML_ERROR_NOT_FOUND) {
    for (GpuProcess& process : processes)
      process.sm_percent = tl::make_unexpected(nvml_missing(function.name, code));
    return;
  }
  samples.resize(std::min<std::size_t>(count, samples.size()));
  struct Sum {
    unsigned total = 0;
    unsigned samples = 0;
    bool nonsense = false;
  };
  std::map<std::int64_t, Sum> sums;
  std::uint64_t newest = newest_sample_;
  for (const nvmlProcessUtilizationSample_t& sample : samples) {
    if (sample.timeStamp <= newest_sample_) continue;  // seen before
    newest = std::max<std::uint64_t>(newest, sample.timeStamp);
    Sum& sum = sums[sample.pid];
    sum.nonsense = sum.nonsense || sample.smUtil > 100;
    sum.total += std::min(sample.smUtil, 100u);
    ++sum.samples;
  }
  newest_sample_ = newest;
  for (GpuProcess& process : processes) {
    const auto at = sums.find(process.pid);
    if (at == sums.end())
      process.sm_percent = 0;  // only processes with use are listed
    else if (at->second.nonsense)
      process.sm_percent = missing(MissingKind::out_of_range, "above 100 %");
    else
      process.sm_percent =
          static_cast<int>((at->second.total + at->second.samples / 2) / at->second.samples);
  }
}

}  // namespace takt::device
