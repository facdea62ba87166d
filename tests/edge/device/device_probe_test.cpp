// The whole node from a driver: healthy readings, absent and broken drivers, GPUs that hang or die.
#include "edge/device/device_probe.h"

#include <fstream>

#include "probe_fixture.h"

namespace takt::device::testing {
namespace {

using std::chrono::steady_clock;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class DeviceProbeTest : public ProbeTest {};
class OldDriverTest : public ProbeTest {
 protected:
  OldDriverTest() : ProbeTest(FAKE_NVML_OLD) {}
};
class EmulatedTest : public ProbeTest {
 protected:
  EmulatedTest() : ProbeTest(FAKE_NVML_EMULATED) {}
};

TEST_F(DeviceProbeTest, Reads_everything_of_a_healthy_gpu) {
  give_gpus(1);
  const Node node = read();
  EXPECT_EQ(node.id, NodeId("node-a"));
  EXPECT_EQ(node.driver_problem, "");
  EXPECT_EQ(node.driver_version, "550.54.15");
  EXPECT_FALSE(node.emulated);
  EXPECT_GT(node.cpus, 0);
  EXPECT_GT(node.memory.value, 0);
  EXPECT_THAT(node.boot_id, Not(IsEmpty()));
  ASSERT_EQ(node.gpus.size(), 1u);
  const Gpu& gpu = node.gpus[0];
  EXPECT_EQ(gpu.uuid, DeviceUuid("GPU-0"));
  EXPECT_EQ(gpu.model, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(gpu.pci_bus_id, "00000000:10:00.0");
  EXPECT_EQ(gpu.health, GpuHealth::ok) << gpu.health_reason;
  EXPECT_THAT(gpu.numa_node, Holds(0));
  EXPECT_THAT(gpu.memory_total, Holds(mebibytes(81920)));
  EXPECT_THAT(gpu.utilization_percent, Holds(37));
  EXPECT_THAT(gpu.memory_utilization_percent, Holds(12));
  EXPECT_THAT(gpu.temperature_celsius, Holds(41));
  EXPECT_THAT(gpu.power_watts, Holds(123.456));
  EXPECT_THAT(gpu.power_limit_watts, Holds(400.0));
  EXPECT_THAT(gpu.energy_millijoules, Holds(987654321));
  EXPECT_THAT(gpu.sm_clock_mhz, Holds(1410));
  EXPECT_THAT(gpu.memory_clock_mhz, Holds(1593));
  EXPECT_THAT(gpu.throttle_reasons, Holds(std::vector<std::string>{"sw_power_cap"}));
  EXPECT_THAT(gpu.performance_state, Holds(std::string("P0")));
  EXPECT_THAT(gpu.fan_percent, Holds(30));
  EXPECT_THAT(gpu.ecc_uncorrected, Holds(0));
  EXPECT_THAT(gpu.mig.enabled, Holds(false));
  EXPECT_THAT(gpu.sm_active_ratio, IsMissing(MissingKind::not_supported));
  ASSERT_TRUE(gpu.processes.has_value());
  EXPECT_THAT(*gpu.processes, IsEmpty());
}

// Case B7 65: minor numbers differ from indices; each GPU keeps its own.
TEST_F(DeviceProbeTest, A_look_at_presence_sees_who_is_there_now_and_measures_nothing_else_again) {
  give_gpus(1);
  change_gpu(0, [](FakeGpu& g) { g.compute = {{77, 5ull << 30}}; });
  const Gpu full = read_gpu();
  ASSERT_EQ(full.processes->size(), 1u);
  nvml_->with([](FakeNvml& n) { n.calls.clear(); });
  change_gpu(0, [](FakeGpu& g) {
    g.compute = {{88, 6ull << 30}};
    g.celsius = 77;
    g.used = 7000ull << 20;
    g.free = g.total - g.used - g.reserved;
  });
  const Gpu look = probe().read_presence(kNow + seconds(1)).gpus.at(0);
  ASSERT_TRUE(look.processes);
  ASSERT_EQ(look.processes->size(), 1u);
  EXPECT_EQ(look.processes->front().pid, 88);
  EXPECT_THAT(look.memory_used, Holds(mebibytes(7000)));
  EXPECT_EQ(look.temperature_celsius, full.temperature_celsius) << "as it was read last";
  EXPECT_EQ(look.uuid, full.uuid);
  const std::lock_guard lock(nvml_->mutex);
  EXPECT_EQ(nvml_->calls["nvmlDeviceGetTemperature"], 0);
  EXPECT_EQ(nvml_->calls["nvmlDeviceGetPcieThroughput"], 0) << "it measures for 20 ms";
  EXPECT_EQ(nvml_->calls["nvmlDeviceGetProcessUtilization"], 0) << "that is for the next sample";
}

TEST_F(DeviceProbeTest, A_look_at_presence_before_any_read_reads_all) {
  give_gpus(1);
  ASSERT_TRUE(eventually([&] { return probe().read_presence(kNow).gpus.size() == 1; }));
  EXPECT_THAT(probe().read_presence(kNow).gpus.at(0).temperature_celsius, Holds(41));
}

TEST_F(DeviceProbeTest, A_gpu_that_is_lost_shows_so_in_a_look_at_presence) {
  give_gpus(1);
  ASSERT_EQ(read_gpu().health, GpuHealth::ok);
  nvml_->with([](FakeNvml& n) {
    for (const char* call : {"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo",
                             "nvmlDeviceGetComputeRunningProcesses_v3"})
      n.errors[call] = NVML_ERROR_GPU_IS_LOST;
  });
  const Gpu look = probe().read_presence(kNow).gpus.at(0);
  EXPECT_EQ(look.health, GpuHealth::lost);
  EXPECT_THAT(look.processes, IsMissing(MissingKind::device_lost));
}

TEST_F(DeviceProbeTest, Minors_in_another_order_than_indices_stay_with_their_uuid) {
  give_gpus(4);
  const unsigned minors[] = {6, 4, 0, 2};
  for (unsigned i = 0; i < 4; ++i)
    change_gpu(i, [&](FakeGpu& gpu) {
      gpu.minor = minors[i];
      gpu.celsius = 50 + i;
    });
  const Node node = read();
  for (unsigned i = 0; i < 4; ++i) {
    const Gpu& gpu = node.gpus.at(i);
    EXPECT_EQ(gpu.index, i);
    EXPECT_EQ(gpu.uuid.value, "GPU-" + std::to_string(i));
    EXPECT_THAT(gpu.minor, Holds(minors[i]));
    EXPECT_THAT(gpu.temperature_celsius, Holds(static_cast<int>(50 + i)));
  }
}

TEST_F(DeviceProbeTest, Every_reason_for_slower_clocks_has_its_name_and_new_ones_are_not_dropped) {
  give_gpus(1);
  change_gpu(0, [](FakeGpu& gpu) { gpu.reasons = 0x1ff | 0x400; });
  EXPECT_THAT(read_gpu().throttle_reasons,
              Holds(std::vector<std::string>{
                  "gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown",
                  "sync_boost", "sw_thermal_slowdown", "hw_thermal_slowdown",
                  "hw_power_brake_slowdown", "display_clock_setting", "unknown_0x400"}));
}

// --- the driver as a whole ---

TEST_F(DeviceProbeTest, A_missing_library_is_a_sentence_with_the_next_step) {
  ProbeOptions options;
  options.nvml_path = "/nonexistent/libnvidia-ml.so.1";
  const Node node = DeviceProbe::open(options)->read(kNow);
  EXPECT_THAT(node.driver_problem, HasSubstr("no NVIDIA driver"));
  EXPECT_THAT(node.driver_problem, HasSubstr("Install"));
  EXPECT_THAT(node.gpus, IsEmpty());
  EXPECT_GT(node.cpus, 0) << "the host is still described";
}

TEST_F(DeviceProbeTest, A_driver_that_appears_later_shows_with_the_next_read) {
  give_gpus(1);
  const std::string link = ::testing::TempDir() + "/appears-libnvidia-ml.so.1";
  std::remove(link.c_str());
  ProbeOptions options;
  options.nvml_path = link;
  probe_ = DeviceProbe::open(options);
  EXPECT_THAT(probe_->read(kNow).driver_problem, HasSubstr("no NVIDIA driver"));
  ASSERT_EQ(symlink(path_.c_str(), link.c_str()), 0);
  const Node node = probe_->read(kNow);
  EXPECT_EQ(node.driver_problem, "");
  EXPECT_EQ(node.gpus.size(), 1u);
  std::remove(link.c_str());
}

TEST_F(DeviceProbeTest, A_file_that_is_no_library_is_a_sentence) {
  const std::string path = ::testing::TempDir() + "/broken-libnvidia-ml.so.1";
  std::ofstream(path) << "not a library";
  ProbeOptions options;
  options.nvml_path = path;
  EXPECT_THAT(DeviceProbe::open(options)->read(kNow).driver_problem,
              HasSubstr("could not be loaded"));
  std::remove(path.c_str());
}

TEST_F(DeviceProbeTest, A_library_without_the_basic_functions_is_too_old) {
  ProbeOptions options;
  options.nvml_path = NOT_NVML;
  const std::string problem = DeviceProbe::open(options)->read(kNow).driver_problem;
  EXPECT_THAT(problem, HasSubstr("too old"));
  EXPECT_THAT(problem, HasSubstr("nvmlDeviceGetCount_v2"));
}

struct InitError {
  nvmlReturn_t code;
  const char* says;
};
class InitErrorTest : public ProbeTest, public ::testing::WithParamInterface<InitError> {};

TEST_P(InitErrorTest, Is_explained_and_the_driver_is_used_once_it_works) {
  give_gpus(1);
  nvml_->with([](FakeNvml& n) { n.errors["nvmlInit_v2"] = GetParam().code; });
  const Node node = read();
  EXPECT_THAT(node.driver_problem, HasSubstr(GetParam().says));
  EXPECT_THAT(node.driver_problem,
              HasSubstr("code " + std::to_string(static_cast<unsigned>(GetParam().code))));
  EXPECT_THAT(node.gpus, IsEmpty());
  nvml_->with([](FakeNvml& n) { n.errors.clear(); });
  EXPECT_EQ(read().driver_problem, "");
}
INSTANTIATE_TEST_SUITE_P(Each, InitErrorTest,
                         ::testing::Values(InitError{NVML_ERROR_LIB_RM_VERSION_MISMATCH, "Reboot"},
                                           InitError{NVML_ERROR_DRIVER_NOT_LOADED,
                                                     "modprobe nvidia"},
                                           InitError{NVML_ERROR_NO_PERMISSION, "/dev/nvidiactl"},
                                           InitError{NVML_ERROR_OPERATING_SYSTEM, "cgroup"},
                                           InitError{NVML_ERROR_FUNCTION_NOT_FOUND, "too old"},
                                           InitError{NVML_ERROR_GPU_IS_LOST, "reset the GPU"},
                                           InitError{NVML_ERROR_UNKNOWN, "nvidia-smi"}));

TEST_F(DeviceProbeTest, A_driver_without_gpus_says_so_and_is_asked_afresh_with_each_read) {
  EXPECT_THAT(read().driver_problem, HasSubstr("shows no GPU"));
  give_gpus(2);
  EXPECT_TRUE(eventually([&] { return read().gpus.size() == 2; }));
}

TEST_F(DeviceProbeTest,
       A_driver_that_hangs_while_it_starts_costs_one_deadline_and_is_used_when_it_is_up) {
  give_gpus(1);
  hang(-1, "nvmlInit_v2");
  const auto start = steady_clock::now();
  const Node node = probe(milliseconds(300)).read(kNow);
  EXPECT_LT(steady_clock::now() - start, std::chrono::milliseconds(1500));
  EXPECT_THAT(node.driver_problem, HasSubstr("has not finished starting"));
  const auto again = steady_clock::now();
  read();
  EXPECT_LT(steady_clock::now() - again, std::chrono::milliseconds(250))
      << "it is not waited for twice";
  release(-1, "nvmlInit_v2");
  EXPECT_TRUE(eventually([&] { return read().gpus.size() == 1; }));
}

TEST_F(DeviceProbeTest, A_probe_can_end_while_the_driver_hangs) {
  give_gpus(1);
  hang(-1, "nvmlInit_v2");
  probe(milliseconds(50)).read(kNow);
  const auto start = steady_clock::now();
  probe_.reset();
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(4));
  release(-1, "nvmlInit_v2");
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(nvml_->mutex);
    return nvml_->inits == 1 && nvml_->shutdowns == 1;
  })) << "the thread that was left behind cleans up when the call returns";
}

