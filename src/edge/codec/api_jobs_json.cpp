// Jobs as documents: `takt ps --json`, `takt why ID --json`.
#include "edge/codec/api_json.h"
#include "edge/codec/api_parts.h"

namespace takt::codec {
namespace {

using control::JobView;

void put_grant(JsonWriter& out, const Grant& grant) {
  out.begin_object();
  out.field("node", grant.node.value);
  out.key("devices");
  out.begin_array();
  for (const DeviceGrant& device : grant.devices) {
    out.begin_object();
    out.field("kind", to_string(device.kind));
    out.field("uuid", device.uuid.value);
    out.field("gpu", device.gpu.value);
    out.field("memory_bytes", device.memory.value);
    out.field("compute_percent", device.compute_percent);
    out.end_object();
  }
  out.end_array();
  out.field("cpus", grant.cpus);
  out.field("memory_bytes", grant.memory.value);
  out.field("isolation", to_string(grant.isolation));
  out.field("sharing_domain", grant.domain);
  out.end_object();
}

// exit_code, signal and what else is known of the end.
void put_exit(JsonWriter& out, const JobView& job, MeasuredFields& fields) {
  const bool known = job.exit.has_value();
  if (known && job.exit->cause == ExitCause::exited)
    out.field("exit_code", job.exit->code);
  else if (known && job.exit->cause != ExitCause::signalled)
    fields.null("exit_code", describe(*job.exit));
  else
    out.null_field("exit_code");
  if (known && job.exit->cause == ExitCause::signalled)
    out.field("signal", job.exit->signal);
  else
    out.null_field("signal");
  out.key("exit");
  if (!known) return out.null();
  out.begin_object();
  out.field("description", describe(*job.exit));
  out.field("out_of_memory", job.exit->oom);
  out.field("cpu_seconds", in_seconds(job.exit->cpu_time));
  out.key("memory_peak_bytes");
  if (job.exit->memory_peak)
    out.integer(job.exit->memory_peak->value);
  else
    out.null();
  out.end_object();
}

void put_group(JsonWriter& out, const JobView& job) {
  out.key("group");
  if (!job.group) return out.null();
  out.begin_object();
  out.field("id", job.group->value);
  out.field("index", job.group_index);
  out.field("size", job.group_size);
  out.end_object();
}

void put_job_fields(JsonWriter& out, const JobView& job) {
  MeasuredFields fields(out);
  out.field("id", job.id.value);
  out.field("name", job.name);
  out.field("user", job.user);
  out.field("uid", job.uid);
  out.field("tier", to_string(job.tier));
  out.field("state", control::to_string(job.state));
  out.field("command", job.command);
  put_group(out, job);
  out.key("submitted");
  put_time(out, job.submitted);
  time_field(out, "started", job.started);
  time_field(out, "ended", job.ended);
  put_exit(out, job, fields);
  out.field("reason", job.reason);
  out.field("attempts", job.attempts);
  out.field("request", job.request);
  out.key("grant");
  if (job.grant)
    put_grant(out, *job.grant);
  else
    out.null();
  out.key("devices");
  out.begin_array();
  for (const control::DeviceLabel& device : job.devices) out.text(device.label);
  out.end_array();
  blockers_field(out, "waiting_for", job.waiting_for);
  if (!job.expected_start && !job.expected_start_unknown.empty())
    fields.null("expected_start", job.expected_start_unknown);
  else
    time_field(out, "expected_start", job.expected_start);
  time_field(out, "expected_end", job.expected_end);
  out.field("stdout_path", job.stdout_path);
  out.field("stderr_path", job.stderr_path);
  texts_field(out, "environment_names", job.environment_names);
  fields.finish();
}

}  // namespace

std::string jobs_json(const DocumentHead& head, const std::vector<JobView>& jobs) {
  JsonWriter out(1024 + jobs.size() * 1280);
  begin_document(out, head);
  out.key("jobs");
  out.begin_array();
  for (const JobView& job : jobs) {
    out.begin_object();
    put_job_fields(out, job);
    out.end_object();
  }
  out.end_array();
  out.end_object();
  return out.take();
}

std::string job_json(const DocumentHead& head, const JobView& job) {
  JsonWriter out(4096);
  begin_document(out, head);
  put_job_fields(out, job);
  texts_field(out, "decision", job.decision);
  out.end_object();
  return out.take();
}

}  // namespace takt::codec
