#include "edge/codec/telemetry_json.h"

#include "edge/codec/exact_nouns.h"

namespace takt::codec {
namespace exact {

constexpr Word<BusySource> busy_words[] = {{BusySource::cycle_counters, "cycle-counters"},
                                           {BusySource::dcgm_sm_active, "dcgm-sm-active"},
                                           {BusySource::gpm, "gpm"},
                                           {BusySource::graphics_active, "graphics-active"},
                                           {BusySource::process, "process"},
                                           {BusySource::gpu_util, "gpu-util"},
                                           {BusySource::power, "power"},
                                           {BusySource::none, "none"}};
constexpr auto& words(Tag<BusySource>) { return busy_words; }

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

}  // namespace exact

namespace {
constexpr std::size_t kBytesMax = std::size_t{4} << 20;
constexpr std::uint64_t kVersion = 1;
}  // namespace

std::string encode_measurement(const AttemptMeasurement& measurement) {
  JsonWriter out(2048);
  out.begin_object();
  out.field("version", kVersion);
  out.key("body");
  exact::put(out, measurement);
  out.end_object();
  return out.take();
}

Result<AttemptMeasurement> decode_measurement(std::string_view json) {
  const auto bad = [](const std::string& sentence) {
    return fail(ErrorKind::invalid, "measurement record: " + sentence);
  };
  const Result<JsonValue> document = parse_json(json, kBytesMax);
  if (!document) return bad(document.error().message);
  const JsonValue* version = document->find("version");
  const JsonValue* body = document->find("body");
  if (version == nullptr || version->kind != JsonValue::Kind::natural || body == nullptr ||
      document->fields.size() != 2)
    return bad("expected an object with version and body");
  if (version->natural != kVersion)
    return bad("version " + std::to_string(version->natural) +
               " is not known to this version of takt (it reads " + std::to_string(kVersion) + ")");
  exact::Fault fault;
  AttemptMeasurement value;
  exact::get(*body, exact::Place{}, fault, value);
  if (fault.any()) return bad(fault.sentence);
  return value;
}

}  // namespace takt::codec
