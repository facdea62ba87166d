// The functions of the fake driver. FAKE_OLD leaves out what drivers before 450 to 510 did not
// have; FAKE_EMULATED says that it stands in for GPUs.
#include "fake_nvml.h"

#include <algorithm>
#include <chrono>
#include <cstring>

using takt::device::testing::FakeGpu;
using takt::device::testing::FakeInstance;
using takt::device::testing::FakeNvml;
using takt::device::testing::FakeProcess;

namespace {

constexpr unsigned kInstanceHandles = 1000;  // handle of instance k of GPU i: 1000 (i + 1) + k

std::uintptr_t number(nvmlDevice_t device) { return reinterpret_cast<std::uintptr_t>(device); }
bool is_instance(nvmlDevice_t device) { return number(device) >= kInstanceHandles; }
int index_of(nvmlDevice_t device) {
  const auto n = number(device);
  return static_cast<int>(is_instance(device) ? n / kInstanceHandles : n) - 1;
}

// What a function does before it answers: hang, fail, or go on with the data locked.
class Call {
 public:
  Call(const char* function, int gpu = -1) : lock_(fake_nvml()->mutex) {
    FakeNvml& nvml = *fake_nvml();
    ++nvml.calls[function];
    nvml.changed.wait(lock_, [&] { return !nvml.hangs.contains({gpu, function}); });
    if (const auto at = nvml.errors.find(function); at != nvml.errors.end()) code = at->second;
    if (gpu < 0) return;
    if (static_cast<std::size_t>(gpu) >= nvml.gpus.size()) {
      code = NVML_ERROR_INVALID_ARGUMENT;
      return;
    }
    device = &nvml.gpus[static_cast<std::size_t>(gpu)];
    if (const auto at = device->errors.find(function); at != device->errors.end())
      code = at->second;
  }
  Call(const char* function, nvmlDevice_t handle) : Call(function, index_of(handle)) {
    if (code == NVML_SUCCESS && is_instance(handle))
      instance = &device->instances.at(number(handle) % kInstanceHandles);
  }
  FakeNvml& nvml() { return *fake_nvml(); }
  nvmlReturn_t code = NVML_SUCCESS;
  FakeGpu* device = nullptr;
  FakeInstance* instance = nullptr;
  std::unique_lock<std::mutex>& lock() { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
};

nvmlReturn_t copy(const std::string& text, char* to, unsigned length) {
  if (text.size() + 1 > length) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

void fill_pci(nvmlPciInfo_t& pci, unsigned bus) {
  pci = {};
  pci.bus = bus;
}

template <class Entry>
nvmlReturn_t list(const std::vector<FakeProcess>& processes, unsigned* count, void* infos) {
  const unsigned capacity = *count;
  *count = static_cast<unsigned>(processes.size());
  if (processes.size() > capacity) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    Entry entry{};
    entry.pid = processes[i].pid;
    entry.usedGpuMemory = processes[i].memory;
    if constexpr (!std::is_same_v<Entry, nvmlProcessInfo_v1_t>) {
      entry.gpuInstanceId = processes[i].gpu_instance;
      entry.computeInstanceId = processes[i].compute_instance;
    }
    std::memcpy(static_cast<char*>(infos) + i * sizeof entry, &entry, sizeof entry);
  }
  return NVML_SUCCESS;
}

[[maybe_unused]] nvmlReturn_t list_new(FakeNvml& nvml, const std::vector<FakeProcess>& processes,
                                       unsigned* count, void* infos) {
  return nvml.long_process_entries ? list<nvmlProcessInfo_driver535_t>(processes, count, infos)
                                   : list<nvmlProcessInfo_t>(processes, count, infos);
}

}  // namespace

#define ANSWER(device_argument, statement)    \
  {                                           \
    Call call(__func__, device_argument);     \
    if (call.code == NVML_SUCCESS) statement; \
    return call.code;                         \
  }

extern "C" {

FakeNvml* fake_nvml() {
  static FakeNvml nvml;
  return &nvml;
}

nvmlReturn_t nvmlInit_v2() ANSWER(-1, ++call.nvml().inits) nvmlReturn_t nvmlShutdown()
    ANSWER(-1, ++call.nvml().shutdowns) nvmlReturn_t
    nvmlSystemGetDriverVersion(char* version, unsigned length)
        ANSWER(-1, return copy(call.nvml().driver_version, version, length)) nvmlReturn_t
    nvmlDeviceGetCount_v2(unsigned* count)
        ANSWER(-1, *count = static_cast<unsigned>(call.nvml().gpus.size())) nvmlReturn_t
    nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device)
        ANSWER(static_cast<int>(index),
               *device = takt::device::testing::fake_handle(index)) nvmlReturn_t
    nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned length)
        ANSWER(device, return copy(call.instance ? call.instance->uuid : call.device->uuid, uuid,
                                   length)) nvmlReturn_t
    nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned length)
        ANSWER(device, return copy(call.device->name, name, length)) nvmlReturn_t
    nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned* minor)
        ANSWER(device, *minor = call.device->minor) nvmlReturn_t
    nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci)
        ANSWER(device, fill_pci(*pci, call.device->bus))

            nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  Call call(__func__, device);
  if (call.code != NVML_SUCCESS) return call.code;
  if (call.instance) {
    memory->total = call.instance->memory_mib << 20;
    memory->used = call.instance->used;
  } else {
    memory->total = call.device->total;
    memory->used = call.device->used_v1;
  }
  memory->free = memory->total - memory->used;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* rates)
    ANSWER(device, *rates = call.device->rates) nvmlReturn_t
    nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t, unsigned* celsius)
        ANSWER(device, *celsius = call.device->celsius) nvmlReturn_t
    nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned* milliwatts)
        ANSWER(device, *milliwatts = call.device->milliwatts) nvmlReturn_t
    nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned* milliwatts)
        ANSWER(device, *milliwatts = call.device->limit_milliwatts) nvmlReturn_t
    nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long* millijoules)
        ANSWER(device, *millijoules = call.device->millijoules) nvmlReturn_t
    nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned* mhz)
        ANSWER(device, *mhz = type == NVML_CLOCK_MEM ? call.device->memory_mhz
                                                     : call.device->sm_mhz) nvmlReturn_t
    nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long* reasons)
        ANSWER(device, *reasons = call.device->reasons) nvmlReturn_t
    nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t* state)
        ANSWER(device, *state = static_cast<nvmlPstates_t>(call.device->state)) nvmlReturn_t
    nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned* percent)
        ANSWER(device, *percent = call.device->fan) nvmlReturn_t
    nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t, nvmlEccCounterType_t,
                                unsigned long long* count)
        ANSWER(device, *count = call.device->ecc) nvmlReturn_t
    nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t counter,
                                unsigned* kilobytes)
        ANSWER(device, *kilobytes = counter == NVML_PCIE_UTIL_TX_BYTES ? call.device->tx_kb
                                                                       : call.device->rx_kb)

            nvmlReturn_t
    nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t* samples,
                                    unsigned* count, unsigned long long last_seen) {
  Call call(__func__, device);
  if (call.code != NVML_SUCCESS) return call.code;
  std::vector<nvmlProcessUtilizationSample_t> fresh;
  for (const auto& sample : call.device->samples)
    if (sample.timeStamp > last_seen) fresh.push_back(sample);
  const unsigned capacity = *count;
  *count = static_cast<unsigned>(fresh.size());
  if (fresh.empty()) return NVML_ERROR_NOT_FOUND;
  if (fresh.size() > capacity) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::copy(fresh.begin(), fresh.end(), samples);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned* count,
                                                  nvmlProcessInfo_v1_t* infos)
    ANSWER(device,
           return list<nvmlProcessInfo_v1_t>(call.device->compute, count, infos)) nvmlReturn_t
    nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned* count,
                                          nvmlProcessInfo_v1_t* infos)
        ANSWER(device, return list<nvmlProcessInfo_v1_t>(call.device->graphics, count, infos))

            nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b,
                                                             nvmlGpuTopologyLevel_t* level) {
  Call call(__func__, a);
  if (call.code != NVML_SUCCESS) return call.code;
  const auto at = call.nvml().ancestors.find(
      {static_cast<unsigned>(index_of(a)), static_cast<unsigned>(index_of(b))});
  if (at == call.nvml().ancestors.end()) return NVML_ERROR_NOT_SUPPORTED;
  *level = static_cast<nvmlGpuTopologyLevel_t>(at->second);
  return NVML_SUCCESS;
}

