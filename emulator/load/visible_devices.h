#pragma once
// Which GPUs a CUDA program sees, by the rules of CUDA_VISIBLE_DEVICES.
#include <optional>
#include <string>
#include <vector>

namespace takt::emulator {

// What the driver has, by index.
struct PresentGpu {
  std::string uuid;
  bool mig_enabled = false;
  std::vector<std::string> migs;  // uuids
};

struct VisibleDevice {
  unsigned gpu = 0;
  int mig = -1;
  bool operator==(const VisibleDevice&) const = default;
};

// `variable` is the value of CUDA_VISIBLE_DEVICES, if it is set. Entries are indices, UUIDs or
// beginnings of a UUID that fit one device; the first that fits none ends the list, as in CUDA. A
// program sees one MIG device at most. Unset: every GPU; the empty text: none.
std::vector<VisibleDevice> visible_devices(const std::vector<PresentGpu>& present,
                                           const std::optional<std::string>& variable);

}  // namespace takt::emulator
