#include "edge/device/topology.h"

#include <algorithm>

namespace takt::device {
namespace {

LinkKind kind_of(nvmlGpuTopologyLevel_t level) {
  switch (level) {
    case NVML_TOPOLOGY_INTERNAL:
    case NVML_TOPOLOGY_SINGLE: return LinkKind::pix;
    case NVML_TOPOLOGY_MULTIPLE: return LinkKind::pxb;
    case NVML_TOPOLOGY_HOSTBRIDGE: return LinkKind::phb;
    case NVML_TOPOLOGY_NODE: return LinkKind::node;
    case NVML_TOPOLOGY_SYSTEM: return LinkKind::sys;
  }
  return LinkKind::unknown;  // a level of a driver newer than this program
}

int count(const std::vector<std::string>& ends, const std::string& pci) {
  return static_cast<int>(std::count(ends.begin(), ends.end(), pci));
}

}  // namespace

int nvlinks_between(const LinkedGpu& a, const LinkedGpu& b, const std::vector<LinkedGpu>& all) {
  const int direct = std::max(count(a.nvlink_ends, b.pci), count(b.nvlink_ends, a.pci));
  if (direct > 0) return direct;
  std::vector<std::string> switches = a.nvlink_ends;
  std::sort(switches.begin(), switches.end());
  switches.erase(std::unique(switches.begin(), switches.end()), switches.end());
  int links = 0;
  for (const std::string& end : switches) {
    const bool is_gpu =
        std::any_of(all.begin(), all.end(), [&](const LinkedGpu& gpu) { return gpu.pci == end; });
    if (!is_gpu) links += std::min(count(a.nvlink_ends, end), count(b.nvlink_ends, end));
  }
  return links;
}

AncestorLevels ask_ancestors(NvmlLibrary& library, const std::vector<LinkedGpu>& gpus) {
  const auto& function = library.functions().nvmlDeviceGetTopologyCommonAncestor;
  NvmlCaller call;
  AncestorLevels levels;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (std::size_t j = i + 1; j < gpus.size(); ++j) {
      nvmlGpuTopologyLevel_t level{};
      const bool known = call(function, gpus[i].handle, gpus[j].handle, &level) == NVML_SUCCESS;
      levels[{gpus[i].uuid, gpus[j].uuid}] = known ? kind_of(level) : LinkKind::unknown;
    }
  }
  return levels;
}

std::vector<GpuLink> gpu_links(const std::vector<LinkedGpu>& gpus, const AncestorLevels& levels) {
  std::vector<GpuLink> links;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (std::size_t j = i + 1; j < gpus.size(); ++j) {
      GpuLink link{gpus[i].uuid, gpus[j].uuid, LinkKind::unknown, 0};
      link.nvlinks = nvlinks_between(gpus[i], gpus[j], gpus);
      const auto level = levels.find({gpus[i].uuid, gpus[j].uuid});
      if (link.nvlinks > 0)
        link.kind = LinkKind::nvlink;
      else if (level != levels.end())
        link.kind = level->second;
      links.push_back(link);
    }
  }
  return links;
}

}  // namespace takt::device
