#include "core/replay/hardware.h"

#include <utility>

namespace takt::replay {
namespace {

Gpu gpu_of(const std::string& model, Bytes memory) {
  Gpu g;
  g.model = model;
  g.memory_total = memory;
  g.memory_used = Bytes{0};
  g.memory_reserved = Bytes{0};
  g.throttle_reasons = std::vector<std::string>{};
  g.temperature_celsius = 40;
  g.mig.enabled = false;
  g.processes = std::vector<GpuProcess>{};
  return g;
}

Gpu a100() { return gpu_of("NVIDIA A100-SXM4-40GB", gibibytes(40)); }
Gpu h100() { return gpu_of("NVIDIA H100 80GB HBM3", gibibytes(80)); }

MigInstance instance(const std::string& profile, Bytes memory, int start, int size, int compute) {
  MigInstance m;
  m.profile = profile;
  m.memory_total = memory;
  m.start = start;
  m.size = size;
  m.compute_slices = compute;
  return m;
}

Gpu partitioned() {
  Gpu g = a100();
  g.mig.enabled = true;
  g.mig.instances = {instance("3g.20gb", mebibytes(20'096), 0, 4, 3),
                     instance("1g.5gb", mebibytes(4'864), 6, 1, 1)};
  return g;
}

Node node_of(const std::string& name, std::vector<Gpu> gpus) {
  Node n;
  n.id = NodeId(name);
  n.cpus = 32;
  n.memory = gibibytes(256);
  n.driver_version = "550.54.15";
  n.gpus = std::move(gpus);
  for (unsigned i = 0; i < n.gpus.size(); ++i) {
    Gpu& g = n.gpus[i];
    g.index = i;
    g.minor = i;
    g.uuid = DeviceUuid("GPU-" + name + "-" + std::to_string(i));
    for (std::size_t k = 0; k < g.mig.instances.size(); ++k)
      g.mig.instances[k].uuid =
          DeviceUuid("MIG-" + name + "-" + std::to_string(i) + "-" + std::to_string(k));
  }
  return n;
}

}  // namespace

Node simulated_node(const std::string& name, int number) {
  switch (number % 3) {
    case 0: return node_of(name, {a100(), a100(), partitioned()});
    case 1: return node_of(name, {h100(), a100()});
    default: break;
  }
  return node_of(name, {h100()});
}

Node simulated_cluster(const std::string& name) {
  return node_of(name, {a100(), a100(), h100(), h100()});
}

}  // namespace takt::replay
