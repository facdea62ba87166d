#include "core/model/device.h"

namespace takt {

std::string to_string(LinkKind kind) {
  switch (kind) {
    case LinkKind::nvlink: return "nvlink";
    case LinkKind::pix: return "pix";
    case LinkKind::pxb: return "pxb";
    case LinkKind::phb: return "phb";
    case LinkKind::node: return "node";
    case LinkKind::sys: return "sys";
    case LinkKind::unknown: break;
  }
  return "unknown";
}

std::string to_string(GpuHealth health) {
  switch (health) {
    case GpuHealth::ok: return "ok";
    case GpuHealth::unresponsive: return "unresponsive";
    case GpuHealth::lost: return "lost";
    case GpuHealth::failing: break;
  }
  return "failing";
}

std::string to_string(BusySource source) {
  switch (source) {
    case BusySource::cycle_counters: return "cycle counters";
    case BusySource::dcgm_sm_active: return "DCGM SM active";
    case BusySource::gpm: return "NVML GPM SM active";
    case BusySource::graphics_active: return "graphics engine active";
    case BusySource::process: return "NVML process utilisation";
    case BusySource::gpu_util: return "GPU_UTIL";
    case BusySource::power: return "power";
    case BusySource::none: break;
  }
  return "none";
}

std::string to_string(ProcessKind kind) {
  switch (kind) {
    case ProcessKind::compute: return "compute";
    case ProcessKind::graphics: return "graphics";
    case ProcessKind::both: break;
  }
  return "compute and graphics";
}

}  // namespace takt
