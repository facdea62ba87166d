#pragma once
// Views of a small shop: jobs, a node, a workload, each with something to show.
#include <string>
#include <vector>

#include "app/report/report.h"
#include "core/control/view.h"
#include "core/model/measurement.h"

namespace takt::report::testing {

// 2023-11-14 22:13:20 UTC.
inline const Instant now{1'700'000'000'000'000};
inline Instant ago(std::int64_t s) { return now - seconds(s); }

inline control::JobView job(std::uint64_t id, const std::string& name, control::JobState state) {
  control::JobView j;
  j.id = JobId(id);
  j.name = name;
  j.user = "alice";
  j.tier = Tier::batch;
  j.state = state;
  j.command = "python3 train.py";
  j.submitted = ago(133);
  j.request = "1 GPU";
  return j;
}

inline control::JobView waiting(std::uint64_t id, const std::string& name) {
  control::JobView j = job(id, name, control::JobState::waiting);
  j.waiting_for = {{BlockerKind::gpus_busy, "2 GPUs", "1 free of 4; gpu1 is held by job 17 (bob)",
                    "wait for job 17, or ask for one GPU"}};
  return j;
}

inline control::JobView task(std::uint64_t id, std::uint64_t group) {
  control::JobView j = waiting(id, "sweep");
  j.group = JobId(group);
  j.group_size = 40;
  return j;
}

inline control::JobView running(std::uint64_t id, const std::string& name,
                                const std::string& gpu = "GPU-a") {
  control::JobView j = job(id, name, control::JobState::running);
  j.started = ago(60);
  j.attempts = 1;
  DeviceGrant d{DeviceKind::whole_gpu, DeviceUuid(gpu), DeviceUuid(gpu), gibibytes(80), 100};
  j.grant = Grant{};
  j.grant->devices = {d};
  j.devices = {{d, "gpu0"}};
  return j;
}

inline control::JobView failed(std::uint64_t id, const std::string& name) {
  control::JobView j = running(id, name);
  j.state = control::JobState::failed;
  j.ended = ago(10);
  j.exit = ExitStatus{};
  j.exit->code = 1;
  j.reason = "OOM: asked 12.0 GiB, peak 14.1 GiB: try --memory 16GiB";
  return j;
}

inline Gpu gpu(unsigned index) {
  Gpu g;
  g.uuid = DeviceUuid(index == 0 ? "GPU-a" : "GPU-" + std::to_string(index));
  g.index = index;
  g.model = "NVIDIA H100 80GB HBM3";
  g.memory_total = gibibytes(80);
  g.memory_used = gibibytes(12);
  g.utilization_percent = 56;
  g.temperature_celsius = 61;
  g.power_watts = 312.4;
  g.power_limit_watts = 700.0;
  g.throttle_reasons = std::vector<std::string>{};
  g.processes = std::vector<GpuProcess>{};
  return g;
}

inline GpuProcess process(std::int64_t pid, std::optional<AttemptId> attempt) {
  GpuProcess p;
  p.pid = pid;
  p.name = "python3";
  p.user = "bob";
  p.started = ago(7500);
  p.memory = gibibytes(12);
  p.attempt = attempt;
  return p;
}

inline control::NodeView node(std::vector<Gpu> gpus) {
  control::NodeView v;
  v.node.id = NodeId("n1");
  v.node.cpus = 64;
  v.node.memory = gibibytes(512);
  v.node.driver_version = "550.54.15";
  v.node.gpus = std::move(gpus);
  v.seen = ago(1);
  return v;
}

inline WorkloadSummary workload() {
  WorkloadSummary w;
  w.workload = "llama-sft";
  w.declared_tier = Tier::training;
  w.category = Category::training;
  w.confidence = "provisional";
  w.evidence = {"steadily busy: p75 86 %, idle in 0 % of 60 samples"};
  w.attempts = 3;
  w.running = 1;
  w.devices = 1;
  w.granted_memory = gibibytes(80);
  w.memory_peak = mebibytes(11469);
  w.memory_coverage = 0.96;
  w.memory_samples = 60;
  w.quantiles["busy"] = {.p50 = 0.85, .p75 = 0.86, .p95 = 0.99, .samples = 60};
  w.busy_source = BusySource::gpm;
  w.coverage = 0.96;
  w.samples = 60;
  w.waited_mean = seconds(5);
  w.waited_max = seconds(133);
  w.advice = {{"memory", "80.0 GiB (whole GPU)", "--memory 15GiB",
               "peak 11.2 GiB in 3 of 3 attempts, 60 samples, coverage 96 %, margin 25 %", "low",
               "ask for a whole GPU again: -g 1"}};
  return w;
}

}  // namespace takt::report::testing
