// Nodes and GPUs as a document: `takt gpus --json`.
#include "edge/codec/api_json.h"
#include "edge/codec/api_parts.h"

namespace takt::codec {
namespace {

void put_mig(JsonWriter& out, const MigState& mig) {
  out.begin_object();
  MeasuredFields state(out);
  state.field("enabled", mig.enabled);
  state.field("pending", mig.pending);
  out.key("instances");
  out.begin_array();
  for (const MigInstance& instance : mig.instances) {
    out.begin_object();
    MeasuredFields fields(out);
    out.field("uuid", instance.uuid.value);
    out.field("profile", instance.profile);
    if (instance.start >= 0)
      out.field("start", instance.start);
    else
      fields.null("start", "the driver does not tell");
    out.field("size", instance.size);
    out.field("compute_slices", instance.compute_slices);
    out.field("gpu_instance", instance.gpu_instance);
    out.field("compute_instance", instance.compute_instance);
    fields.field("memory_total_bytes", instance.memory_total);
    fields.field("memory_used_bytes", instance.memory_used);
    fields.finish();
    out.end_object();
  }
  out.end_array();
  state.finish();
  out.end_object();
}

void put_process(JsonWriter& out, const GpuProcess& process) {
  out.begin_object();
  MeasuredFields fields(out);
  out.field("pid", process.pid);
  fields.field("user", process.user);
  fields.field("name", process.name);
  fields.field("memory_bytes", process.memory);
  out.field("foreign", process.foreign());
  out.field("kind", to_string(process.kind));
  fields.field("started", process.started);
  fields.field("sm_percent", process.sm_percent);
  out.key("mig_instance");
  if (process.mig_instance)
    out.text(process.mig_instance->value);
  else
    out.null();
  out.key("job");
  if (process.attempt)
    out.natural(process.attempt->job.value);
  else
    out.null();
  fields.finish();
  out.end_object();
}

void put_processes(JsonWriter& out, const std::vector<GpuProcess>& processes) {
  out.begin_array();
  for (const GpuProcess& process : processes) put_process(out, process);
  out.end_array();
}

void put_gpu(JsonWriter& out, const Gpu& gpu) {
  out.begin_object();
  MeasuredFields fields(out);
  out.field("uuid", gpu.uuid.value);
  out.field("index", gpu.index);
  fields.field("minor", gpu.minor);
  out.field("model", gpu.model);
  out.field("pci_bus_id", gpu.pci_bus_id);
  fields.field("numa_node", gpu.numa_node);
  out.field("health", to_string(gpu.health));
  out.field("health_reason", gpu.health_reason);
  fields.field("memory_total_bytes", gpu.memory_total);
  fields.field("memory_used_bytes", gpu.memory_used);
  fields.field("memory_reserved_bytes", gpu.memory_reserved);
  fields.field("utilization_percent", gpu.utilization_percent);
  fields.field("memory_utilization_percent", gpu.memory_utilization_percent);
  fields.field("sm_active_ratio", gpu.sm_active_ratio);
  fields.field("tensor_active_ratio", gpu.tensor_active_ratio);
  fields.field("dram_active_ratio", gpu.dram_active_ratio);
  fields.field("pcie_rx_bytes_per_second", gpu.pcie_rx_bytes_per_second);
  fields.field("pcie_tx_bytes_per_second", gpu.pcie_tx_bytes_per_second);
  fields.field("temperature_celsius", gpu.temperature_celsius);
  fields.field("power_watts", gpu.power_watts);
  fields.field("power_limit_watts", gpu.power_limit_watts);
  fields.field("energy_millijoules", gpu.energy_millijoules);
  fields.field("sm_clock_mhz", gpu.sm_clock_mhz);
  fields.field("memory_clock_mhz", gpu.memory_clock_mhz);
  fields.field("throttle_reasons", gpu.throttle_reasons);
  fields.field("performance_state", gpu.performance_state);
  fields.field("fan_percent", gpu.fan_percent);
  fields.field("ecc_uncorrected", gpu.ecc_uncorrected);
  out.key("mig");
  put_mig(out, gpu.mig);
  fields.field("processes", gpu.processes,
               [&](const std::vector<GpuProcess>& p) { put_processes(out, p); });
  out.key("xids");
  out.begin_array();
  for (const XidEvent& xid : gpu.xids) {
    out.begin_object();
    out.field("code", xid.code);
    out.key("at");
    put_time(out, xid.at);
    out.end_object();
  }
  out.end_array();
  fields.finish();
  out.end_object();
}

void put_node(JsonWriter& out, const control::NodeView& view) {
  const Node& node = view.node;
  out.begin_object();
  out.field("name", node.id.value);
  out.field("reachable", view.reachable);
  out.key("seen");
  put_time(out, view.seen);
  out.field("emulated", node.emulated);
  out.field("boot_id", node.boot_id);
  out.field("cpus", node.cpus);
  out.field("memory_bytes", node.memory.value);
  out.field("driver_version", node.driver_version);
  out.field("driver_problem", node.driver_problem);
  out.key("gpus");
  out.begin_array();
  for (const Gpu& gpu : node.gpus) put_gpu(out, gpu);
  out.end_array();
  out.key("links");
  out.begin_array();
  for (const GpuLink& link : node.links) {
    out.begin_object();
    out.field("a", link.a.value);
    out.field("b", link.b.value);
    out.field("kind", to_string(link.kind));
    out.field("nvlinks", link.nvlinks);
    out.end_object();
  }
  out.end_array();
  texts_field(out, "notes", node.notes);
  out.end_object();
}

}  // namespace

std::string gpus_json(const DocumentHead& head, const std::vector<control::NodeView>& nodes) {
  bool emulated = false;
  std::int64_t gpus = 0;
  std::int64_t read = 0;
  for (const control::NodeView& view : nodes) {
    emulated = emulated || view.node.emulated;
    for (const Gpu& gpu : view.node.gpus) {
      ++gpus;
      if (view.reachable && gpu.memory_used) ++read;
    }
  }
  JsonWriter out(4096);
  begin_document(out, head);
  out.field("emulated", emulated);
  // The share of the GPUs whose memory could be read now.
  out.key("coverage");
  if (gpus > 0)
    out.number(static_cast<double>(read) / static_cast<double>(gpus));
  else
    out.null();
  out.field("source", emulated ? "NVML, emulated" : "NVML");
  out.key("nodes");
  out.begin_array();
  for (const control::NodeView& view : nodes) put_node(out, view);
  out.end_array();
  if (gpus == 0) {
    out.key("missing");
    out.begin_object();
    out.field("coverage", "no GPU was reported");
    out.end_object();
  }
  out.end_object();
  return out.take();
}

}  // namespace takt::codec
