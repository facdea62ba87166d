// The whole emulator as its users meet it: the NVML library, takt-load and the daemon between them.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>

#include "edge/device/nvml_abi.h"
#include "support.h"
#include "support/shared_data.h"

namespace takt::emulator::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTwo = "name: two\ngpus: [{model: L40S}, {model: H100}]";

// nvmlInit for the length of a test.
class Nvml {
 public:
  Nvml() : code(nvmlInit_v2()) {}
  ~Nvml() {
    if (code == NVML_SUCCESS) nvmlShutdown();
  }
  nvmlReturn_t code;
};

nvmlDevice_t gpu(unsigned index) {
  nvmlDevice_t device = nullptr;
  EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(index, &device), NVML_SUCCESS);
  return device;
}

std::uint64_t used(nvmlDevice_t device) {
  nvmlMemory_v2_t memory{};
  memory.version = nvmlMemory_v2;
  EXPECT_EQ(nvmlDeviceGetMemoryInfo_v2(device, &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.total, memory.used + memory.free + memory.reserved);
  return memory.used;
}

std::vector<nvmlProcessInfo_t> processes(nvmlDevice_t device) {
  std::vector<nvmlProcessInfo_t> out(64);
  auto count = static_cast<unsigned>(out.size());
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, out.data()), NVML_SUCCESS);
  out.resize(count);
  return out;
}

class Live : public FleetTest {};

TEST_F(Live, LibraryWithoutAFleetSaysThatNoDriverIsLoaded) {
  EXPECT_EQ(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
  EXPECT_THAT(takt_emulator_problem(), HasSubstr("TAKT_EMULATED_FLEET is not set"));
  unsigned count = 0;
  EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
  EXPECT_EQ(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
}

TEST_F(Live, LibraryStartsTheDaemonAndItEndsByItself) {
  use_fleet(kTwo);
  {
    Nvml nvml;
    ASSERT_EQ(nvml.code, NVML_SUCCESS) << takt_emulator_problem();
    unsigned count = 0;
    EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
    EXPECT_EQ(count, 2u);
    for (const char* socket : {"/driver.sock", "/gpu0.sock", "/gpu1.sock"}) {
      struct stat info {};
      ASSERT_EQ(stat((sockets() + socket).c_str(), &info), 0) << socket;
      EXPECT_EQ(info.st_mode & 0666, 0666u) << "programs of other users must reach it";
    }
    char uuid[96] = {};
    EXPECT_EQ(nvmlDeviceGetUUID(gpu(1), uuid, sizeof uuid), NVML_SUCCESS);
    nvmlDevice_t same = nullptr;
    EXPECT_EQ(nvmlDeviceGetHandleByUUID(uuid, &same), NVML_SUCCESS);
    EXPECT_EQ(same, gpu(1));
    EXPECT_EQ(nvmlDeviceGetUUID(same, uuid, 4), NVML_ERROR_INSUFFICIENT_SIZE);
    EXPECT_EQ(nvmlDeviceGetUUID(same, nullptr, 4), NVML_ERROR_INVALID_ARGUMENT);
  }
  EXPECT_TRUE(eventually([&] { return daemon_is_gone(); }));
}

TEST_F(Live, ABadFleetIsASentenceWithFileLineAndFieldAndLeavesNothing) {
  use_fleet("gpus:\n  - {model: L40S, memory: much}\n");
  EXPECT_NE(nvmlInit_v2(), NVML_SUCCESS);
  EXPECT_THAT(takt_emulator_problem(),
              HasSubstr("fleet.yaml: line 2: gpus[0].memory is 'much'; expected a size"));
  Program program(load({}));
  EXPECT_EQ(program.exit_code(), 1);
  EXPECT_THAT(program.output(), HasSubstr("line 2: gpus[0].memory"));
  EXPECT_TRUE(daemon_is_gone());
}

TEST_F(Live, AMissingFleetFileIsNamed) {
  use_selector(folder() + "/nothing.yaml");
  EXPECT_NE(nvmlInit_v2(), NVML_SUCCESS);
  EXPECT_THAT(takt_emulator_problem(), HasSubstr("nothing.yaml: No such file"));
}

TEST_F(Live, DriverStatesAreTheCodesOfNvmlInit) {
  use_fleet("driver: absent");
  EXPECT_EQ(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
  ASSERT_TRUE(eventually([&] { return daemon_is_gone(); }));
  use_fleet("driver: version-mismatch\ngpus: [{model: T4}]");
  EXPECT_EQ(nvmlInit_v2(), NVML_ERROR_LIB_RM_VERSION_MISMATCH);
}

TEST_F(Live, AProgramsMemoryAndPidAreSeenAndGoneWhenItIsKilled) {
  use_fleet(kTwo);
  Nvml nvml;
  ASSERT_EQ(nvml.code, NVML_SUCCESS);
  Program program(load({"--memory", "10GiB", "--sm", "0.5", "--duration", "60s"}));
  ASSERT_TRUE(eventually([&] { return used(gpu(0)) == 10ULL << 30; }));
  auto found = processes(gpu(0));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pid, static_cast<unsigned>(program.pid()));
  EXPECT_EQ(found[0].usedGpuMemory, 10ULL << 30);
  char name[256] = {};
  EXPECT_EQ(nvmlSystemGetProcessName(found[0].pid, name, sizeof name), NVML_SUCCESS);
  EXPECT_THAT(name, HasSubstr("takt-load"));
  nvmlUtilization_t rates{};
  ASSERT_TRUE(eventually([&] {
    return nvmlDeviceGetUtilizationRates(gpu(0), &rates) == NVML_SUCCESS && rates.gpu == 50;
  }));
  program.signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return used(gpu(0)) == 0; }));
  EXPECT_TRUE(processes(gpu(0)).empty());
}

