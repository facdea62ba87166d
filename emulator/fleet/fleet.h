#pragma once
// A fleet: the GPUs that the emulator plays, at the moment it starts. Plain values; read from YAML
// or from what nvidia-smi printed on a real machine (read_fleet.h).
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fleet/codes.h"

namespace takt::emulator {

inline constexpr std::uint64_t kMiB = 1024 * 1024;

// A MIG device: one GPU instance with one compute instance.
struct FleetMig {
  std::string uuid;
  unsigned gpu_instance = 0;
  unsigned compute_instance = 0;
  Reading compute_slices = answer(Code::not_supported);
  Reading memory_slices = answer(Code::not_supported);  // size of the placement
  Reading start = answer(Code::not_supported);          // first memory slice; captures do not tell
  Reading multiprocessors = answer(Code::not_supported);
  Reading copy_engines = answer(Code::not_supported);
  Reading memory_total = answer(Code::not_supported);  // bytes
  Reading memory_reserved = answer(Code::not_supported);
  Reading memory_used = answer(Code::not_supported);
  Reading memory_free = answer(Code::not_supported);
};

// A process that holds the GPU from the start: takt knows nothing of it.
struct FleetProcess {
  unsigned pid = 0;
  std::string name;
  bool compute = true;
  bool graphics = false;
  Reading memory = answer(Code::not_supported);  // bytes
  std::optional<unsigned> gpu_instance;
  std::optional<unsigned> compute_instance;
  Reading sm = answer(Code::not_supported);  // percent of the device, 0-100
  Reading memory_util = answer(Code::not_supported);
};

struct FleetXid {
  double at_seconds = 0;  // after the daemon started
  std::uint64_t code = 0;
};

// What goes wrong with a GPU, `after_seconds` after the daemon started. Calls are named as in NVML,
// with or without "nvmlDevice"/"Get" and without version ("MemoryInfo"); see call_matches().
struct FleetFault {
  double after_seconds = 0;
  bool hang_all = false;
  std::vector<std::string> hang;
  bool lost = false;
  bool reset_required = false;
  std::map<std::string, Code> errors;
  std::vector<FleetXid> xids;
};

// Number of NVLink connections to another GPU of the fleet.
struct FleetLink {
  unsigned peer = 0;
  unsigned count = 0;
};

struct FleetGpu {
  std::string uuid;
  std::string name;
  std::string bus_id;  // "00000000:0C:00.0"
  Reading pci_device_id = answer(Code::not_supported);
  Reading pci_subsystem_id = answer(Code::not_supported);
  Reading minor = answer(Code::not_supported);
  Reading numa_node = answer(Code::not_supported);

  // Bytes. `memory_used` is without what the driver reserves where `memory_reserved` is known.
  Reading memory_total = answer(Code::not_supported);
  Reading memory_reserved = answer(Code::not_supported);
  Reading memory_used = answer(Code::not_supported);
  Reading memory_free = answer(Code::not_supported);

  Reading utilization_gpu = answer(Code::not_supported);     // percent of time a kernel ran
  Reading utilization_memory = answer(Code::not_supported);  // percent of time memory was accessed
  Reading temperature = answer(Code::not_supported);         // Celsius
  Reading fan = answer(Code::not_supported);                 // percent
  Reading power = answer(Code::not_supported);               // mW
  Reading power_limit = answer(Code::not_supported);         // mW, enforced
  Reading energy = answer(Code::not_supported);              // mJ since the driver was loaded
  Reading clock_graphics = answer(Code::not_supported);      // MHz
  Reading clock_sm = answer(Code::not_supported);
  Reading clock_memory = answer(Code::not_supported);
  Reading clock_video = answer(Code::not_supported);
  Reading clock_sm_max = answer(Code::not_supported);
  Reading event_reasons = answer(Code::not_supported);  // NVML's bit mask
  Reading performance_state = answer(Code::not_supported);
  Reading pcie_tx = answer(Code::not_supported);  // KB/s
  Reading pcie_rx = answer(Code::not_supported);  // KB/s
  Reading ecc_corrected_volatile = answer(Code::not_supported);
  Reading ecc_uncorrected_volatile = answer(Code::not_supported);
  Reading ecc_corrected_aggregate = answer(Code::not_supported);
  Reading ecc_uncorrected_aggregate = answer(Code::not_supported);

  Reading mig_current = answer(Code::not_supported);  // 0 or 1
  Reading mig_pending = answer(Code::not_supported);
  std::vector<FleetMig> migs;
  unsigned mig_max = 0;

  std::vector<FleetProcess> processes;
  std::vector<FleetLink> nvlinks;
  unsigned nvlinks_to_switch = 0;  // links to an NVSwitch or to GPUs that are not in the fleet
  bool gpm = false;                // GPM counters: Hopper and later
  bool measured = false;           // from a capture: keep its values, add clients on top
  FleetFault fault;
};

enum class DriverState { ok, absent, too_old, version_mismatch };

// How two GPUs reach each other without NVLink; values of the public nvmlGpuTopologyLevel_t.
enum class Topology : unsigned {
  internal = 0,
  single = 10,
  multiple = 20,
  hostbridge = 30,
  node = 40,
  system = 50
};

struct Fleet {
  std::string name;
  DriverState driver = DriverState::ok;
  std::string driver_version;
  std::string nvml_version;
  Reading cuda_version = answer(Code::not_supported);  // 12040 for 12.4
  std::vector<FleetGpu> gpus;
  std::map<std::pair<unsigned, unsigned>, Topology> topology;  // first index < second
};

// "nvmlDeviceGetMemoryInfo_v2" and "MemoryInfo" name the same call: prefix nvml, Device, Get and
// the version are left out, upper and lower case are the same.
std::string canonical_call(const std::string& name);

}  // namespace takt::emulator
