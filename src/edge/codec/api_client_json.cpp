// The client's side: reading what the server wrote. Unknown fields are skipped.
#include <array>
#include <cstdint>
#include <limits>
#include <utility>

#include "edge/codec/api_json.h"
#include "edge/codec/json_value.h"

namespace takt::codec {
namespace {

constexpr std::size_t kDocumentBytesMax = std::size_t{256} << 20;

// Takes fields out of an answer; the first one that is not as agreed makes the answer unreadable.
class Answer {
 public:
  explicit Answer(const JsonValue& object) : object_(object) {
    if (object.kind != JsonValue::Kind::object) spoil("it is not an object");
  }

  std::string problem;

  void text(const char* name, std::string& to) {
    if (const JsonValue* v = get(name, JsonValue::Kind::text)) to = v->text;
  }
  void boolean(const char* name, bool& to) {
    if (const JsonValue* v = get(name, JsonValue::Kind::boolean)) to = v->flag;
  }
  template <class T>
  void natural(const char* name, T& to) {
    const JsonValue* v = get(name, JsonValue::Kind::natural);
    if (v == nullptr) return;
    if (v->natural > static_cast<std::uint64_t>(std::numeric_limits<T>::max()))
      return spoil(std::string(name) + " is too large");
    to = static_cast<T>(v->natural);
  }
  // Absent and null are both empty.
  void optional_int(const char* name, std::optional<int>& to) {
    const JsonValue* v = object_.find(name);
    if (v == nullptr || v->kind == JsonValue::Kind::null) return;
    if (v->kind == JsonValue::Kind::natural && v->natural <= INT32_MAX)
      to = static_cast<int>(v->natural);
    else if (v->kind == JsonValue::Kind::integer && v->integer >= INT32_MIN)
      to = static_cast<int>(v->integer);
    else
      spoil(std::string(name) + " is not a number");
  }
  void texts(const char* name, std::vector<std::string>& to) {
    const JsonValue* v = get(name, JsonValue::Kind::list);
    if (v == nullptr) return;
    for (const JsonValue& item : v->items) {
      if (item.kind != JsonValue::Kind::text)
        return spoil(std::string(name) + " holds something that is no text");
      to.push_back(item.text);
    }
  }
  void ids(const char* name, std::vector<JobId>& to) {
    const JsonValue* v = get(name, JsonValue::Kind::list);
    if (v == nullptr) return;
    for (const JsonValue& item : v->items) {
      if (item.kind != JsonValue::Kind::natural)
        return spoil(std::string(name) + " holds something that is no job number");
      to.emplace_back(item.natural);
    }
  }
  void blockers(const char* name, std::vector<Blocker>& to) {
    const JsonValue* v = get(name, JsonValue::Kind::list);
    if (v == nullptr) return;
    for (const JsonValue& item : v->items) {
      Answer answer(item);
      Blocker blocker;
      std::string kind;
      answer.text("blocker", kind);
      answer.text("needed", blocker.needed);
      answer.text("available", blocker.available);
      answer.text("action", blocker.action);
      if (!answer.problem.empty()) return spoil(std::string(name) + ": " + answer.problem);
      for (const BlockerKind candidate : kBlockers)
        if (to_string(candidate) == kind) blocker.kind = candidate;
      to.push_back(std::move(blocker));
    }
  }
  const JsonValue* get(const char* name, JsonValue::Kind kind) {
    const JsonValue* v = object_.find(name);
    if (v != nullptr && v->kind == kind) return v;
    spoil(std::string(name) + (v == nullptr ? " is missing" : " has the wrong type"));
    return nullptr;
  }
  void spoil(const std::string& sentence) {
    if (problem.empty()) problem = sentence;
  }

