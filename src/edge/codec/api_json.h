#pragma once
// The JSON of the HTTP API and of `--json` (docs/openapi.json). Writers append to one string and
// never fail: text that is not UTF-8 gets U+FFFD, a number that is missing is null with its reason
// under `missing.<field>`, times are ISO 8601 in UTC. Values of environment variables are written
// only into a submission's body, never into anything that is shown.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/control/view.h"
#include "core/model/job_spec.h"
#include "core/model/measurement.h"
#include "core/model/policy.h"

namespace takt::codec {

// What every document begins with.
struct DocumentHead {
  std::string takt_version;
  std::vector<std::string> warnings;
};

// `takt ps --json`: {"takt", "warnings", "jobs": [...]}.
std::string jobs_json(const DocumentHead& head, const std::vector<control::JobView>& jobs);
// `takt why ID --json`: the job's fields beside "takt", and "decision": [...].
std::string job_json(const DocumentHead& head, const control::JobView& job);
// `takt gpus --json`: {"emulated", "nodes": [...]}.
std::string gpus_json(const DocumentHead& head, const std::vector<control::NodeView>& nodes);
// `takt workloads --json`.
std::string workloads_json(const DocumentHead& head, const std::vector<WorkloadSummary>& workloads);
// GET /v1/version.
std::string version_json(const DocumentHead& head);

// GET /v1/status.
struct ServerStatus {
  std::int64_t pid = 0;
  Instant started;
  std::string policy_revision;
  std::string state_dir;
  std::string caller;  // the user who asks, as the kernel names him
  bool caller_admin = false;
  control::Counts counts;
  int nodes = 0;
  int nodes_reachable = 0;
  int gpus = 0;
  bool emulated = false;
  std::string problem;  // a sentence when the server cannot work as it should; else empty
};
std::string status_json(const DocumentHead& head, const ServerStatus& status);

// Body of every answer with a status from 400: {"error": sentence}.
std::string error_json(std::string_view sentence);

// ---- submitting -----------------------------------------------------------------------------

struct SubmitRequest {
  JobSpec spec;
  Tier default_tier = Tier::batch;  // experimental for `takt run`, batch for `takt submit`
  // Chosen by the client, 1 to 64 of [A-Za-z0-9_-], or "": asking again with the same one makes no
  // second submission.
  std::string request_id{};
};
// Body of POST /v1/jobs: {"spec": {...}, "default_tier": "batch"}.
std::string submit_request_json(const SubmitRequest& request);
// Strict: unknown or repeated fields, wrong types and broken rules (core/model/job_spec_rules.h)
// are refused, all at once. A body longer than limits.spec_bytes_max is refused.
Result<SubmitRequest> submit_request_from_json(std::string_view body, const Limits& limits);

// The spec alone, complete: with environment values, for a submission's body only.
std::string job_spec_json(const JobSpec& spec);
Result<JobSpec> job_spec_from_json(std::string_view text, const Limits& limits);
// For showing: environment as {"name", "secret"} without values.
std::string job_spec_shown_json(const JobSpec& spec);

// What was asked of several jobs, one after the other.
struct Refusal {
  std::string job;  // as it was asked
  std::string sentence;
};
// {"cancelled": [17], "refused": [{"job": "x", "error": sentence}]}; `done` is the first field's
// name.
std::string acted_json(const DocumentHead& head, std::string_view done,
                       const std::vector<JobId>& ids, const std::vector<Refusal>& refused);

struct SubmitReply {
  bool dry_run = false;
  std::vector<JobId> ids;             // empty for a dry run
  int count = 1;                      // jobs this submission is: array tasks or replicas
  JobSpec spec;                       // as resolved
  bool would_start = false;           // dry run: a device is free for it now
  std::vector<Blocker> waiting_for;   // dry run: of the first job
  std::vector<std::string> decision;  // dry run
};
std::string submit_reply_json(const DocumentHead& head, const SubmitReply& reply);

// POST /v1/jobs/{id}/cancel, hold, release: {"cancelled": [17]}, "held", "released".
std::string changed_reply_json(const DocumentHead& head, std::string_view done,
                               const std::vector<JobId>& ids);

// ---- the client's side ----------------------------------------------------------------------
// These read what this file writes; unknown fields are skipped, so that a newer server can add
// some.

struct SubmitReceipt {
  std::vector<JobId> ids;
  bool dry_run = false;
  int count = 1;
  bool would_start = false;
  std::vector<Blocker> waiting_for;
  std::vector<std::string> decision;
  std::vector<std::string> warnings;
};
Result<SubmitReceipt> read_submit_reply(std::string_view document);
struct ChangedReply {
  std::vector<JobId> ids;
  std::vector<std::string> warnings;
};
Result<ChangedReply> read_changed_reply(std::string_view document, const char* done);

// What `takt run` and `takt logs -f` need of a job.
struct JobBrief {
  JobId id;
  std::string name;
  control::JobState state = control::JobState::waiting;
  std::optional<int> exit_code;
  std::optional<int> signal;
  std::string reason;
  std::vector<std::string> devices;  // labels
  std::vector<Blocker> waiting_for;
  std::vector<std::string> warnings;
};
Result<JobBrief> read_job(std::string_view document);
// One element of "jobs".
Result<std::vector<JobBrief>> read_jobs(std::string_view document);
Result<std::string> read_error(std::string_view document);
Result<std::string> read_version(std::string_view document);  // the server's "takt"
Result<ServerStatus> read_status(std::string_view document);

// "2026-01-02T03:04:05.678Z": milliseconds, or microseconds when there are some.
std::string iso8601(Instant at);
Result<Instant> instant_from_iso8601(std::string_view text);

}  // namespace takt::codec
