#pragma once
// What a host has and what it is doing: nodes, GPUs, MIG instances and the processes on them.
// Plain values as an agent reports them; anything that could not be read is Missing with a reason.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/measured.h"
#include "core/base/quantities.h"

namespace takt {

enum class ProcessKind { compute, graphics, both };

// A process that holds a GPU. `attempt` is set when takt started it; otherwise it is foreign: it is
// shown and respected, never killed.
struct GpuProcess {
  std::int64_t pid = 0;
  ProcessKind kind = ProcessKind::compute;
  Measured<std::string> name = missing(MissingKind::not_found);  // program, e.g. "python3"
  Measured<std::string> user = missing(MissingKind::not_found);  // login name, or the uid in digits
  Measured<Instant> started = missing(MissingKind::not_found);
  Measured<Bytes> memory = missing(MissingKind::not_supported);
  Measured<int> sm_percent = missing(MissingKind::no_sample_yet);  // of the device, 0-100
  std::optional<DeviceUuid> mig_instance;
  std::optional<AttemptId> attempt;
  bool foreign() const { return !attempt.has_value(); }
};

// A hardware partition of a GPU: a GPU instance with its compute instance.
struct MigInstance {
  DeviceUuid uuid;
  std::string profile;  // "1g.10gb": derived from slices and memory
  int start = 0;        // memory slice it begins at; -1 unknown
  int size = 0;         // memory slices
  int compute_slices = 0;
  unsigned gpu_instance = 0;
  unsigned compute_instance = 0;
  Measured<Bytes> memory_total = missing(MissingKind::no_sample_yet);
  Measured<Bytes> memory_used = missing(MissingKind::no_sample_yet);
};

struct MigState {
  Measured<bool> enabled = missing(MissingKind::not_supported);
  Measured<bool> pending = missing(MissingKind::not_supported);  // after the next reset
  std::vector<MigInstance> instances;
};

// `unresponsive`: a call did not return before its deadline. `lost`: off the bus or needs a reset.
// Neither is handed out; both remove only that GPU.
enum class GpuHealth { ok, unresponsive, lost, failing };

struct XidEvent {
  std::uint64_t code = 0;
  Instant at;
};

// Where a "how busy" number comes from, best first (FACTS B2, provenance ladder).
enum class BusySource {
  cycle_counters,
  dcgm_sm_active,
  gpm,
  graphics_active,
  process,
  gpu_util,
  power,
  none
};

struct Gpu {
  DeviceUuid uuid;
  unsigned index = 0;                                              // NVML's, of this boot
  Measured<unsigned> minor = missing(MissingKind::no_sample_yet);  // /dev/nvidiaN
  std::string model;                                               // as the driver names it
  std::string pci_bus_id;
  Measured<int> numa_node = missing(MissingKind::not_supported);
  GpuHealth health = GpuHealth::ok;
  std::string health_reason;  // a sentence, when health is not ok

  // total = used + reserved + free where the driver tells `reserved` (memory v2).
  Measured<Bytes> memory_total = missing(MissingKind::no_sample_yet);
  Measured<Bytes> memory_used = missing(
      MissingKind::no_sample_yet);  // without what the driver reserves, if reserved is known
  Measured<Bytes> memory_reserved = missing(MissingKind::not_supported);

  // Share of time with at least one kernel running, 0-100: says "in use", not "well used".
  Measured<int> utilization_percent = missing(MissingKind::no_sample_yet);
  Measured<int> memory_utilization_percent = missing(MissingKind::no_sample_yet);
  // From GPM (Hopper and later), ratios 0-1; missing elsewhere.
  Measured<double> sm_active_ratio = missing(MissingKind::not_supported);
  Measured<double> tensor_active_ratio = missing(MissingKind::not_supported);
  Measured<double> dram_active_ratio = missing(MissingKind::not_supported);
  Measured<std::int64_t> pcie_rx_bytes_per_second = missing(MissingKind::not_supported);
  Measured<std::int64_t> pcie_tx_bytes_per_second = missing(MissingKind::not_supported);

  Measured<int> temperature_celsius = missing(MissingKind::no_sample_yet);
  Measured<double> power_watts = missing(MissingKind::no_sample_yet);
  Measured<double> power_limit_watts = missing(MissingKind::no_sample_yet);
  Measured<std::int64_t> energy_millijoules = missing(MissingKind::not_supported);
  Measured<int> sm_clock_mhz = missing(MissingKind::no_sample_yet);
  Measured<int> memory_clock_mhz = missing(MissingKind::no_sample_yet);
  Measured<std::vector<std::string>> throttle_reasons = missing(MissingKind::no_sample_yet);
  Measured<std::string> performance_state = missing(MissingKind::not_supported);
  Measured<int> fan_percent = missing(MissingKind::not_supported);
  Measured<std::int64_t> ecc_uncorrected = missing(MissingKind::not_supported);

  MigState mig;
  Measured<std::vector<GpuProcess>> processes = missing(MissingKind::no_sample_yet);
  std::vector<XidEvent> xids;  // the last few, oldest first
};

// How two GPUs of a node are connected; the order is from near to far.
enum class LinkKind { nvlink, pix, pxb, phb, node, sys, unknown };

struct GpuLink {
  DeviceUuid a;
  DeviceUuid b;
  LinkKind kind = LinkKind::unknown;
  int nvlinks = 0;  // number of NVLink connections when kind is nvlink
};

struct Node {
  NodeId id;
  std::string boot_id;
  int cpus = 0;
  Bytes memory;
  bool emulated = false;       // the NVML library says that it stands in for GPUs
  std::string driver_version;  // empty: no driver
  std::string driver_problem;  // a sentence with the next step; empty when the driver works
  std::vector<Gpu> gpus;       // by index
  std::vector<GpuLink> links;
  std::vector<std::string> notes;  // sentences: what is limited on this host and what to do
};

// The words OUTPUTS.md and messages use. Defined in device.cpp.
std::string to_string(LinkKind kind);
std::string to_string(GpuHealth health);
std::string to_string(BusySource source);
std::string to_string(ProcessKind kind);

}  // namespace takt