TEST_F(Live, MemoryBeyondTheCardIsCudasOutOfMemory) {
  use_fleet(kTwo);
  Program first(load({"--memory", "30GiB", "--duration", "60s"}));
  Nvml nvml;
  ASSERT_EQ(nvml.code, NVML_SUCCESS);
  ASSERT_TRUE(eventually([&] { return used(gpu(0)) == 30ULL << 30; }));
  Program second(load({"--memory", "20GiB", "--duration", "60s"}));
  EXPECT_EQ(second.exit_code(), 1);
  EXPECT_THAT(
      second.output(),
      HasSubstr("CUDA out of memory. Tried to allocate 20.00 GiB; 14.39 GiB of 44.99 GiB free"));
  EXPECT_TRUE(first.running());
  EXPECT_EQ(used(gpu(0)), 30ULL << 30);
  Program growing(load({"--memory", "1GiB", "--grow", "200GiB/s", "--duration", "60s"}));
  EXPECT_EQ(growing.exit_code(), 1);
}

TEST_F(Live, ManyAtOnceNeverGetMoreThanTheCardHas) {
  use_fleet("gpus: [{model: L40S, memory: 11GiB, reserved: 1GiB}]");
  Nvml nvml;
  ASSERT_EQ(nvml.code, NVML_SUCCESS);
  std::vector<std::unique_ptr<Program>> programs;
  for (int i = 0; i < 12; ++i)
    programs.push_back(std::make_unique<Program>(load({"--memory", "3GiB", "--duration", "60s"})));
  ASSERT_TRUE(eventually([&] {
    EXPECT_LE(used(gpu(0)), 10ULL << 30);
    int running = 0;
    for (auto& program : programs) running += program->running() ? 1 : 0;
    return running == 3;
  }));
  EXPECT_TRUE(eventually([&] { return used(gpu(0)) == 9ULL << 30; }));
}

TEST_F(Live, CudaVisibleDevicesDecidesWhereAProgramRuns) {
  use_fleet(kTwo);
  Nvml nvml;
  ASSERT_EQ(nvml.code, NVML_SUCCESS);
  char uuid[96] = {};
  ASSERT_EQ(nvmlDeviceGetUUID(gpu(1), uuid, sizeof uuid), NVML_SUCCESS);
  Program one(load({"--memory", "1GiB", "--duration", "60s"}),
              {"CUDA_VISIBLE_DEVICES=" + std::string(uuid)});
  EXPECT_TRUE(eventually([&] { return used(gpu(1)) == 1ULL << 30; }));
  EXPECT_EQ(used(gpu(0)), 0u);
  Program both(load({"--memory", "2GiB", "--duration", "60s"}), {"CUDA_VISIBLE_DEVICES=0,1"});
  EXPECT_TRUE(eventually([&] { return used(gpu(0)) == 2ULL << 30 && used(gpu(1)) == 3ULL << 30; }));
  Program none(load({}), {"CUDA_VISIBLE_DEVICES="});
  EXPECT_EQ(none.exit_code(), 1);
  EXPECT_THAT(none.output(), HasSubstr("no CUDA-capable device is detected"));
}