 private:
  static constexpr std::array kBlockers = {BlockerKind::no_agent,
                                           BlockerKind::no_gpu,
                                           BlockerKind::no_such_type,
                                           BlockerKind::larger_than_cluster,
                                           BlockerKind::gpus_busy,
                                           BlockerKind::cpus_short,
                                           BlockerKind::memory_short,
                                           BlockerKind::foreign_process,
                                           BlockerKind::device_unhealthy,
                                           BlockerKind::draining,
                                           BlockerKind::behind_reservation,
                                           BlockerKind::isolation_unavailable,
                                           BlockerKind::held,
                                           BlockerKind::backing_off,
                                           BlockerKind::engine_queue_full};
  const JsonValue& object_;
};

tl::unexpected<Error> unreadable(const std::string& why) {
  return fail(ErrorKind::io,
              "cannot read the server's answer: " + why +
                  "; server and command may be of different versions (takt --version "
                  "and takt doctor tell)");
}

template <class Read>
auto read_document(std::string_view text, Read&& read)
    -> Result<decltype(read(std::declval<Answer&>()))> {
  const Result<JsonValue> document = parse_json(text, kDocumentBytesMax);
  if (!document) return unreadable(document.error().message);
  Answer answer(*document);
  auto value = read(answer);
  if (!answer.problem.empty()) return unreadable(answer.problem);
  return value;
}

JobBrief brief_of(Answer& answer) {
  using control::JobState;
  JobBrief job;
  std::string state;
  answer.natural("id", job.id.value);
  answer.text("name", job.name);
  answer.text("state", state);
  answer.optional_int("exit_code", job.exit_code);
  answer.optional_int("signal", job.signal);
  answer.text("reason", job.reason);
  answer.texts("devices", job.devices);
  answer.blockers("waiting_for", job.waiting_for);
  bool known = false;
  for (const JobState candidate :
       {JobState::waiting, JobState::starting, JobState::running, JobState::stopping,
        JobState::done, JobState::failed, JobState::cancelled}) {
    if (control::to_string(candidate) != state) continue;
    job.state = candidate;
    known = true;
  }
  if (!known) answer.spoil("'" + state + "' is not a state of a job");
  return job;
}

}  // namespace

Result<SubmitReceipt> read_submit_reply(std::string_view document) {
  return read_document(document, [](Answer& answer) {
    SubmitReceipt receipt;
    answer.ids("ids", receipt.ids);
    answer.boolean("dry_run", receipt.dry_run);
    answer.natural("count", receipt.count);
    answer.boolean("would_start", receipt.would_start);
    answer.blockers("waiting_for", receipt.waiting_for);
    answer.texts("decision", receipt.decision);
    answer.texts("warnings", receipt.warnings);
    return receipt;
  });
}

Result<ChangedReply> read_changed_reply(std::string_view document, const char* done) {
  return read_document(document, [done](Answer& answer) {
    ChangedReply reply;
    answer.ids(done, reply.ids);
    answer.texts("warnings", reply.warnings);
    return reply;
  });
}

Result<JobBrief> read_job(std::string_view document) {
  return read_document(document, [](Answer& answer) {
    JobBrief job = brief_of(answer);
    answer.texts("warnings", job.warnings);
    return job;
  });
}

Result<std::vector<JobBrief>> read_jobs(std::string_view document) {
  return read_document(document, [](Answer& answer) {
    std::vector<JobBrief> jobs;
    const JsonValue* list = answer.get("jobs", JsonValue::Kind::list);
    if (list == nullptr) return jobs;
    for (const JsonValue& item : list->items) {
      Answer element(item);
      jobs.push_back(brief_of(element));
      if (!element.problem.empty()) answer.spoil("jobs: " + element.problem);
    }
    return jobs;
  });
}

Result<std::string> read_error(std::string_view document) {
  return read_document(document, [](Answer& answer) {
    std::string sentence;
    answer.text("error", sentence);
    return sentence;
  });
}

Result<std::string> read_version(std::string_view document) {
  return read_document(document, [](Answer& answer) {
    std::string version;
    answer.text("takt", version);
    return version;
  });
}

Result<ServerStatus> read_status(std::string_view document) {
  return read_document(document, [](Answer& answer) {
    ServerStatus status;
    std::string started;
    answer.natural("pid", status.pid);
    answer.text("started", started);
    answer.text("policy_revision", status.policy_revision);
    answer.text("state_dir", status.state_dir);
    answer.text("caller", status.caller);
    answer.boolean("caller_admin", status.caller_admin);
    answer.natural("nodes", status.nodes);
    answer.natural("nodes_reachable", status.nodes_reachable);
    answer.natural("gpus", status.gpus);
    answer.boolean("emulated", status.emulated);
    answer.text("problem", status.problem);
    if (const JsonValue* jobs = answer.get("jobs", JsonValue::Kind::object)) {
      Answer counts(*jobs);
      counts.natural("waiting", status.counts.waiting);
      counts.natural("starting", status.counts.starting);
      counts.natural("running", status.counts.running);
      counts.natural("stopping", status.counts.stopping);
      counts.natural("done", status.counts.done);
      counts.natural("failed", status.counts.failed);
      counts.natural("cancelled", status.counts.cancelled);
      if (!counts.problem.empty()) answer.spoil("jobs: " + counts.problem);
    }
    const Result<Instant> at = instant_from_iso8601(started);
    if (at)
      status.started = *at;
    else
      answer.spoil("started: " + at.error().message);
    return status;
  });
}

}  // namespace takt::codec