TEST_F(DeviceProbeTest, A_driver_that_goes_away_is_opened_again) {
  give_gpus(2);
  EXPECT_EQ(read().gpus.size(), 2u);
  nvml_->with([](FakeNvml& n) {
    for (const char* call : {"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo"})
      n.errors[call] = NVML_ERROR_UNINITIALIZED;
  });
  EXPECT_THAT(read().driver_problem, HasSubstr("stopped answering"));
  nvml_->with([](FakeNvml& n) { n.errors.clear(); });
  EXPECT_TRUE(eventually([&] { return read().driver_problem.empty(); }));
  const std::lock_guard lock(nvml_->mutex);
  EXPECT_GE(nvml_->inits, 2);
}

TEST_F(EmulatedTest, Says_that_it_is_emulated_and_why_an_emulator_does_not_start) {
  give_gpus(1);
  nvml_->with([](FakeNvml& n) {
    n.errors["nvmlInit_v2"] = NVML_ERROR_DRIVER_NOT_LOADED;
    n.emulator_problem = "the fleet file fleet.yaml has no GPUs; add some";
  });
  EXPECT_EQ(read().driver_problem, "the fleet file fleet.yaml has no GPUs; add some");
  nvml_->with([](FakeNvml& n) { n.errors.clear(); });
  const Node node = read();
  EXPECT_EQ(node.driver_problem, "");
  EXPECT_TRUE(node.emulated);
}