TEST_F(Live, AProgramOnAMigDeviceIsBoundedByIt) {
  use_fleet("gpus: [{model: H100, mig: {instances: [3g.40gb, 1g.10gb]}}]");
  Nvml nvml;
  ASSERT_EQ(nvml.code, NVML_SUCCESS);
  nvmlDevice_t mig = nullptr;
  ASSERT_EQ(nvmlDeviceGetMigDeviceHandleByIndex(gpu(0), 1, &mig), NVML_SUCCESS);
  char uuid[96] = {};
  ASSERT_EQ(nvmlDeviceGetUUID(mig, uuid, sizeof uuid), NVML_SUCCESS);
  nvmlDevice_t by_uuid = nullptr;
  EXPECT_EQ(nvmlDeviceGetHandleByUUID(uuid, &by_uuid), NVML_SUCCESS);
  EXPECT_EQ(by_uuid, mig);
  const std::string visible = "CUDA_VISIBLE_DEVICES=" + std::string(uuid);
  Program large(load({"--memory", "12GiB"}), {visible});
  EXPECT_EQ(large.exit_code(), 1) << "a 1g.10gb has not 12 GiB";
  Program small(load({"--memory", "4GiB", "--duration", "60s"}), {visible});
  ASSERT_TRUE(eventually([&] { return used(mig) == 4ULL << 30; }));
  EXPECT_EQ(used(gpu(0)), 4ULL << 30);
  ASSERT_EQ(processes(gpu(0)).size(), 1u);
  unsigned instance = 0;
  EXPECT_EQ(nvmlDeviceGetGpuInstanceId(mig, &instance), NVML_SUCCESS);
  EXPECT_EQ(processes(gpu(0))[0].gpuInstanceId, instance);
  nvmlGpuInstance_t handle = nullptr;
  nvmlGpuInstanceInfo_t info{};
  ASSERT_EQ(nvmlDeviceGetGpuInstanceById(gpu(0), instance, &handle), NVML_SUCCESS);
  ASSERT_EQ(nvmlGpuInstanceGetInfo(handle, &info), NVML_SUCCESS);
  EXPECT_EQ(info.placement.start, 4u) << "after the 3g at 0 to 3";
  EXPECT_EQ(info.placement.size, 1u);
  nvmlUtilization_t rates{};
  EXPECT_EQ(nvmlDeviceGetUtilizationRates(mig, &rates), NVML_ERROR_NOT_SUPPORTED);
}

