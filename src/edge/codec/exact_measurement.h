#pragma once
// What an attempt measured, described for exact_json.h. Internal.
#include "core/model/measurement.h"
#include "edge/codec/exact_nouns.h"

namespace takt::codec::exact {

inline constexpr Word<BusySource> busy_words[] = {{BusySource::cycle_counters, "cycle-counters"},
                                                  {BusySource::dcgm_sm_active, "dcgm-sm-active"},
                                                  {BusySource::gpm, "gpm"},
                                                  {BusySource::graphics_active, "graphics-active"},
                                                  {BusySource::process, "process"},
                                                  {BusySource::gpu_util, "gpu-util"},
                                                  {BusySource::power, "power"},
                                                  {BusySource::none, "none"}};
inline constexpr auto& words(Tag<BusySource>) { return busy_words; }

template <class V, class T>
void fields(V& v, T& x, Tag<Quantiles>) {
  v("p50", x.p50);
  v("p75", x.p75);
  v("p95", x.p95);
  v("p99", x.p99);
  v("mean", x.mean);
  v("max", x.max);
  v("samples", x.samples);
}

template <class V, class T>
void fields(V& v, T& x, Tag<SketchData>) {
  v("zeros", x.zeros);
  v("bins", x.bins);
  v("sum", x.sum);
  v("max", x.max);
}

template <class V, class T>
void fields(V& v, T& x, Tag<AttemptMeasurement>) {
  v("attempt", x.attempt);
  v("workload", x.workload);
  v("user", x.user);
  v("declared_tier", x.declared_tier);
  v("ended", x.ended);
  v("waited", x.waited);
  v("ran", x.ran);
  v("devices", x.devices);
  v("device_kind", x.device_kind);
  v("granted_memory", x.granted_memory);
  v("requested_memory", x.requested_memory);
  v("memory_peak", x.memory_peak);
  v("memory_mean", x.memory_mean);
  v("memory_coverage", x.memory_coverage);
  v("memory_samples", x.memory_samples);
  v("memory_of_device", x.memory_of_device);
  v("quantiles", x.quantiles);
  v("sketches", x.sketches);
  v("busy_source", x.busy_source);
  v("attributable", x.attributable);
  v("coverage", x.coverage);
  v("samples", x.samples);
  v("missing_samples", x.missing_samples);
  v("idle_held_samples", x.idle_held_samples);
  v("bursts", x.bursts);
  v("devices_unused", x.devices_unused);
  v("first_sample", x.first_sample);
  v("last_sample", x.last_sample);
  v("gpu_seconds", x.gpu_seconds);
}

}  // namespace takt::codec::exact
