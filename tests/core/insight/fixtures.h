#pragma once
// Nodes, attempts and measurements for the tests of this room, each built in a line or two.
#include <string>
#include <vector>

#include "core/insight/attempt_meter.h"
#include "core/insight/sketch.h"
#include "core/model/device.h"
#include "core/model/measurement.h"

namespace takt::insight::testing {

inline const Instant t0{1'700'000'000'000'000};
inline Instant at(std::int64_t s) { return t0 + seconds(s); }
inline AttemptId attempt_id(std::uint64_t job, std::uint32_t number = 1) {
  return AttemptId{JobId(job), number};
}

inline Gpu gpu(const std::string& uuid) {
  Gpu g;
  g.uuid = DeviceUuid(uuid);
  g.model = "NVIDIA H100 80GB HBM3";
  g.memory_total = gibibytes(80);
  g.memory_used = mebibytes(4);
  g.utilization_percent = 0;
  g.power_watts = 70.0;
  g.power_limit_watts = 700.0;
  g.processes = std::vector<GpuProcess>{};
  return g;
}

inline GpuProcess process(std::optional<AttemptId> attempt, Measured<Bytes> memory,
                          Measured<int> sm = missing(MissingKind::not_supported)) {
  GpuProcess p;
  p.pid = 4242;
  p.memory = std::move(memory);
  p.sm_percent = std::move(sm);
  p.attempt = attempt;
  return p;
}

inline Node node(std::vector<Gpu> gpus) {
  Node n;
  n.id = NodeId("n1");
  n.gpus = std::move(gpus);
  return n;
}

inline Node node(Gpu one) { return node(std::vector<Gpu>{std::move(one)}); }

inline DeviceGrant whole(const std::string& uuid, Bytes memory = gibibytes(80)) {
  return {DeviceKind::whole_gpu, DeviceUuid(uuid), DeviceUuid(uuid), memory, 100};
}
inline DeviceGrant share(const std::string& uuid, Bytes memory) {
  return {DeviceKind::share, DeviceUuid(uuid), DeviceUuid(uuid), memory, 100};
}
inline DeviceGrant instance(const std::string& uuid, const std::string& gpu, Bytes memory) {
  return {DeviceKind::mig_instance, DeviceUuid(uuid), DeviceUuid(gpu), memory, 100};
}

// Started at t0, ten seconds after it was submitted.
inline AttemptSubject subject(std::vector<DeviceGrant> devices, AttemptId id = attempt_id(7)) {
  AttemptSubject s;
  s.attempt = id;
  s.workload = "llama-sft";
  s.user = "alice";
  s.tier = Tier::training;
  s.grant.node = NodeId("n1");
  s.grant.devices = std::move(devices);
  s.submitted = t0 - seconds(10);
  s.started = t0;
  return s;
}

// A finished attempt as a meter would have measured it: 100 s long, every busy value one sample.
inline AttemptMeasurement measured(std::uint64_t job, const std::vector<double>& busy,
                                   Bytes peak = gibibytes(10)) {
  AttemptMeasurement m;
  m.attempt = attempt_id(job);
  m.workload = "w";
  m.user = "alice";
  m.ended = true;
  m.ran = seconds(100);
  m.waited = seconds(5);
  m.devices = 1;
  m.granted_memory = gibibytes(80);
  m.memory_peak = peak;
  m.memory_mean = peak;
  m.memory_coverage = 1;
  m.memory_samples = static_cast<std::int64_t>(busy.size());
  m.gpu_seconds = 100;
  if (busy.empty()) return m;
  Sketch sketch;
  for (std::size_t i = 0; i < busy.size(); ++i) {
    sketch.add(busy[i]);
    if (busy[i] <= 0.05) ++m.idle_held_samples;
    if (i > 0 && busy[i] > 0.05 && busy[i - 1] <= 0.05) ++m.bursts;
  }
  m.sketches["busy"] = sketch.data();
  m.quantiles["busy"] = sketch.quantiles();
  m.busy_source = BusySource::gpm;
  m.coverage = 1;
  m.samples = sketch.count();
  return m;
}

inline void add_metric(AttemptMeasurement& m, const std::string& metric, double value, int n) {
  Sketch sketch;
  for (int i = 0; i < n; ++i) sketch.add(value);
  m.sketches[metric] = sketch.data();
  m.quantiles[metric] = sketch.quantiles();
}

inline bool contains(const std::vector<std::string>& sentences, const std::string& part) {
  for (const std::string& s : sentences)
    if (s.find(part) != std::string::npos) return true;
  return false;
}

inline std::int64_t missing_count(const AttemptMeasurement& m, const std::string& part) {
  std::int64_t sum = 0;
  for (const auto& [reason, count] : m.missing_samples)
    if (reason.find(part) != std::string::npos) sum += count;
  return sum;
}

}  // namespace takt::insight::testing