TEST_F(Live, GpmMeasuresWhatAProgramDoes) {
  use_fleet(kTwo);
  Nvml nvml;
  ASSERT_EQ(nvml.code, NVML_SUCCESS);
  Program program(load({"--memory", "1GiB", "--sm", "0.6", "--tensor", "0.3", "--dram", "0.4",
                        "--pcie-rx", "2GiB/s", "--duration", "60s"}),
                  {"CUDA_VISIBLE_DEVICES=1"});
  nvmlUtilization_t rates{};
  ASSERT_TRUE(eventually([&] {
    return nvmlDeviceGetUtilizationRates(gpu(1), &rates) == NVML_SUCCESS && rates.gpu == 60;
  }));
  nvmlGpmSupport_t support{NVML_GPM_SUPPORT_VERSION, 0};
  ASSERT_EQ(nvmlGpmQueryDeviceSupport(gpu(1), &support), NVML_SUCCESS);
  ASSERT_EQ(support.isSupportedDevice, 1u);
  static nvmlGpmMetricsGet_t get;
  get = {};
  get.version = NVML_GPM_METRICS_GET_VERSION;
  const unsigned ids[] = {NVML_GPM_METRIC_SM_UTIL, NVML_GPM_METRIC_ANY_TENSOR_UTIL,
                          NVML_GPM_METRIC_DRAM_BW_UTIL, NVML_GPM_METRIC_PCIE_RX_PER_SEC, 77};
  get.numMetrics = 5;
  for (unsigned i = 0; i < 5; ++i) get.metrics[i].metricId = ids[i];
  ASSERT_EQ(nvmlGpmSampleAlloc(&get.sample1), NVML_SUCCESS);
  ASSERT_EQ(nvmlGpmSampleAlloc(&get.sample2), NVML_SUCCESS);
  ASSERT_EQ(nvmlGpmSampleGet(gpu(1), get.sample1), NVML_SUCCESS);
  EXPECT_EQ(nvmlGpmMetricsGet(&get), NVML_ERROR_INVALID_ARGUMENT) << "the second sample is empty";
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the interval that is measured
  ASSERT_EQ(nvmlGpmSampleGet(gpu(1), get.sample2), NVML_SUCCESS);
  ASSERT_EQ(nvmlGpmMetricsGet(&get), NVML_SUCCESS);
  const double expected[] = {60, 30, 40, 2048};
  for (unsigned i = 0; i < 4; ++i)
    EXPECT_NEAR(get.metrics[i].value, expected[i], expected[i] * 0.01) << i;
  EXPECT_EQ(get.metrics[4].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
  EXPECT_TRUE(std::isnan(get.metrics[4].value));
  EXPECT_EQ(nvmlGpmSampleGet(gpu(0), get.sample1), NVML_ERROR_NOT_SUPPORTED)
      << "an L40S has no GPM";
  nvmlGpmSampleFree(get.sample1);
  nvmlGpmSampleFree(get.sample2);
}

TEST_F(Live, ACallThatHangsKeepsNoOtherCallWaiting) {
  use_fleet("gpus: [{model: L40S}, {model: L40S, fault: {hang: [MemoryInfo]}}]");
  Nvml nvml;
  ASSERT_EQ(nvml.code, NVML_SUCCESS);
  nvmlDevice_t sick = gpu(1);
  std::atomic<bool> returned{false};
  std::thread stuck([&] {
    nvmlMemory_t memory{};
    nvmlDeviceGetMemoryInfo(sick, &memory);
    returned = true;
  });
  unsigned value = 0;
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(nvmlDeviceGetTemperature(sick, NVML_TEMPERATURE_GPU, &value), NVML_SUCCESS);
    EXPECT_EQ(nvmlDeviceGetPowerUsage(gpu(0), &value), NVML_SUCCESS);
    EXPECT_EQ(used(gpu(0)), 0u);
  }
  EXPECT_FALSE(returned);
  // The daemon's end is the only thing that frees it.
  pid_t daemon = daemon_pid();
  ASSERT_GT(daemon, 1);
  ASSERT_EQ(nvmlShutdown(), NVML_SUCCESS);  // else the call would be tried again on a new one
  nvml.code = NVML_ERROR_UNINITIALIZED;
  ASSERT_EQ(kill(daemon, SIGTERM), 0);
  stuck.join();
  EXPECT_TRUE(returned);
}

TEST_F(Live, FaultsReachTheCaller) {
  use_fleet(
      "gpus:\n"
      "- {model: L40S, fault: {lost: true}}\n"
      "- {model: L40S, fault: {reset_required: true}}\n"
      "- {model: L40S, fault: {error: {Temperature: NO_PERMISSION}}}\n"
      "- {model: L40S, temperature: 91, throttle: [hw_thermal, sw_power_cap]}\n");
  Nvml nvml;
  ASSERT_EQ(nvml.code, NVML_SUCCESS);
  unsigned value = 0;
  EXPECT_EQ(nvmlDeviceGetTemperature(gpu(0), NVML_TEMPERATURE_GPU, &value), NVML_ERROR_GPU_IS_LOST);
  EXPECT_EQ(nvmlDeviceGetTemperature(gpu(1), NVML_TEMPERATURE_GPU, &value),
            NVML_ERROR_RESET_REQUIRED);
  EXPECT_EQ(nvmlDeviceGetTemperature(gpu(2), NVML_TEMPERATURE_GPU, &value),
            NVML_ERROR_NO_PERMISSION);
  EXPECT_EQ(nvmlDeviceGetPowerUsage(gpu(2), &value), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceGetTemperature(gpu(3), NVML_TEMPERATURE_GPU, &value), NVML_SUCCESS);
  EXPECT_EQ(value, 91u);
  unsigned long long reasons = 0;
  EXPECT_EQ(nvmlDeviceGetCurrentClocksEventReasons(gpu(3), &reasons), NVML_SUCCESS);
  EXPECT_EQ(reasons, nvmlClocksThrottleReasonHwThermalSlowdown | nvmlClocksEventReasonSwPowerCap);
}

