#pragma once
// The answers to NVML's calls about one GPU at one moment. Layout of each reply: see the table in
// gpu_calls.cpp; the library turns it into NVML's structs.
#include "daemon/gpu.h"

namespace takt::emulator {

struct GpuCalls {
  Gpu& gpu;
  const Request& request;
  std::uint64_t now_us;

  Reply answer();
  void settle_energy();  // to be called before activities change

  std::uint64_t argument(std::size_t i) const {
    return i < request.numbers.size() ? request.numbers[i] : 0;
  }
  const FleetGpu& card() const { return gpu.gpu_; }
  const FleetMig* mig() const;
  Activity activity() const { return gpu.clients_.sum(request.mig); }
  bool in_use() const;

  Reply nothing();
  Reply uuid();
  Reply index();
  Reply name();
  Reply minor_number();
  Reply numa_node();
  Reply power_usage();
  Reply power_limit();
  Reply fan_speed();
  Reply compute_processes();
  Reply graphics_processes();
  Reply mig_max();
  Reply mig_uuids();
  Reply gpu_instance();
  Reply compute_instance();
  Reply gpm_support();
  Reply nvlink_state();
  Reply nvlink_remote();
  Reply pci_info();
  Reply pci_of(const FleetGpu& other) const;
  Reply memory_info();
  Reply utilization();
  Reading power() const;
  Reply clock();
  Reply event_reasons();
  Reply performance_state();
  Reply ecc_errors();
  Reply pcie_throughput();
  Reply energy();
  Reply temperature();
  Reply processes(bool graphics);
  Reply process_utilization();
  Reply mig_mode();
  Reply attributes();
  Reply instance_placement();
  Reply topology();
  Reply nvlink(bool remote);
  Reply gpm_sample();
  Reply xids();
};

}  // namespace takt::emulator
