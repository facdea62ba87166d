// Workloads as a document: `takt workloads --json`. And the small documents.
#include <set>

#include "edge/codec/api_json.h"
#include "edge/codec/api_parts.h"

namespace takt::codec {
namespace {

void put_quantiles(JsonWriter& out, const Quantiles& q) {
  out.begin_object();
  out.field("p50", q.p50);
  out.field("p75", q.p75);
  out.field("p95", q.p95);
  out.field("p99", q.p99);
  out.field("mean", q.mean);
  out.field("max", q.max);
  out.field("samples", q.samples);
  out.end_object();
}

void put_advice(JsonWriter& out, const std::vector<SizeAdvice>& advice) {
  out.key("advice");
  out.begin_array();
  for (const SizeAdvice& a : advice) {
    out.begin_object();
    out.field("what", a.what);
    out.field("from", a.from);
    out.field("to", a.to);
    out.field("evidence", a.evidence);
    out.field("confidence", a.confidence);
    out.field("undo", a.undo);
    out.end_object();
  }
  out.end_array();
}

void put_counts(JsonWriter& out, std::string_view name, const std::map<std::string, int>& counts) {
  out.key(name);
  out.begin_object();
  for (const auto& [key, count] : counts) {
    out.key_text(key);
    out.integer(count);
  }
  out.end_object();
}

void put_memory(JsonWriter& out, const WorkloadSummary& w) {
  out.key("memory");
  out.begin_object();
  MeasuredFields fields(out);
  fields.field("peak_bytes", w.memory_peak);
  fields.field("mean_bytes", w.memory_mean);
  fields.field("needed_bytes", w.memory_needed);
  out.key("granted_bytes");
  if (w.granted_memory)
    out.integer(w.granted_memory->value);
  else
    out.null();
  out.field("coverage", w.memory_coverage);
  out.field("samples", w.memory_samples);
  out.field("of_device", w.memory_of_device);
  fields.finish();
  out.end_object();
}

void put_workload(JsonWriter& out, const WorkloadSummary& w) {
  out.begin_object();
  out.field("name", w.workload);
  put_counts(out, "users", w.users);
  out.field("category", to_string(w.category));
  out.field("declared_tier", to_string(w.declared_tier));
  out.field("confidence", w.confidence);
  texts_field(out, "evidence", w.evidence);
  out.field("attempts", w.attempts);
  out.field("running", w.running);
  put_memory(out, w);
  out.key("quantiles");
  out.begin_object();
  for (const auto& [metric, quantiles] : w.quantiles) {
    out.key_text(metric);
    put_quantiles(out, quantiles);
  }
  out.end_object();
  out.field("samples", w.samples);
  out.field("coverage", w.coverage);
  out.field("source", to_string(w.busy_source));
  out.field("attributable", w.attributable);
  out.field("device_kind", to_string(w.device_kind));
  out.field("devices", w.devices);
  out.key("missing_samples");
  out.begin_object();
  for (const auto& [reason, count] : w.missing_samples) {
    out.key_text(reason);
    out.integer(count);
  }
  out.end_object();
  out.field("waited_mean_seconds", in_seconds(w.waited_mean));
  out.field("waited_max_seconds", in_seconds(w.waited_max));
  out.field("ran_mean_seconds", in_seconds(w.ran_mean));
  out.field("gpu_seconds", w.gpu_seconds);
  put_advice(out, w.advice);
  texts_field(out, "notes", w.notes);
  out.end_object();
}

void put_status_counts(JsonWriter& out, const control::Counts& counts) {
  out.key("jobs");
  out.begin_object();
  out.field("waiting", counts.waiting);
  out.field("starting", counts.starting);
  out.field("running", counts.running);
  out.field("stopping", counts.stopping);
  out.field("done", counts.done);
  out.field("failed", counts.failed);
  out.field("cancelled", counts.cancelled);
  out.end_object();
}

}  // namespace

std::string workloads_json(const DocumentHead& head,
                           const std::vector<WorkloadSummary>& workloads) {
  double gpu_seconds = 0;
  double covered = 0;
  std::set<std::string> sources;
  for (const WorkloadSummary& w : workloads) {
    gpu_seconds += w.gpu_seconds;
    covered += w.gpu_seconds * w.coverage;
    if (w.busy_source != BusySource::none) sources.insert(to_string(w.busy_source));
  }
  std::string source;
  for (const std::string& s : sources) source += (source.empty() ? "" : ", ") + s;

  JsonWriter out(4096);
  begin_document(out, head);
  MeasuredFields fields(out);
  // Of all workloads, weighted by the GPU time they held.
  if (gpu_seconds > 0)
    out.field("coverage", covered / gpu_seconds);
  else
    fields.null("coverage", "no GPU time was measured so far");
  out.field("source", source.empty() ? std::string("none") : source);
  out.key("workloads");
  out.begin_array();
  for (const WorkloadSummary& w : workloads) put_workload(out, w);
  out.end_array();
  fields.finish();
  out.end_object();
  return out.take();
}

std::string version_json(const DocumentHead& head) {
  JsonWriter out;
  begin_document(out, head);
  out.field("api", "v1");
  out.end_object();
  return out.take();
}

std::string status_json(const DocumentHead& head, const ServerStatus& status) {
  JsonWriter out;
  begin_document(out, head);
  out.field("pid", status.pid);
  out.key("started");
  put_time(out, status.started);
  out.field("policy_revision", status.policy_revision);
  out.field("state_dir", status.state_dir);
  out.field("caller", status.caller);
  out.field("caller_admin", status.caller_admin);
  put_status_counts(out, status.counts);
  out.field("nodes", status.nodes);
  out.field("nodes_reachable", status.nodes_reachable);
  out.field("gpus", status.gpus);
  out.field("emulated", status.emulated);
  out.field("problem", status.problem);
  out.end_object();
  return out.take();
}

std::string error_json(std::string_view sentence) {
  JsonWriter out(sentence.size() + 16);
  out.begin_object();
  out.field("error", sentence);
  out.end_object();
  return out.take();
}

std::string changed_reply_json(const DocumentHead& head, std::string_view done,
                               const std::vector<JobId>& ids) {
  JsonWriter out;
  begin_document(out, head);
  out.key(done);
  out.begin_array();
  for (const JobId id : ids) out.natural(id.value);
  out.end_array();
  out.end_object();
  return out.take();
}

std::string acted_json(const DocumentHead& head, std::string_view done,
                       const std::vector<JobId>& ids, const std::vector<Refusal>& refused) {
  JsonWriter out;
  begin_document(out, head);
  out.key(done);
  out.begin_array();
  for (const JobId id : ids) out.natural(id.value);
  out.end_array();
  out.key("refused");
  out.begin_array();
  for (const Refusal& refusal : refused) {
    out.begin_object();
    out.field("job", refusal.job);
    out.field("error", refusal.sentence);
    out.end_object();
  }
  out.end_array();
  out.end_object();
  return out.take();
}

}  // namespace takt::codec
