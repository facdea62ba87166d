#include "edge/device/gpu_reader.h"

#include <array>
#include <cstdlib>
#include <limits>

#include "core/model/xid_facts.h"
#include "edge/device/mig_reader.h"

namespace takt::device {
namespace {

// Above these a number is a sentinel or an error of the driver, not a reading.
constexpr unsigned kMostPercent = 100;
constexpr unsigned kMostFanPercent = 200;  // fans may be driven above their nominal speed
constexpr unsigned kMostCelsius = 200;
constexpr unsigned kMostMilliwatts = 10'000'000;
constexpr unsigned kMostMhz = 20'000;
constexpr unsigned kMostKilobytesPerSecond = 1'000'000'000;  // PCIe 6.0 x16 is 1/8 of it
constexpr unsigned long long kMostMemory = 1ull << 50;
constexpr unsigned long long kMostCount = 1ull << 62;
// Drivers round the parts of the memory, to pages or, as recorded ones do, to MiB each.
constexpr std::int64_t kMemorySlack = std::int64_t{4} << 20;

template <class To, class From>
Measured<To> as(const Measured<From>& value) {
  return value.map([](From v) { return static_cast<To>(v); });
}

Measured<double> milli(const Measured<unsigned>& value) {
  return value.map([](unsigned v) { return v / 1000.0; });
}

// nvidia-smi's names of the reasons, in the order of their bits.
std::vector<std::string> reason_names(unsigned long long bits) {
  constexpr std::array<std::pair<unsigned long long, const char*>, 9> names{{
      {nvmlClocksEventReasonGpuIdle, "gpu_idle"},
      {nvmlClocksEventReasonApplicationsClocksSetting, "applications_clocks_setting"},
      {nvmlClocksEventReasonSwPowerCap, "sw_power_cap"},
      {nvmlClocksThrottleReasonHwSlowdown, "hw_slowdown"},
      {nvmlClocksEventReasonSyncBoost, "sync_boost"},
      {nvmlClocksEventReasonSwThermalSlowdown, "sw_thermal_slowdown"},
      {nvmlClocksThrottleReasonHwThermalSlowdown, "hw_thermal_slowdown"},
      {nvmlClocksThrottleReasonHwPowerBrakeSlowdown, "hw_power_brake_slowdown"},
      {nvmlClocksEventReasonDisplayClockSetting, "display_clock_setting"},
  }};
  std::vector<std::string> found;
  for (const auto& [bit, name] : names) {
    if ((bits & bit) != 0) found.emplace_back(name);
    bits &= ~bit;
  }
  if (bits != 0) found.push_back(fmt::format("unknown_{:#x}", bits));
  return found;
}

template <class Function>
std::string text(GpuCalls& calls, const Function& function, nvmlDevice_t device,
                 std::optional<Missing>& problem) {
  std::array<char, NVML_DEVICE_NAME_V2_BUFFER_SIZE + 1> buffer{};
  const nvmlReturn_t code =
      calls.call(function, device, buffer.data(), static_cast<unsigned>(buffer.size() - 1));
  if (code == NVML_SUCCESS) return buffer.data();
  if (!problem) problem = nvml_missing(function.name, code);
  return {};
}

}  // namespace

DeviceUuid unknown_uuid(unsigned index) { return DeviceUuid(fmt::format("unknown-gpu-{}", index)); }

std::string pci_text(const nvmlPciInfo_t& pci) {
  return fmt::format("{:08X}:{:02X}:{:02X}.0", pci.domain, pci.bus, pci.device);
}

GpuReader::GpuReader(std::shared_ptr<NvmlLibrary> library, std::shared_ptr<XidWatch> xids,
                     unsigned index)
    : xids_(std::move(xids)), index_(index), calls_(std::move(library)), gpm_(calls_) {
  identity_.uuid = unknown_uuid(index);
  identity_.index = index;
}

GpuReading GpuReader::read(Instant now, Detail detail) {
  calls_.begin_reading();
  const std::optional<Missing> unidentified = identified_ ? std::nullopt : identify();
  GpuReading reading;
  reading.gpu = identity_;
  Gpu& gpu = reading.gpu;
  if (handle_ != nullptr && detail == Detail::presence && full_)
    read_presence(gpu);
  else if (handle_ != nullptr)
    read_all(gpu, now);
  gpu.xids = xids_->events(index_);
  judge_health(gpu, unidentified);
  reading.handle = handle_;
  reading.nvlink_ends = nvlink_ends_;
  reading.driver_gone = calls_.driver_gone();
  reading.note = note_;
  return reading;
}

void GpuReader::read_all(Gpu& gpu, Instant now) {
  read_memory(gpu);
  const Bytes total = gpu.memory_total.value_or(Bytes{0});
  gpu.mig = read_mig(calls_, handle_, gpu.model, total);
  read_use(gpu);
  read_sensors(gpu);
  read_performance_counters(gpu);
  gpu.processes = processes_.read(calls_, handle_, gpu.mig, total, now);
  full_ = gpu;
}

// What a process used is summed up by the driver until it is asked for: that stays for the next
// full reading, and the last one's is shown till then.
void GpuReader::read_presence(Gpu& gpu) {
  gpu = *full_;
  read_memory(gpu);
  gpu.processes = processes_.list(calls_, handle_, gpu.mig, gpu.memory_total.value_or(Bytes{0}));
  if (!gpu.processes || !full_->processes) return;
  for (GpuProcess& process : *gpu.processes)
    for (const GpuProcess& before : *full_->processes)
      if (before.pid == process.pid && before.mig_instance == process.mig_instance)
        process.sm_percent = before.sm_percent;
}

std::optional<Missing> GpuReader::identify() {
  const NvmlFunctions& f = calls_.functions();
  nvmlDevice_t handle = nullptr;
  const nvmlReturn_t code = calls_.call(f.nvmlDeviceGetHandleByIndex_v2, index_, &handle);
  if (code != NVML_SUCCESS) return nvml_missing(f.nvmlDeviceGetHandleByIndex_v2.name, code);
  std::optional<Missing> problem;
  const std::string uuid = text(calls_, f.nvmlDeviceGetUUID, handle, problem);
  if (problem || uuid.empty())
    return problem ? problem : Missing{MissingKind::driver_error, "nvmlDeviceGetUUID gave nothing"};
  handle_ = handle;
  identity_.uuid.value = uuid;
  identity_.model = text(calls_, f.nvmlDeviceGetName, handle, problem);
  nvmlPciInfo_t pci{};
  if (calls_.call(f.nvmlDeviceGetPciInfo_v3, handle, &pci) == NVML_SUCCESS)
    identity_.pci_bus_id = pci_text(pci);
  identity_.minor = calls_.ask(f.nvmlDeviceGetMinorNumber, 1u << 20, handle);
  identity_.numa_node = as<int>(calls_.ask(f.nvmlDeviceGetNumaNodeId, 1u << 16, handle));
  read_nvlinks();
  const std::string unwatched = xids_->add(handle, index_);
  if (!unwatched.empty())
    note_ = fmt::format("GPU {}: XID errors are not seen: {}.", index_, unwatched);
  identified_ = !problem.has_value();
  return problem;
}

void GpuReader::read_memory(Gpu& gpu) {
  const auto& function = calls_.functions().nvmlDeviceGetMemoryInfo_v2;
  nvmlMemory_v2_t m{};
  m.version = nvmlMemory_v2;
  const nvmlReturn_t code = calls_.call(function, handle_, &m);
  if (code != NVML_SUCCESS)
    return read_memory_without_reserved(gpu, nvml_missing(function.name, code));
  const bool sizes_ok = m.total > 0 && m.total <= kMostMemory && m.used <= m.total &&
                        m.free <= m.total && m.reserved <= m.total;
  const auto total = static_cast<std::int64_t>(m.total);
  const auto used = static_cast<std::int64_t>(m.used);
  const auto reserved = static_cast<std::int64_t>(m.reserved);
  const auto missing_part = total - static_cast<std::int64_t>(m.free) - used;
  // Observed: total = free + used + reserved. The interface's own text has `used` include what is
  // reserved; both are understood, anything else is not believed.
  if (sizes_ok && std::llabs(missing_part - reserved) <= kMemorySlack) {
    gpu.memory_used = Bytes{used};
  } else if (sizes_ok && std::llabs(missing_part) <= kMemorySlack && used >= reserved) {
    gpu.memory_used = Bytes{used - reserved};
  } else {
    return read_memory_without_reserved(
        gpu, Missing{MissingKind::out_of_range,
                     fmt::format("{} gave total {}, free {}, used {}, reserved {}", function.name,
                                 m.total, m.free, m.used, m.reserved)});
  }
  gpu.memory_total = Bytes{total};
  gpu.memory_reserved = Bytes{reserved};
}

// The older call: its `used` holds what the driver reserves for itself.
void GpuReader::read_memory_without_reserved(Gpu& gpu, std::optional<Missing> why) {
  if (why) gpu.memory_reserved = tl::make_unexpected(*std::move(why));
  const auto& function = calls_.functions().nvmlDeviceGetMemoryInfo;
  nvmlMemory_t m{};
  const nvmlReturn_t code = calls_.call(function, handle_, &m);
  if (code != NVML_SUCCESS) {
    gpu.memory_total = gpu.memory_used = tl::make_unexpected(nvml_missing(function.name, code));
    return;
  }
  if (m.total == 0 || m.total > kMostMemory || m.used > m.total) {
    gpu.memory_total = gpu.memory_used =
        missing(MissingKind::out_of_range,
                fmt::format("{} gave {} of {} bytes", function.name, m.used, m.total));
    return;
  }
  gpu.memory_total = Bytes{static_cast<std::int64_t>(m.total)};
  gpu.memory_used = Bytes{static_cast<std::int64_t>(m.used)};
}

void GpuReader::read_use(Gpu& gpu) {
  if (gpu.mig.enabled.value_or(false)) {
    gpu.utilization_percent = gpu.memory_utilization_percent =
        missing(MissingKind::not_supported, "not told for a MIG GPU as a whole");
    return;
  }
  const auto& function = calls_.functions().nvmlDeviceGetUtilizationRates;
  nvmlUtilization_t rates{};
  const nvmlReturn_t code = calls_.call(function, handle_, &rates);
  const auto percent = [&](unsigned value) -> Measured<int> {
    if (code != NVML_SUCCESS) return tl::make_unexpected(nvml_missing(function.name, code));
    if (value > kMostPercent)
      return missing(MissingKind::out_of_range, fmt::format("{} gave {} %", function.name, value));
    return static_cast<int>(value);
  };
  gpu.utilization_percent = percent(rates.gpu);
  gpu.memory_utilization_percent = percent(rates.memory);
}

void GpuReader::read_sensors(Gpu& gpu) {
  const NvmlFunctions& f = calls_.functions();
  gpu.temperature_celsius =
      as<int>(calls_.ask(f.nvmlDeviceGetTemperature, kMostCelsius, handle_, NVML_TEMPERATURE_GPU));
  gpu.power_watts = milli(calls_.ask(f.nvmlDeviceGetPowerUsage, kMostMilliwatts, handle_));
  gpu.power_limit_watts =
      milli(calls_.ask(f.nvmlDeviceGetEnforcedPowerLimit, kMostMilliwatts, handle_));
  gpu.energy_millijoules =
      as<std::int64_t>(calls_.ask(f.nvmlDeviceGetTotalEnergyConsumption, kMostCount, handle_));
  gpu.sm_clock_mhz =
      as<int>(calls_.ask(f.nvmlDeviceGetClockInfo, kMostMhz, handle_, NVML_CLOCK_SM));
  gpu.memory_clock_mhz =
      as<int>(calls_.ask(f.nvmlDeviceGetClockInfo, kMostMhz, handle_, NVML_CLOCK_MEM));
  gpu.fan_percent = as<int>(calls_.ask(f.nvmlDeviceGetFanSpeed, kMostFanPercent, handle_));
  gpu.ecc_uncorrected =
      as<std::int64_t>(calls_.ask(f.nvmlDeviceGetTotalEccErrors, kMostCount, handle_,
                                  NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC));
  constexpr auto any = std::numeric_limits<unsigned long long>::max();
  // The same call under its name before driver 535.
  const auto reasons = f.nvmlDeviceGetCurrentClocksEventReasons.pointer != nullptr
                           ? calls_.ask(f.nvmlDeviceGetCurrentClocksEventReasons, any, handle_)
                           : calls_.ask(f.nvmlDeviceGetCurrentClocksThrottleReasons, any, handle_);
  gpu.throttle_reasons = reasons.map(reason_names);
  const auto state = calls_.ask(f.nvmlDeviceGetPerformanceState, NVML_PSTATE_15, handle_);
  gpu.performance_state =
      state.map([](nvmlPstates_t s) { return fmt::format("P{}", static_cast<unsigned>(s)); });
}

void GpuReader::read_performance_counters(Gpu& gpu) {
  const NvmlFunctions& f = calls_.functions();
  const GpmRates rates =
      gpm_.read(handle_, gpu.mig.enabled.value_or(false), std::chrono::steady_clock::now());
  gpu.sm_active_ratio = rates.sm_active;
  gpu.tensor_active_ratio = rates.tensor_active;
  gpu.dram_active_ratio = rates.dram_active;
  gpu.pcie_rx_bytes_per_second = rates.pcie_rx;
  gpu.pcie_tx_bytes_per_second = rates.pcie_tx;
  // Without GPM the driver measures for 20 ms within each of these calls. Kilobytes per second.
  const auto throughput = [&](nvmlPcieUtilCounter_t counter) {
    return calls_.ask(f.nvmlDeviceGetPcieThroughput, kMostKilobytesPerSecond, handle_, counter)
        .map([](unsigned kilobytes) { return std::int64_t{kilobytes} * 1000; });
  };
  if (!rates.pcie_rx) gpu.pcie_rx_bytes_per_second = throughput(NVML_PCIE_UTIL_RX_BYTES);
  if (!rates.pcie_tx) gpu.pcie_tx_bytes_per_second = throughput(NVML_PCIE_UTIL_TX_BYTES);
}

void GpuReader::read_nvlinks() {
  const NvmlFunctions& f = calls_.functions();
  nvlink_ends_.clear();
  for (unsigned link = 0; link < NVML_NVLINK_MAX_LINKS; ++link) {
    nvmlEnableState_t active = NVML_FEATURE_DISABLED;
    nvmlPciInfo_t pci{};
    const nvmlReturn_t code = calls_.call(f.nvmlDeviceGetNvLinkState, handle_, link, &active);
    if (code == NVML_ERROR_FUNCTION_NOT_FOUND) return;
    if (code != NVML_SUCCESS || active != NVML_FEATURE_ENABLED) continue;
    if (calls_.call(f.nvmlDeviceGetNvLinkRemotePciInfo_v2, handle_, link, &pci) == NVML_SUCCESS)
      nvlink_ends_.push_back(pci_text(pci));
  }
}

void GpuReader::judge_health(Gpu& gpu, const std::optional<Missing>& unidentified) const {
  if (calls_.lost()) {
    gpu.health = GpuHealth::lost;
    gpu.health_reason = fmt::format(
        "GPU {}: {}. It is off the bus or needs a reset: look at \"dmesg | grep -i xid\", reset it "
        "with "
        "nvidia-smi --gpu-reset or reboot.",
        index_, *calls_.lost());
    return;
  }
  const Missing* broken = unidentified ? &*unidentified : nullptr;
  if (broken == nullptr && !gpu.memory_total &&
      gpu.memory_total.error().kind == MissingKind::driver_error)
    broken = &gpu.memory_total.error();
  if (broken != nullptr) {
    gpu.health = GpuHealth::failing;
    gpu.health_reason =
        broken->kind == MissingKind::not_permitted
            ? fmt::format(
                  "GPU {}: takt may not open it: {}. Give its user read and write access to "
                  "the GPU's device file, or allow it in its cgroup.",
                  index_, broken->detail)
            : fmt::format("GPU {}: {}. Look at dmesg and nvidia-smi -q.", index_, broken->detail);
    return;
  }
  for (auto event = gpu.xids.rbegin(); event != gpu.xids.rend(); ++event) {
    if (!xid_facts(event->code).avoid) continue;
    gpu.health = GpuHealth::failing;
    gpu.health_reason = fmt::format(
        "GPU {}: {}. Reset it with nvidia-smi --gpu-reset or reboot, then restart takt's agent.",
        index_, xid_words(event->code));
    return;
  }
}

}  // namespace takt::device