// --- single GPUs that fail ---

TEST_F(DeviceProbeTest, One_gpu_of_four_that_hangs_costs_only_itself) {
  give_gpus(4);
  EXPECT_EQ(read().gpus.size(), 4u);
  probe_.reset();
  hang(2, "nvmlDeviceGetPowerUsage");
  const auto start = steady_clock::now();
  const Node node = probe(milliseconds(500)).read(kNow);
  EXPECT_LT(steady_clock::now() - start, std::chrono::milliseconds(2000));
  ASSERT_EQ(node.gpus.size(), 4u);
  for (const unsigned i : {0u, 1u, 3u}) {
    EXPECT_EQ(node.gpus[i].health, GpuHealth::ok) << node.gpus[i].health_reason;
    EXPECT_THAT(node.gpus[i].power_watts, Holds(123.456));
  }
  const Gpu& sick = node.gpus[2];
  EXPECT_EQ(sick.health, GpuHealth::unresponsive);
  EXPECT_THAT(sick.health_reason, HasSubstr("nvmlDeviceGetPowerUsage"));
  EXPECT_THAT(sick.health_reason, HasSubstr("deadline 0.5 s"));
  EXPECT_EQ(sick.uuid, DeviceUuid("unknown-gpu-2")) << "its real name was never heard";
  EXPECT_THAT(sick.temperature_celsius, IsMissing(MissingKind::timed_out));
  EXPECT_THAT(sick.processes, IsMissing(MissingKind::timed_out));

  const auto again = steady_clock::now();
  EXPECT_EQ(read().gpus[2].health, GpuHealth::unresponsive);
  EXPECT_LT(steady_clock::now() - again, std::chrono::milliseconds(450))
      << "it is not waited for again";

  release(2, "nvmlDeviceGetPowerUsage");
  EXPECT_TRUE(eventually([&] { return read().gpus[2].health == GpuHealth::ok; }));
  EXPECT_EQ(read().gpus[2].uuid, DeviceUuid("GPU-2"));
}

