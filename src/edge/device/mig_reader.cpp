#include "edge/device/mig_reader.h"

#include <array>
#include <optional>

#include "core/model/mig_facts.h"

namespace takt::device {
namespace {

constexpr unsigned kMostInstances = 64;  // of one GPU; today's have 7

struct Slices {
  int of_gpu_instance = 0;
  int of_compute_instance = 0;
  bool media_extensions = false;  // the optical flow engine comes only with "+me" and the whole GPU
  Bytes memory;
};

struct Whole {  // the GPU that is partitioned
  std::string model;
  Bytes memory;
};

// Memory slices of a profile where the driver does not tell the placement; 0 is "unknown".
int size_of(const std::string& profile, const Whole& whole) {
  const auto family = mig_family_for(whole.model, whole.memory);
  if (!family) return 0;
  for (const MigProfile& known : family->profiles)
    if (known.name == profile) return known.memory_slices;
  return 0;
}

std::optional<Slices> read_slices(GpuCalls& calls, nvmlDevice_t instance) {
  nvmlDeviceAttributes_t attributes{};
  if (calls.call(calls.functions().nvmlDeviceGetAttributes_v2, instance, &attributes) !=
      NVML_SUCCESS)
    return std::nullopt;
  return Slices{static_cast<int>(attributes.gpuInstanceSliceCount),
                static_cast<int>(attributes.computeInstanceSliceCount),
                attributes.sharedOfaCount > 0,
                mebibytes(static_cast<std::int64_t>(attributes.memorySizeMB))};
}

// Where the instance lies. Needs more rights than the rest with some drivers; -1 is "unknown".
void read_placement(GpuCalls& calls, nvmlDevice_t device, MigInstance& instance) {
  instance.start = -1;
  nvmlGpuInstance_t handle = nullptr;
  nvmlGpuInstanceInfo_t info{};
  const NvmlFunctions& f = calls.functions();
  if (calls.call(f.nvmlDeviceGetGpuInstanceById, device, instance.gpu_instance, &handle) !=
      NVML_SUCCESS)
    return;
  if (calls.call(f.nvmlGpuInstanceGetInfo, handle, &info) != NVML_SUCCESS) return;
  if (info.placement.start >= kMostInstances || info.placement.size > kMostInstances) return;
  instance.start = static_cast<int>(info.placement.start);
  instance.size = static_cast<int>(info.placement.size);
}

void read_memory(GpuCalls& calls, nvmlDevice_t handle, MigInstance& instance) {
  nvmlMemory_t memory{};
  const auto& function = calls.functions().nvmlDeviceGetMemoryInfo;
  const nvmlReturn_t code = calls.call(function, handle, &memory);
  if (code != NVML_SUCCESS) {
    instance.memory_total = instance.memory_used =
        tl::make_unexpected(nvml_missing(function.name, code));
    return;
  }
  constexpr unsigned long long most = 1ull << 50;
  if (memory.total == 0 || memory.total > most || memory.used > memory.total) {
    instance.memory_total = instance.memory_used =
        missing(MissingKind::out_of_range,
                fmt::format("{} gave {} of {} bytes", function.name, memory.used, memory.total));
    return;
  }
  instance.memory_total = Bytes{static_cast<std::int64_t>(memory.total)};
  instance.memory_used = Bytes{static_cast<std::int64_t>(memory.used)};
}

MigInstance read_instance(GpuCalls& calls, nvmlDevice_t device, nvmlDevice_t handle,
                          const Whole& whole) {
  const NvmlFunctions& f = calls.functions();
  MigInstance instance;
  std::array<char, NVML_DEVICE_UUID_V2_BUFFER_SIZE> uuid{};
  if (calls.call(f.nvmlDeviceGetUUID, handle, uuid.data(),
                 static_cast<unsigned>(uuid.size() - 1)) == NVML_SUCCESS)
    instance.uuid.value = uuid.data();
  instance.gpu_instance = calls.ask(f.nvmlDeviceGetGpuInstanceId, NVML_NO_INSTANCE_ID, handle)
                              .value_or(NVML_NO_INSTANCE_ID);
  instance.compute_instance =
      calls.ask(f.nvmlDeviceGetComputeInstanceId, NVML_NO_INSTANCE_ID, handle)
          .value_or(NVML_NO_INSTANCE_ID);
  read_placement(calls, device, instance);
  read_memory(calls, handle, instance);
  const auto slices = read_slices(calls, handle);
  if (!slices) return instance;
  instance.compute_slices = slices->of_compute_instance;
  instance.profile = mig_profile_name({.gpu_slices = slices->of_gpu_instance,
                                       .compute_slices = slices->of_compute_instance,
                                       .memory = slices->memory,
                                       .device_memory = whole.memory,
                                       .media_extensions = slices->media_extensions});
  if (instance.size == 0) instance.size = size_of(instance.profile, whole);
  return instance;
}

}  // namespace

MigState read_mig(GpuCalls& calls, nvmlDevice_t device, const std::string& model,
                  Bytes device_total) {
  const NvmlFunctions& f = calls.functions();
  MigState state;
  unsigned current = 0;
  unsigned pending = 0;
  const nvmlReturn_t code = calls.call(f.nvmlDeviceGetMigMode, device, &current, &pending);
  if (code != NVML_SUCCESS) {
    state.enabled = state.pending =
        tl::make_unexpected(nvml_missing(f.nvmlDeviceGetMigMode.name, code));
    return state;
  }
  state.enabled = current == NVML_FEATURE_ENABLED;
  state.pending = pending == NVML_FEATURE_ENABLED;
  if (!*state.enabled) return state;
  const unsigned most =
      calls.ask(f.nvmlDeviceGetMaxMigDeviceCount, kMostInstances, device).value_or(0u);
  for (unsigned i = 0; i < most; ++i) {
    nvmlDevice_t handle = nullptr;
    // Places without an instance answer NOT_FOUND; instances need not be the first ones.
    if (calls.call(f.nvmlDeviceGetMigDeviceHandleByIndex, device, i, &handle) == NVML_SUCCESS)
      state.instances.push_back(read_instance(calls, device, handle, {model, device_total}));
  }
  return state;
}

}  // namespace takt::device