TEST_F(Live, AnXidEventArrivesOnce) {
  use_fleet("gpus: [{model: L40S, fault: {xid: [{at: 300ms, code: 79}]}}]");
  Nvml nvml;
  ASSERT_EQ(nvml.code, NVML_SUCCESS);
  nvmlEventSet_t set = nullptr;
  ASSERT_EQ(nvmlEventSetCreate(&set), NVML_SUCCESS);
  ASSERT_EQ(nvmlDeviceRegisterEvents(gpu(0), nvmlEventTypeXidCriticalError, set), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceRegisterEvents(gpu(0), nvmlEventMigConfigChange, set),
            NVML_ERROR_NOT_SUPPORTED);
  nvmlEventData_t event{};
  ASSERT_EQ(nvmlEventSetWait_v2(set, &event, 10'000), NVML_SUCCESS);
  EXPECT_EQ(event.device, gpu(0));
  EXPECT_EQ(event.eventType, nvmlEventTypeXidCriticalError);
  EXPECT_EQ(event.eventData, 79u);
  EXPECT_EQ(nvmlEventSetWait_v2(set, &event, 10), NVML_ERROR_TIMEOUT);
  nvmlEventSetFree(set);
}

TEST_F(Live, LinksAndTopologyAreThoseOfTheFleet) {
  use_fleet(
      "gpus: [{model: A100-80, count: 2, numa: 0}, {model: L40S, numa: 1}]\nlinks: [{between: [0, "
      "1], kind: nvlink, count: 3}]");
  Nvml nvml;
  ASSERT_EQ(nvml.code, NVML_SUCCESS);
  unsigned active = 0;
  for (unsigned link = 0; link < NVML_NVLINK_MAX_LINKS; ++link) {
    nvmlEnableState_t state{};
    ASSERT_EQ(nvmlDeviceGetNvLinkState(gpu(0), link, &state), NVML_SUCCESS);
    if (state != NVML_FEATURE_ENABLED) continue;
    ++active;
    nvmlPciInfo_t remote{}, peer{};
    ASSERT_EQ(nvmlDeviceGetNvLinkRemotePciInfo_v2(gpu(0), link, &remote), NVML_SUCCESS);
    ASSERT_EQ(nvmlDeviceGetPciInfo_v3(gpu(1), &peer), NVML_SUCCESS);
    EXPECT_STREQ(remote.busId, peer.busId);
  }
  EXPECT_EQ(active, 3u);
  nvmlEnableState_t state{};
  EXPECT_EQ(nvmlDeviceGetNvLinkState(gpu(2), 0, &state), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(nvmlDeviceGetNvLinkState(gpu(0), 18, &state), NVML_ERROR_INVALID_ARGUMENT);
  nvmlGpuTopologyLevel_t level{};
  EXPECT_EQ(nvmlDeviceGetTopologyCommonAncestor(gpu(0), gpu(1), &level), NVML_SUCCESS);
  EXPECT_EQ(level, NVML_TOPOLOGY_NODE);
  EXPECT_EQ(nvmlDeviceGetTopologyCommonAncestor(gpu(0), gpu(2), &level), NVML_SUCCESS);
  EXPECT_EQ(level, NVML_TOPOLOGY_SYSTEM);
}

TEST_F(Live, ManyWhoStartItAtOnceMeetOneDaemon) {
  use_fleet(kTwo);
  std::vector<std::unique_ptr<Program>> programs;
  for (int i = 0; i < 16; ++i)
    programs.push_back(std::make_unique<Program>(load({"--memory", "1GiB", "--duration", "60s"})));
  Nvml nvml;
  ASSERT_EQ(nvml.code, NVML_SUCCESS) << takt_emulator_problem();
  EXPECT_TRUE(eventually([&] { return used(gpu(0)) == 16ULL << 30; })) << used(gpu(0));
  EXPECT_EQ(processes(gpu(0)).size(), 16u);
}

TEST_F(Live, ProgramsThatComeWhileItEndsAlwaysFindAGpu) {
  setenv("TAKT_EMULATOR_IDLE", "0.01", 1);
  use_fleet(kTwo);
  for (int i = 0; i < 25; ++i) {
    Program program(load({"--memory", "1GiB", "--duration", "1ms"}));
    ASSERT_EQ(program.exit_code(), 0) << program.output();
    if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(i % 13));
  }
}

TEST_F(Live, ADaemonThatWasKilledIsReplacedUnderTheLibrary) {
  use_fleet(kTwo);
  Nvml nvml;
  ASSERT_EQ(nvml.code, NVML_SUCCESS);
  pid_t daemon = daemon_pid();
  ASSERT_GT(daemon, 1);
  ASSERT_EQ(kill(daemon, SIGKILL), 0);
  EXPECT_EQ(used(gpu(0)), 0u) << "a new daemon answers, over the sockets that the old one left";
}

TEST_F(Live, AProgramEndsAsItWasTold) {
  use_fleet(kTwo);
  Program coded(load({"--duration", "1ms", "--exit-code", "7"}));
  EXPECT_EQ(coded.exit_code(), 7);
  Program crashing(load({"--duration", "60s", "--crash-after", "20ms"}));
  EXPECT_TRUE(WIFSIGNALED(crashing.status()));
  EXPECT_EQ(WTERMSIG(crashing.status()), SIGSEGV);
  Nvml nvml;
  ASSERT_EQ(nvml.code, NVML_SUCCESS);
  Program stubborn(load({"--duration", "0", "--memory", "1GiB", "--ignore-term"}));
  ASSERT_TRUE(eventually([&] { return used(gpu(0)) == 1ULL << 30; }));
  stubborn.signal(SIGTERM);
  EXPECT_FALSE(eventually([&] { return !stubborn.running(); }, 0.1));
  Program polite(load({"--duration", "0", "--memory", "1GiB"}));
  ASSERT_TRUE(eventually([&] { return used(gpu(0)) == 2ULL << 30; }));
  polite.signal(SIGTERM);
  EXPECT_EQ(WTERMSIG(polite.status()), SIGTERM);
}

TEST_F(Live, ACaptureIsPlayedThroughTheLibraryAndClientsComeOnTop) {
  TAKT_SHARED_DATA(file,
                   "data/telemetry/nvidia_smi_captures/linux-x86_64__nvidia-l40s__595.80.txt.gz");
  use_selector(file.string() + "#load");
  Nvml nvml;
  ASSERT_EQ(nvml.code, NVML_SUCCESS) << takt_emulator_problem();
  char name[96] = {}, version[80] = {};
  EXPECT_EQ(nvmlDeviceGetName(gpu(0), name, sizeof name), NVML_SUCCESS);
  EXPECT_STREQ(name, "NVIDIA L40S");
  EXPECT_EQ(nvmlSystemGetDriverVersion(version, sizeof version), NVML_SUCCESS);
  EXPECT_STREQ(version, "595.80");
  unsigned fan = 0;
  EXPECT_EQ(nvmlDeviceGetFanSpeed(gpu(0), &fan), NVML_ERROR_NOT_SUPPORTED);
  nvmlUtilization_t rates{};
  ASSERT_EQ(nvmlDeviceGetUtilizationRates(gpu(0), &rates), NVML_SUCCESS);
  EXPECT_EQ(rates.gpu, 9u);
  auto found = processes(gpu(0));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].usedGpuMemory, 538ULL << 20);
  EXPECT_EQ(nvmlSystemGetProcessName(found[0].pid, name, sizeof name), NVML_SUCCESS);
  EXPECT_STREQ(name, "ffmpeg");
  nvmlMemory_t before{}, after{};
  ASSERT_EQ(nvmlDeviceGetMemoryInfo(gpu(0), &before), NVML_SUCCESS);
  Program program(load({"--memory", "4GiB", "--sm", "0.5", "--duration", "60s"}));
  ASSERT_TRUE(eventually([&] {
    return nvmlDeviceGetUtilizationRates(gpu(0), &rates) == NVML_SUCCESS && rates.gpu == 59;
  }));
  ASSERT_EQ(nvmlDeviceGetMemoryInfo(gpu(0), &after), NVML_SUCCESS);
  EXPECT_EQ(after.used - before.used, 4ULL << 30);
  EXPECT_EQ(before.free - after.free, 4ULL << 30);
  EXPECT_EQ(processes(gpu(0)).size(), 3u);
}

TEST_F(Live, TheDaemonExplainsItselfAndChecksAFleet) {
  Program help({TAKT_EMULATOR, "--help"});
  EXPECT_EQ(help.exit_code(), 0);
  EXPECT_THAT(help.output(), HasSubstr("--idle-exit"));
  Program nothing({TAKT_EMULATOR});
  EXPECT_EQ(nothing.exit_code(), 2);
  Program wrong({TAKT_EMULATOR, "--fleet", "x", "--idle-exit", "never"});
  EXPECT_EQ(wrong.exit_code(), 2);
  EXPECT_THAT(wrong.output(), HasSubstr("expected seconds"));
  use_fleet(kTwo);
  Program check({TAKT_EMULATOR, "--check", "--fleet", folder() + "/fleet.yaml"});
  EXPECT_EQ(check.exit_code(), 0);
  EXPECT_THAT(check.output(), HasSubstr("two: 2 GPUs"));
}

}  // namespace
}  // namespace takt::emulator::testing