TEST_F(DeviceProbeTest, A_gpu_that_hangs_later_keeps_its_identity_and_no_old_numbers) {
  give_gpus(2);
  probe(milliseconds(400)).read(kNow);
  hang(1, "nvmlDeviceGetTemperature");
  const Gpu sick = read_gpu(1);
  EXPECT_EQ(sick.health, GpuHealth::unresponsive);
  EXPECT_EQ(sick.uuid, DeviceUuid("GPU-1"));
  EXPECT_EQ(sick.model, "NVIDIA A100-SXM4-80GB");
  EXPECT_THAT(sick.minor, Holds(1u));
  EXPECT_THAT(sick.memory_total, Holds(mebibytes(81920)));
  EXPECT_THAT(sick.memory_used, IsMissing(MissingKind::timed_out));
  EXPECT_THAT(sick.utilization_percent, IsMissing(MissingKind::timed_out));
}

TEST_F(DeviceProbeTest, A_gpu_whose_handle_hangs_costs_only_itself) {
  give_gpus(2);
  hang(0, "nvmlDeviceGetHandleByIndex_v2");
  const Node node = probe(milliseconds(400)).read(kNow);
  EXPECT_EQ(node.gpus.at(0).health, GpuHealth::unresponsive);
  EXPECT_EQ(node.gpus.at(1).health, GpuHealth::ok);
}

