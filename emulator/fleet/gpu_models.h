#pragma once
// The GPUs that a YAML fleet can name by model, and the MIG profiles they offer.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace takt::emulator {

struct GpuModel {
  const char* key;           // "A100-80": what a fleet file writes
  const char* name;          // as the driver names it
  unsigned memory_mib;       // what nvidia-smi calls total
  unsigned reserved_mib;     // what the driver keeps for itself on an idle card
  unsigned multiprocessors;  // streaming multiprocessors
  unsigned mig_sms;          // SMs of a one-slice instance; 0: no MIG
  unsigned mig_compute;      // compute slices, 7 or 4
  unsigned mig_memory;       // memory slices, 8 or 4
  unsigned power_watts;
  unsigned clock_mhz;  // highest SM clock
  unsigned memory_clock_mhz;
  unsigned pci_device;  // device << 16 | 0x10DE
  unsigned nvlinks;     // 0: no NVLink
  bool fan;             // has one of its own
  bool gpm;
};

// By key, ignoring case.
const GpuModel* gpu_model(std::string_view key);
// The model whose driver name it is (of a capture); a name part such as "H100 80GB" is enough.
const GpuModel* gpu_model_by_name(std::string_view name);
std::string gpu_model_keys();  // "A10, A30, ...": for messages

struct MigProfile {
  std::string name;  // "3g.40gb"
  unsigned compute_slices = 0;
  unsigned memory_slices = 0;
  std::vector<unsigned> starts;  // legal first memory slices, in the order the driver prefers
};
std::vector<MigProfile> mig_profiles(const GpuModel& model);
unsigned mig_multiprocessors(const GpuModel& model, unsigned compute_slices);

}  // namespace takt::emulator
