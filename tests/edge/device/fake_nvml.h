#pragma once
// A driver's library for tests: what it answers is plain data that a test changes while the library
// is in use. The library and the test share this layout; the test gets the data by fake_nvml().
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "edge/device/nvml_abi.h"

namespace takt::device::testing {

struct FakeProcess {
  unsigned pid = 0;
  unsigned long long memory = NVML_VALUE_NOT_AVAILABLE_ULL;
  unsigned gpu_instance = NVML_NO_INSTANCE_ID;
  unsigned compute_instance = NVML_NO_INSTANCE_ID;
};

struct FakeInstance {
  std::string uuid;
  unsigned gpu_instance = 0, compute_instance = 0;
  unsigned start = 0, size = 1;
  unsigned gpu_slices = 1, compute_slices = 1, ofa = 0;
  unsigned long long memory_mib = 0, used = 0;
};

struct FakeGpu {
  std::string uuid, name = "NVIDIA A100-SXM4-80GB";
  unsigned minor = 0, bus = 0, numa = 0;
  // Memory v2, and what v1 calls used.
  unsigned long long total = 81920ull << 20, free = 80000ull << 20, used = 1300ull << 20,
                     reserved = 620ull << 20, used_v1 = 1920ull << 20;
  nvmlUtilization_t rates{37, 12};
  unsigned celsius = 41, milliwatts = 123456, limit_milliwatts = 400000, sm_mhz = 1410,
           memory_mhz = 1593, fan = 30, state = 0, tx_kb = 1000, rx_kb = 250000;
  unsigned long long millijoules = 987654321, ecc = 0, reasons = nvmlClocksEventReasonSwPowerCap;
  std::vector<FakeProcess> compute, graphics;
  std::vector<nvmlProcessUtilizationSample_t> samples;
  unsigned mig = 0, mig_pending = 0;
  std::vector<FakeInstance> instances;
  bool gpm = false;
  std::map<unsigned, double> gpm_values;       // by metric
  std::vector<unsigned> nvlink_buses;          // of the other ends
  std::map<std::string, nvmlReturn_t> errors;  // by function
};

struct FakeNvml {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<FakeGpu> gpus;
  std::string driver_version = "550.54.15", emulator_problem;
  std::map<std::string, nvmlReturn_t> errors;   // of every GPU
  std::set<std::pair<int, std::string>> hangs;  // GPU (-1: none) and function
  std::map<std::pair<unsigned, unsigned>, unsigned> ancestors;
  bool long_process_entries = false;  // as drivers 535.43 to 535.86 did
  std::deque<nvmlEventData_t> events;
  // What the caller did.
  int inits = 0, shutdowns = 0, samples_held = 0, sets_held = 0;
  std::map<std::string, int> calls;

  // For tests: back to a driver without GPUs, for the library may stay loaded from test to test.
  void reset() {
    with([](FakeNvml& n) {
      n.gpus.clear();
      n.driver_version = "550.54.15";
      n.emulator_problem.clear();
      n.errors.clear();
      n.hangs.clear();
      n.ancestors.clear();
      n.long_process_entries = false;
      n.events.clear();
      n.inits = n.shutdowns = n.samples_held = n.sets_held = 0;
      n.calls.clear();
    });
  }
  // For tests: changes the data while the library may be in use.
  template <class Change>
  void with(Change change) {
    const std::lock_guard lock(mutex);
    change(*this);
    changed.notify_all();
  }
};

inline nvmlDevice_t fake_handle(unsigned index) {
  return reinterpret_cast<nvmlDevice_t>(std::uintptr_t{index} + 1);
}

}  // namespace takt::device::testing

extern "C" TAKT_NVML_API takt::device::testing::FakeNvml* fake_nvml();