TEST_F(DeviceProbeTest, A_gpu_off_the_bus_is_lost_and_keeps_its_name) {
  give_gpus(2);
  read();
  change_gpu(0, [](FakeGpu& gpu) {
    for (const char* call : {"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo",
                             "nvmlDeviceGetTemperature", "nvmlDeviceGetUtilizationRates"})
      gpu.errors[call] = NVML_ERROR_GPU_IS_LOST;
  });
  const Node node = read();
  EXPECT_EQ(node.gpus[0].health, GpuHealth::lost);
  EXPECT_EQ(node.gpus[0].uuid, DeviceUuid("GPU-0"));
  EXPECT_THAT(node.gpus[0].health_reason, HasSubstr("nvidia-smi --gpu-reset"));
  EXPECT_THAT(node.gpus[0].temperature_celsius, IsMissing(MissingKind::device_lost));
  EXPECT_EQ(node.gpus[1].health, GpuHealth::ok);
}

TEST_F(DeviceProbeTest, A_gpu_that_was_lost_before_takt_started_is_listed_without_its_uuid) {
  give_gpus(2);
  change_gpu(1, [](FakeGpu& gpu) {
    gpu.errors["nvmlDeviceGetHandleByIndex_v2"] = NVML_ERROR_GPU_IS_LOST;
  });
  const Gpu gpu = read_gpu(1);
  EXPECT_EQ(gpu.health, GpuHealth::lost);
  EXPECT_EQ(gpu.uuid, DeviceUuid("unknown-gpu-1"));
}

TEST_F(DeviceProbeTest, A_gpu_that_takt_may_not_open_says_what_to_allow) {
  give_gpus(1);
  change_gpu(0, [](FakeGpu& gpu) {
    gpu.errors["nvmlDeviceGetHandleByIndex_v2"] = NVML_ERROR_NO_PERMISSION;
  });
  const Gpu gpu = read_gpu();
  EXPECT_EQ(gpu.health, GpuHealth::failing);
  EXPECT_THAT(gpu.health_reason, HasSubstr("may not open it"));
}

// --- single readings that fail ---

struct ReadingCase {
  const char* function;
  std::function<Missing(const Gpu&)> reason;  // of the field the function feeds
};
void PrintTo(const ReadingCase& c, std::ostream* out) { *out << c.function; }

template <class Field>
std::function<Missing(const Gpu&)> of(Field Gpu::*field) {
  return [field](const Gpu& gpu) {
    return (gpu.*field).has_value() ? Missing{MissingKind::no_sample_yet, "HAS A VALUE"}
                                    : (gpu.*field).error();
  };
}

class ReadingErrorTest : public ProbeTest, public ::testing::WithParamInterface<ReadingCase> {};

