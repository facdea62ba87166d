#pragma once
// Reports and effects of the agent's protocol, described for exact_json.h. Internal.
#include "core/control/engine_contract.h"
#include "edge/codec/exact_nouns.h"

namespace takt::codec::exact {

inline constexpr Word<ProcessKind> process_words[] = {{ProcessKind::compute, "compute"},
                                                      {ProcessKind::graphics, "graphics"},
                                                      {ProcessKind::both, "both"}};
inline constexpr auto& words(Tag<ProcessKind>) { return process_words; }

inline constexpr Word<GpuHealth> health_words[] = {{GpuHealth::ok, "ok"},
                                                   {GpuHealth::unresponsive, "unresponsive"},
                                                   {GpuHealth::lost, "lost"},
                                                   {GpuHealth::failing, "failing"}};
inline constexpr auto& words(Tag<GpuHealth>) { return health_words; }

inline constexpr Word<LinkKind> link_words[] = {
    {LinkKind::nvlink, "nvlink"},  {LinkKind::pix, "pix"},   {LinkKind::pxb, "pxb"},
    {LinkKind::phb, "phb"},        {LinkKind::node, "node"}, {LinkKind::sys, "sys"},
    {LinkKind::unknown, "unknown"}};
inline constexpr auto& words(Tag<LinkKind>) { return link_words; }

inline constexpr Word<control::AttemptPhase> phase_words[] = {
    {control::AttemptPhase::queued, "queued"},
    {control::AttemptPhase::starting, "starting"},
    {control::AttemptPhase::running, "running"},
    {control::AttemptPhase::exited, "exited"}};
inline constexpr auto& words(Tag<control::AttemptPhase>) { return phase_words; }

template <class V, class T>
void fields(V& v, T& x, Tag<GpuProcess>) {
  v("pid", x.pid);
  v("kind", x.kind);
  v("name", x.name);
  v("user", x.user);
  v("started", x.started);
  v("memory", x.memory);
  v("sm_percent", x.sm_percent);
  v("mig_instance", x.mig_instance);
  v("attempt", x.attempt);
}

template <class V, class T>
void fields(V& v, T& x, Tag<MigInstance>) {
  v("uuid", x.uuid);
  v("profile", x.profile);
  v("start", x.start);
  v("size", x.size);
  v("compute_slices", x.compute_slices);
  v("gpu_instance", x.gpu_instance);
  v("compute_instance", x.compute_instance);
  v("memory_total", x.memory_total);
  v("memory_used", x.memory_used);
}

template <class V, class T>
void fields(V& v, T& x, Tag<MigState>) {
  v("enabled", x.enabled);
  v("pending", x.pending);
  v("instances", x.instances);
}

template <class V, class T>
void fields(V& v, T& x, Tag<XidEvent>) {
  v("code", x.code);
  v("at", x.at);
}

template <class V, class T>
void fields(V& v, T& x, Tag<Gpu>) {
  v("uuid", x.uuid);
  v("index", x.index);
  v("minor", x.minor);
  v("model", x.model);
  v("pci_bus_id", x.pci_bus_id);
  v("numa_node", x.numa_node);
  v("health", x.health);
  v("health_reason", x.health_reason);
  v("memory_total", x.memory_total);
  v("memory_used", x.memory_used);
  v("memory_reserved", x.memory_reserved);
  v("utilization_percent", x.utilization_percent);
  v("memory_utilization_percent", x.memory_utilization_percent);
  v("sm_active_ratio", x.sm_active_ratio);
  v("tensor_active_ratio", x.tensor_active_ratio);
  v("dram_active_ratio", x.dram_active_ratio);
  v("pcie_rx_bytes_per_second", x.pcie_rx_bytes_per_second);
  v("pcie_tx_bytes_per_second", x.pcie_tx_bytes_per_second);
  v("temperature_celsius", x.temperature_celsius);
  v("power_watts", x.power_watts);
  v("power_limit_watts", x.power_limit_watts);
  v("energy_millijoules", x.energy_millijoules);
  v("sm_clock_mhz", x.sm_clock_mhz);
  v("memory_clock_mhz", x.memory_clock_mhz);
  v("throttle_reasons", x.throttle_reasons);
  v("performance_state", x.performance_state);
  v("fan_percent", x.fan_percent);
  v("ecc_uncorrected", x.ecc_uncorrected);
  v("mig", x.mig);
  v("processes", x.processes);
  v("xids", x.xids);
}

template <class V, class T>
void fields(V& v, T& x, Tag<GpuLink>) {
  v("a", x.a);
  v("b", x.b);
  v("kind", x.kind);
  v("nvlinks", x.nvlinks);
}

template <class V, class T>
void fields(V& v, T& x, Tag<Node>) {
  v("id", x.id);
  v("boot_id", x.boot_id);
  v("cpus", x.cpus);
  v("memory", x.memory);
  v("emulated", x.emulated);
  v("driver_version", x.driver_version);
  v("driver_problem", x.driver_problem);
  v("gpus", x.gpus);
  v("links", x.links);
  v("notes", x.notes);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::AttemptSeen>) {
  v("attempt", x.attempt);
  v("generation", x.generation);
  v("phase", x.phase);
  v("pid", x.pid);
  v("started", x.started);
  v("ended", x.ended);
  v("exit", x.exit);
  v("processes_gone", x.processes_gone);
  v("placed", x.placed);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::Basis>) {
  v("boot_id", x.boot_id);
  v("life", x.life);
  v("sequence", x.sequence);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::NodeReport>) {
  v("life", x.life);
  v("sequence", x.sequence);
  v("at", x.at);
  v("made", x.made);
  v("node", x.node);
  v("attempts", x.attempts);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::LaunchOrder>) {
  v("attempt", x.attempt);
  v("generation", x.generation);
  v("identity", x.identity);
  v("argv", x.argv);
  v("env", x.env);
  v("workdir", x.workdir);
  v("stdout_path", x.stdout_path);
  v("stderr_path", x.stderr_path);
  v("log_max", x.log_max);
  v("grant", x.grant);
  v("gpus", x.gpus);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::Start>) {
  v("order", x.order);
  v("basis", x.basis);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::Renew>) {
  v("basis", x.basis);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::Stop>) {
  v("attempt", x.attempt);
  v("generation", x.generation);
  v("grace", x.grace);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::Forget>) {
  v("attempt", x.attempt);
}

}  // namespace takt::codec::exact