#ifndef FAKE_OLD
nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned* node)
    ANSWER(device, *node = call.device->numa)

        nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  Call call(__func__, device);
  if (call.code != NVML_SUCCESS) return call.code;
  if (memory->version != 0x02000028u) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  memory->total = call.device->total;
  memory->free = call.device->free;
  memory->used = call.device->used;
  memory->reserved = call.device->reserved;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                    unsigned long long* reasons)
    ANSWER(device, *reasons = call.device->reasons) nvmlReturn_t
    nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                            nvmlProcessInfo_t* infos)
        ANSWER(device,
               return list_new(call.nvml(), call.device->compute, count, infos)) nvmlReturn_t
    nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                             nvmlProcessInfo_t* infos)
        ANSWER(device, return list_new(call.nvml(), call.device->graphics, count, infos))

            nvmlReturn_t
    nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned* current, unsigned* pending)
        ANSWER(device,
               (*current = call.device->mig, *pending = call.device->mig_pending)) nvmlReturn_t
    nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned* count)
        ANSWER(device, *count = call.device->mig ? 7 : 0)

    // Instance k is at place k + 1, so that place 0 is empty: a caller must go through all places.
    nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index,
                                                     nvmlDevice_t* instance) {
  Call call(__func__, device);
  if (call.code != NVML_SUCCESS) return call.code;
  if (index == 0 || index > call.device->instances.size()) return NVML_ERROR_NOT_FOUND;
  *instance = reinterpret_cast<nvmlDevice_t>(number(device) * kInstanceHandles + index - 1);
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned* id)
    ANSWER(device, *id = call.instance->gpu_instance) nvmlReturn_t
    nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned* id)
        ANSWER(device, *id = call.instance->compute_instance)

            nvmlReturn_t
    nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t* attributes) {
  Call call(__func__, device);
  if (call.code != NVML_SUCCESS) return call.code;
  *attributes = {};
  attributes->gpuInstanceSliceCount = call.instance->gpu_slices;
  attributes->computeInstanceSliceCount = call.instance->compute_slices;
  attributes->sharedOfaCount = call.instance->ofa;
  attributes->memorySizeMB = call.instance->memory_mib;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned id,
                                          nvmlGpuInstance_t* instance) {
  Call call(__func__, device);
  if (call.code != NVML_SUCCESS) return call.code;
  for (FakeInstance& one : call.device->instances) {
    if (one.gpu_instance != id) continue;
    *instance = reinterpret_cast<nvmlGpuInstance_t>(&one);
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}
nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t* info) {
  Call call(__func__);
  if (call.code != NVML_SUCCESS) return call.code;
  const auto& one = *reinterpret_cast<FakeInstance*>(instance);
  *info = {};
  info->id = one.gpu_instance;
  info->placement = {one.start, one.size};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, nvmlEnableState_t* active)
    ANSWER(device, *active = link < call.device->nvlink_buses.size()
                                 ? NVML_FEATURE_ENABLED
                                 : NVML_FEATURE_DISABLED) nvmlReturn_t
    nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned link, nvmlPciInfo_t* pci)
        ANSWER(device, fill_pci(*pci, call.device->nvlink_buses.at(link)))

            nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t* set)
                ANSWER(-1, (++call.nvml().sets_held,
                            *set = reinterpret_cast<nvmlEventSet_t>(fake_nvml()))) nvmlReturn_t
    nvmlEventSetFree(nvmlEventSet_t) ANSWER(-1, --call.nvml().sets_held) nvmlReturn_t
    nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long, nvmlEventSet_t)
        ANSWER(device, (void)0) nvmlReturn_t
    nvmlEventSetWait_v2(nvmlEventSet_t, nvmlEventData_t* data, unsigned timeout_ms) {
  Call call(__func__);
  if (call.code != NVML_SUCCESS) return call.code;
  FakeNvml& nvml = call.nvml();
  if (!nvml.changed.wait_for(call.lock(), std::chrono::milliseconds(timeout_ms),
                             [&] { return !nvml.events.empty(); }))
    return NVML_ERROR_TIMEOUT;
  *data = nvml.events.front();
  nvml.events.pop_front();
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t* support)
    ANSWER(device, support->isSupportedDevice = call.device->gpm ? 1 : 0) nvmlReturn_t
    nvmlGpmSampleAlloc(nvmlGpmSample_t* sample)
        ANSWER(-1, (++call.nvml().samples_held,
                    *sample = reinterpret_cast<nvmlGpmSample_t>(new int(-1)))) nvmlReturn_t
    nvmlGpmSampleFree(nvmlGpmSample_t sample)
        ANSWER(-1, (--call.nvml().samples_held, delete reinterpret_cast<int*>(sample))) nvmlReturn_t
    nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
        ANSWER(device, *reinterpret_cast<int*>(sample) = index_of(device)) nvmlReturn_t
    nvmlGpmMetricsGet(nvmlGpmMetricsGet_t* request) {
  Call call(__func__, *reinterpret_cast<int*>(request->sample1));
  if (call.code != NVML_SUCCESS) return call.code;
  if (request->version != NVML_GPM_METRICS_GET_VERSION) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  for (unsigned i = 0; i < request->numMetrics; ++i) {
    nvmlGpmMetric_t& metric = request->metrics[i];
    const auto at = call.device->gpm_values.find(metric.metricId);
    const bool known = at != call.device->gpm_values.end();
    metric.nvmlReturn = known ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    metric.value = known ? at->second : 0;
  }
  return NVML_SUCCESS;
}
#endif

#ifdef FAKE_EMULATED
const char takt_emulated_fleet[] = "fake";
const char* takt_emulator_problem() { return fake_nvml()->emulator_problem.c_str(); }
#endif

}  // extern "C"