TEST_P(ReadingErrorTest, Makes_only_its_own_field_missing_with_the_kind_of_the_error) {
  const std::pair<nvmlReturn_t, MissingKind> kinds[] = {
      {NVML_ERROR_NOT_SUPPORTED, MissingKind::not_supported},
      {NVML_ERROR_NO_PERMISSION, MissingKind::not_permitted},
      {NVML_ERROR_NOT_FOUND, MissingKind::not_found},
      {NVML_ERROR_TIMEOUT, MissingKind::timed_out},
      {NVML_ERROR_GPU_IS_LOST, MissingKind::device_lost},
      {NVML_ERROR_UNKNOWN, MissingKind::driver_error},
      {static_cast<nvmlReturn_t>(4711), MissingKind::driver_error}};
  give_gpus(1);
  for (const auto& [code, kind] : kinds) {
    change_gpu(0, [&, c = code](FakeGpu& gpu) { gpu.errors[GetParam().function] = c; });
    const Gpu gpu = read_gpu();
    const Missing reason = GetParam().reason(gpu);
    EXPECT_EQ(reason.kind, kind) << to_string(reason);
    EXPECT_THAT(reason.detail, HasSubstr(GetParam().function));
    EXPECT_EQ(gpu.uuid, DeviceUuid("GPU-0"));
    EXPECT_EQ(gpu.health == GpuHealth::lost, code == NVML_ERROR_GPU_IS_LOST);
  }
}
INSTANTIATE_TEST_SUITE_P(
    Each, ReadingErrorTest,
    ::testing::Values(
        ReadingCase{"nvmlDeviceGetUtilizationRates", of(&Gpu::utilization_percent)},
        ReadingCase{"nvmlDeviceGetUtilizationRates", of(&Gpu::memory_utilization_percent)},
        ReadingCase{"nvmlDeviceGetTemperature", of(&Gpu::temperature_celsius)},
        ReadingCase{"nvmlDeviceGetPowerUsage", of(&Gpu::power_watts)},
        ReadingCase{"nvmlDeviceGetEnforcedPowerLimit", of(&Gpu::power_limit_watts)},
        ReadingCase{"nvmlDeviceGetTotalEnergyConsumption", of(&Gpu::energy_millijoules)},
        ReadingCase{"nvmlDeviceGetClockInfo", of(&Gpu::sm_clock_mhz)},
        ReadingCase{"nvmlDeviceGetCurrentClocksEventReasons", of(&Gpu::throttle_reasons)},
        ReadingCase{"nvmlDeviceGetPerformanceState", of(&Gpu::performance_state)},
        ReadingCase{"nvmlDeviceGetFanSpeed", of(&Gpu::fan_percent)},
        ReadingCase{"nvmlDeviceGetTotalEccErrors", of(&Gpu::ecc_uncorrected)},
        ReadingCase{"nvmlDeviceGetPcieThroughput", of(&Gpu::pcie_rx_bytes_per_second)},
        ReadingCase{"nvmlDeviceGetMemoryInfo_v2", of(&Gpu::memory_reserved)},
        ReadingCase{"nvmlDeviceGetComputeRunningProcesses_v3", of(&Gpu::processes)}));

// Case C1 4: nonsense is dropped, not shown.
TEST_F(DeviceProbeTest, Impossible_numbers_are_out_of_range) {
  give_gpus(1);
  change_gpu(0, [](FakeGpu& gpu) {
    gpu.rates = {0xFFFFFFFFu, 101};
    gpu.celsius = 0xFFFFFFFFu;
    gpu.milliwatts = 0xFFFFFFFFu;
    gpu.sm_mhz = 0xFFFFFFFFu;
    gpu.tx_kb = 0xFFFFFFFFu;
    gpu.ecc = ~0ull;
    gpu.state = 32;
  });
  const Gpu gpu = read_gpu();
  EXPECT_THAT(gpu.utilization_percent, IsMissing(MissingKind::out_of_range));
  EXPECT_THAT(gpu.memory_utilization_percent, IsMissing(MissingKind::out_of_range));
  EXPECT_THAT(gpu.temperature_celsius, IsMissing(MissingKind::out_of_range));
  EXPECT_THAT(gpu.power_watts, IsMissing(MissingKind::out_of_range));
  EXPECT_THAT(gpu.sm_clock_mhz, IsMissing(MissingKind::out_of_range));
  EXPECT_THAT(gpu.pcie_tx_bytes_per_second, IsMissing(MissingKind::out_of_range));
  EXPECT_THAT(gpu.ecc_uncorrected, IsMissing(MissingKind::out_of_range));
  EXPECT_THAT(gpu.performance_state, IsMissing(MissingKind::out_of_range));
  EXPECT_EQ(gpu.health, GpuHealth::ok) << "a bad sensor does not make a bad GPU";
}

// Case C1 20: sent and received are not the same, and not swapped.
TEST_F(DeviceProbeTest, Pcie_directions_are_not_mixed_up) {
  give_gpus(1);
  change_gpu(0, [](FakeGpu& gpu) {
    gpu.tx_kb = 1000;
    gpu.rx_kb = 250000;
  });
  const Gpu gpu = read_gpu();
  EXPECT_THAT(gpu.pcie_tx_bytes_per_second, Holds(1'000'000));
  EXPECT_THAT(gpu.pcie_rx_bytes_per_second, Holds(250'000'000));
}

