#pragma once
// How the GPUs of a node are connected: by NVLink where there are links between two of them or to
// common switches, else by how far up the PCIe tree their common ancestor is.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/model/device.h"
#include "edge/device/nvml_library.h"

namespace takt::device {

// One GPU as topology sees it.
struct LinkedGpu {
  DeviceUuid uuid;
  std::string pci;                       // as pci_text gives it
  std::vector<std::string> nvlink_ends;  // PCI ids at the other ends of its active links
  nvmlDevice_t handle = nullptr;
};

using GpuPair = std::pair<DeviceUuid, DeviceUuid>;
using AncestorLevels = std::map<GpuPair, LinkKind>;

// Connections between two GPUs: direct links, or over switches the smaller number of links of both
// to each common switch. Ends at other GPUs are never taken for switches.
int nvlinks_between(const LinkedGpu& a, const LinkedGpu& b, const std::vector<LinkedGpu>& all);

// The driver's word for each pair, `unknown` where it has none. May block.
AncestorLevels ask_ancestors(NvmlLibrary& library, const std::vector<LinkedGpu>& gpus);

// Every pair once, in the order of `gpus`. Pairs that `levels` lacks are `unknown` without NVLink.
std::vector<GpuLink> gpu_links(const std::vector<LinkedGpu>& gpus, const AncestorLevels& levels);

}  // namespace takt::device