// --- memory (case C1 17) ---

TEST_F(DeviceProbeTest, Memory_in_use_does_not_hold_what_the_driver_reserves) {
  give_gpus(1);
  const Gpu gpu = read_gpu();
  EXPECT_THAT(gpu.memory_used, Holds(mebibytes(1300)));
  EXPECT_THAT(gpu.memory_reserved, Holds(mebibytes(620)));
}

TEST_F(DeviceProbeTest, A_driver_whose_used_holds_the_reserved_part_is_understood) {
  give_gpus(1);
  change_gpu(0, [](FakeGpu& gpu) { gpu.used = 1920ull << 20; });  // free + used = total
  EXPECT_THAT(read_gpu().memory_used, Holds(mebibytes(1300)));
}

TEST_F(DeviceProbeTest, A_sum_that_does_not_add_up_falls_back_to_the_older_call) {
  give_gpus(1);
  change_gpu(0, [](FakeGpu& gpu) { gpu.free = 1ull << 20; });
  const Gpu gpu = read_gpu();
  EXPECT_THAT(gpu.memory_used, Holds(mebibytes(1920)));
  EXPECT_THAT(gpu.memory_reserved, IsMissing(MissingKind::out_of_range));
}

TEST_F(DeviceProbeTest, Without_any_memory_call_that_works_the_gpu_is_failing) {
  give_gpus(1);
  change_gpu(0, [](FakeGpu& gpu) {
    gpu.errors["nvmlDeviceGetMemoryInfo_v2"] = NVML_ERROR_UNKNOWN;
    gpu.errors["nvmlDeviceGetMemoryInfo"] = NVML_ERROR_UNKNOWN;
  });
  const Gpu gpu = read_gpu();
  EXPECT_THAT(gpu.memory_total, IsMissing(MissingKind::driver_error));
  EXPECT_EQ(gpu.health, GpuHealth::failing);
}

TEST_F(DeviceProbeTest, A_card_with_unified_memory_has_no_memory_numbers_and_is_healthy) {
  give_gpus(1);
  change_gpu(0, [](FakeGpu& gpu) {
    gpu.errors["nvmlDeviceGetMemoryInfo_v2"] = NVML_ERROR_NOT_SUPPORTED;
    gpu.errors["nvmlDeviceGetMemoryInfo"] = NVML_ERROR_NOT_SUPPORTED;
  });
  const Gpu gpu = read_gpu();
  EXPECT_THAT(gpu.memory_total, IsMissing(MissingKind::not_supported));
  EXPECT_EQ(gpu.health, GpuHealth::ok);
}

TEST_F(OldDriverTest, Uses_the_older_calls_and_says_what_is_not_there) {
  give_gpus(1);
  nvml_->with([](FakeNvml& n) { n.driver_version = "440.33.01"; });
  change_gpu(0, [](FakeGpu& gpu) { gpu.compute = {{77, 500ull << 20}}; });
  const Node node = read();
  const Gpu& gpu = node.gpus.at(0);
  EXPECT_EQ(gpu.health, GpuHealth::ok) << gpu.health_reason;
  EXPECT_THAT(gpu.memory_used, Holds(mebibytes(1920)));
  EXPECT_THAT(gpu.memory_reserved, IsMissing(MissingKind::not_supported));
  EXPECT_THAT(gpu.throttle_reasons, Holds(std::vector<std::string>{"sw_power_cap"}));
  EXPECT_THAT(gpu.mig.enabled, IsMissing(MissingKind::not_supported));
  EXPECT_THAT(gpu.numa_node, IsMissing(MissingKind::not_supported));
  ASSERT_TRUE(gpu.processes.has_value());
  ASSERT_EQ(gpu.processes->size(), 1u);
  EXPECT_EQ(gpu.processes->at(0).pid, 77);
  EXPECT_THAT(gpu.processes->at(0).memory, Holds(mebibytes(500)));
  EXPECT_THAT(node.notes.at(0), HasSubstr("XID errors are not seen"));
}

}  // namespace
}  // namespace takt::device::testing
