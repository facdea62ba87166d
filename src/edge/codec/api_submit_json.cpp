// Submissions: a job's spec as JSON, written for a request or for showing, and read strictly.
#include <algorithm>

#include "core/model/job_spec_rules.h"
#include "core/model/secret_names.h"
#include "edge/codec/api_json.h"
#include "edge/codec/api_parts.h"
#include "edge/codec/base64.h"
#include "edge/codec/json_value.h"
#include "edge/codec/utf8.h"
#include "edge/codec/yaml_value.h"

namespace takt::codec {
namespace {

enum class Audience { server, people };  // people are shown no values of variables

// A string, or {"b64": ...} when it is not UTF-8: file names may be any bytes.
void put_text(JsonWriter& out, const std::string& text) {
  if (is_utf8(text)) return out.text(text);
  out.begin_object();
  out.key("b64");
  out.plain_text(base64_encode(text));
  out.end_object();
}

void put_texts(JsonWriter& out, const std::vector<std::string>& texts) {
  out.begin_array();
  for (const std::string& text : texts) put_text(out, text);
  out.end_array();
}

void put_gpus(JsonWriter& out, const GpuRequest& gpus) {
  out.key("gpus");
  out.begin_object();
  if (gpus.count) out.field("count", *gpus.count);
  if (gpus.memory) out.field("memory_bytes", gpus.memory->value);
  if (gpus.compute_percent) out.field("compute_percent", *gpus.compute_percent);
  if (!gpus.types.empty()) {
    out.key("types");
    put_texts(out, gpus.types);
  }
  if (gpus.link == LinkNeed::nvlink) out.field("link", "nvlink");
  if (gpus.distributed) out.field("distributed", true);
  if (gpus.from_profile) out.field("auto", true);
  out.end_object();
}

void put_slo(JsonWriter& out, const ServiceLevel& slo) {
  out.key("slo");
  out.begin_object();
  if (slo.ttft_p95) out.field("ttft_p95_us", slo.ttft_p95->us);
  if (slo.tpot_p95) out.field("tpot_p95_us", slo.tpot_p95->us);
  if (slo.latency_p95) out.field("latency_p95_us", slo.latency_p95->us);
  out.end_object();
}

void put_retry(JsonWriter& out, const RetrySpec& retry) {
  out.key("retry");
  out.begin_object();
  out.key("on");
  out.begin_array();
  for (const RetryCause cause : retry.on) out.text(to_string(cause));
  out.end_array();
  out.field("max", retry.max);
  out.end_object();
}

void put_env(JsonWriter& out, const JobSpec& spec, Audience audience) {
  out.key("env");
  out.begin_array();
  for (const EnvironmentVariable& variable : spec.env) {
    out.begin_object();
    out.field("name", variable.name);
    if (audience == Audience::server) {
      out.key("value");
      put_text(out, variable.value);
    }
    if (variable.secret) out.field("secret", true);
    out.end_object();
  }
  out.end_array();
}

void put_spec(JsonWriter& out, const JobSpec& spec, Audience audience) {
  out.begin_object();
  if (!spec.name.empty()) out.field("name", spec.name);
  out.key("argv");
  put_texts(out, spec.argv);
  out.key("command");
  put_text(out, spec.command_text);
  if (spec.tier) out.field("tier", to_string(*spec.tier));
  put_gpus(out, spec.gpus);
  out.field("nodes", spec.nodes);
  if (spec.slo) put_slo(out, *spec.slo);
  if (spec.min_speed) out.field("min_speed", *spec.min_speed);
  if (spec.deadline) out.field("deadline", *spec.deadline);
  if (spec.isolation) out.field("isolation", to_string(*spec.isolation));
  out.field("cpus", spec.cpus);
  if (spec.memory) out.field("memory_bytes", spec.memory->value);
  if (spec.time) out.field("time_us", spec.time->us);
  if (spec.kill_after) out.field("kill_after_us", spec.kill_after->us);
  if (spec.checkpoint) {
    out.key("checkpoint");
    out.begin_object();
    out.field("signal", spec.checkpoint->signal);
    out.field("grace_us", spec.checkpoint->grace.us);
    out.end_object();
  }
  put_retry(out, spec.retry);
  out.key("workdir");
  put_text(out, spec.workdir);
  put_env(out, spec, audience);
  out.key("array");
  out.begin_object();
  for (const auto& [parameter, values] : spec.array) {
    out.key_text(parameter);
    put_texts(out, values);
  }
  out.end_object();
  out.field("replicas", spec.replicas);
  out.field("wait_for_capacity", spec.wait_for_capacity);
  out.end_object();
}

// ---- reading: every fault is collected -------------------------------------------------------

class SpecReader {
 public:
  using Read = std::function<void(const JsonValue&, const std::string& path)>;
  using Readers = std::vector<std::pair<std::string, Read>>;

  std::vector<std::string> faults;

  void fault(const std::string& path, const std::string& sentence) {
    faults.push_back(path.empty() ? sentence : path + ": " + sentence);
  }

  void object(const JsonValue& value, const std::string& path, const Readers& readers) {
    if (value.kind != JsonValue::Kind::object)
      return fault(path, describe(value) + " is not an object");
    for (const auto& [name, member] : value.fields) {
      const std::string at = (path.empty() ? "" : path + ".") + printable(name);
      const auto reader = std::find_if(readers.begin(), readers.end(),
                                       [&n = name](const auto& r) { return r.first == n; });
      if (reader != readers.end()) {
        // Null is as good as not there.
        if (member.kind != JsonValue::Kind::null) reader->second(member, at);
        continue;
      }
      std::vector<std::string> names;
      for (const auto& r : readers) names.push_back(r.first);
      const std::string near = nearest(name, names);
      fault(at, near.empty() ? "is not a field" : "is not a field; did you mean '" + near + "'?");
    }
  }

  JobSpec spec(const JsonValue& value, const std::string& path) {
    JobSpec s;
    bool has_argv = false;
    bool has_run = false;
    object(
        value, path,
        {{"name", text(s.name)},
         {"argv", [&](auto& v, auto& p) { has_argv = true, read_texts(v, p, s.argv); }},
         {"run", [&](auto& v, auto& p) { has_run = true, read_run(v, p, s); }},
         {"command", text(s.command_text)},
         {"tier", word<Tier>(s.tier, tier_from, "a tier")},
         {"gpus", [&](auto& v, auto& p) { read_gpus(v, p, s.gpus); }},
         {"nodes", integer(s.nodes)},
         {"slo", [&](auto& v, auto& p) { read_slo(v, p, s); }},
         {"min_speed", [&](auto& v, auto& p) { read_number(v, p, s.min_speed); }},
         {"deadline", [&](auto& v, auto& p) { text(s.deadline.emplace())(v, p); }},
         {"isolation", word<Isolation>(s.isolation, isolation_from, "an isolation level")},
         {"cpus", integer(s.cpus)},
         {"memory_bytes", [&](auto& v, auto& p) { read_int64(v, p, s.memory.emplace().value); }},
         {"time_us", [&](auto& v, auto& p) { read_int64(v, p, s.time.emplace().us); }},
         {"kill_after_us", [&](auto& v, auto& p) { read_int64(v, p, s.kill_after.emplace().us); }},
         {"checkpoint", [&](auto& v, auto& p) { read_checkpoint(v, p, s.checkpoint.emplace()); }},
         {"retry", [&](auto& v, auto& p) { read_retry(v, p, s.retry); }},
         {"workdir", text(s.workdir)},
         {"env", [&](auto& v, auto& p) { read_env(v, p, s.env); }},
         {"array", [&](auto& v, auto& p) { read_array(v, p, s.array); }},
         {"replicas", integer(s.replicas)},
         {"wait_for_capacity", boolean(s.wait_for_capacity)}});
    if (has_argv && has_run) fault(path, "argv and run are both given; keep one of them");
    return s;
  }

  Read text(std::string& to) {
    return [this, &to](const JsonValue& v, const std::string& p) { read_text(v, p, to); };
  }

  template <class T>
  Read word(std::optional<T>& to, std::optional<T> (*parse)(const std::string&), const char* what) {
    return [this, &to, parse, what](const JsonValue& v, const std::string& p) {
      to = v.kind == JsonValue::Kind::text ? parse(v.text) : std::nullopt;
      if (!to) fault(p, describe(v) + " is not " + what);
    };
  }

 private:
  Read integer(int& to) {
    return [this, &to](const JsonValue& v, const std::string& p) {
      std::int64_t n = 0;
      if (!read_int64(v, p, n)) return;
      if (n < INT32_MIN || n > INT32_MAX) return fault(p, describe(v) + " is too large");
      to = static_cast<int>(n);
    };
  }
  Read boolean(bool& to) {
    return [this, &to](const JsonValue& v, const std::string& p) {
      if (v.kind != JsonValue::Kind::boolean)
        return fault(p, describe(v) + " is not true or false");
      to = v.flag;
    };
  }

  // `shown` false: the value may be secret and is not named.
  void read_text(const JsonValue& v, const std::string& p, std::string& to, bool shown = true) {
    if (v.kind == JsonValue::Kind::text) {
      to = v.text;
      return;
    }
    const JsonValue* b64 = v.fields.size() == 1 ? v.find("b64") : nullptr;
    if (b64 != nullptr && b64->kind == JsonValue::Kind::text) {
      std::optional<std::string> bytes = base64_decode(b64->text);
      if (!bytes) return fault(p, "the b64 text is not base64");
      to = std::move(*bytes);
      return;
    }
    fault(p, (shown ? describe(v) + " is not a text" : std::string("is not a text")));
  }
  bool read_texts(const JsonValue& v, const std::string& p, std::vector<std::string>& to) {
    if (v.kind != JsonValue::Kind::list) {
      fault(p, describe(v) + " is not a list of texts");
      return false;
    }
    for (const JsonValue& item : v.items) read_text(item, p, to.emplace_back());
    return true;
  }
  bool read_int64(const JsonValue& v, const std::string& p, std::int64_t& to) {
    if (v.kind == JsonValue::Kind::integer) {
      to = v.integer;
    } else if (v.kind == JsonValue::Kind::natural && v.natural <= INT64_MAX) {
      to = static_cast<std::int64_t>(v.natural);
    } else {
      fault(p, describe(v) + " is not a whole number");
      return false;
    }
    return true;
  }
  void read_number(const JsonValue& v, const std::string& p, std::optional<double>& to) {
    if (v.kind == JsonValue::Kind::real)
      to = v.real;
    else if (v.kind == JsonValue::Kind::natural)
      to = static_cast<double>(v.natural);
    else if (v.kind == JsonValue::Kind::integer)
      to = static_cast<double>(v.integer);
    else
      fault(p, describe(v) + " is not a number");
  }
  void read_run(const JsonValue& v, const std::string& p, JobSpec& s) {
    if (v.kind == JsonValue::Kind::list) {
      read_texts(v, p, s.argv);
      if (s.command_text.empty())
        for (const std::string& w : s.argv)
          s.command_text += (s.command_text.empty() ? "" : " ") + w;
      return;
    }
    std::string line;
    read_text(v, p, line);
    if (line.empty()) return;
    s.argv = {"/bin/sh", "-c", line};
    if (s.command_text.empty()) s.command_text = line;
  }
  void read_gpus(const JsonValue& v, const std::string& p, GpuRequest& g) {
    object(
        v, p,
        {{"count", [&](auto& m, auto& at) { integer(g.count.emplace())(m, at); }},
         {"memory_bytes", [&](auto& m, auto& at) { read_int64(m, at, g.memory.emplace().value); }},
         {"compute_percent",
          [&](auto& m, auto& at) { integer(g.compute_percent.emplace())(m, at); }},
         {"types", [&](auto& m, auto& at) { read_texts(m, at, g.types); }},
         {"link",
          [&](auto& m, auto& at) {
            if (m.text == "nvlink" || m.text == "any")
              g.link = m.text == "any" ? LinkNeed::any : LinkNeed::nvlink;
            else
              fault(at, describe(m) + " is not a link; expected any or nvlink");
          }},
         {"distributed", boolean(g.distributed)},
         {"auto", boolean(g.from_profile)}});
  }
  void read_slo(const JsonValue& v, const std::string& p, JobSpec& s) {
    ServiceLevel& level = s.slo.emplace();
    const auto span = [this](std::optional<Duration>& to) -> Read {
      return [this, &to](auto& m, auto& at) { read_int64(m, at, to.emplace().us); };
    };
    object(v, p,
           {{"ttft_p95_us", span(level.ttft_p95)},
            {"tpot_p95_us", span(level.tpot_p95)},
            {"latency_p95_us", span(level.latency_p95)}});
  }
  void read_checkpoint(const JsonValue& v, const std::string& p, CheckpointSpec& to) {
    object(v, p, {{"signal", text(to.signal)}, {"grace_us", [&](auto& m, auto& at) {
                                                  read_int64(m, at, to.grace.us);
                                                }}});
  }
  void read_retry(const JsonValue& v, const std::string& p, RetrySpec& to) {
    const auto causes = [&](const JsonValue& m, const std::string& at) {
      if (m.kind != JsonValue::Kind::list) return fault(at, describe(m) + " is not a list");
      for (const JsonValue& item : m.items) {
        std::optional<RetryCause> cause;
        word<RetryCause>(cause, retry_cause_from, "a cause")(item, at);
        if (cause) to.on.push_back(*cause);
      }
    };
    object(v, p, {{"on", causes}, {"max", integer(to.max)}});
  }
  void read_env(const JsonValue& v, const std::string& p, std::vector<EnvironmentVariable>& to) {
    if (v.kind != JsonValue::Kind::list)
      return fault(p, "is not a list; expected [{\"name\": ..., \"value\": ...}, ...]");
    for (const JsonValue& item : v.items) {
      EnvironmentVariable& variable = to.emplace_back();
      object(item, p,
             {{"name", [&](auto& m, auto& at) { read_text(m, at, variable.name, false); }},
              {"value", [&](auto& m, auto& at) { read_text(m, at, variable.value, false); }},
              {"secret", boolean(variable.secret)}});
      variable.secret = variable.secret || is_secret_name(variable.name);
    }
  }
  void read_array(const JsonValue& v, const std::string& p,
                  std::map<std::string, std::vector<std::string>>& to) {
    if (v.kind != JsonValue::Kind::object)
      return fault(p, describe(v) + " is not an object of parameters");
    for (const auto& [parameter, values] : v.fields)
      read_texts(values, p + "." + printable(parameter), to[parameter]);
  }
};

Result<void> verdict(const SpecReader& reader, const JobSpec& spec, const Limits& limits) {
  if (reader.faults.empty()) return validate(spec, limits);
  constexpr std::size_t shown_max = 20;
  std::string lines;
  for (std::size_t i = 0; i < reader.faults.size() && i < shown_max; ++i)
    lines += (i == 0 ? "" : "\n") + reader.faults[i];
  if (reader.faults.size() > shown_max)
    lines += "\nand " + std::to_string(reader.faults.size() - shown_max) + " more";
  return fail(ErrorKind::invalid, lines);
}

}  // namespace

std::string job_spec_json(const JobSpec& spec) {
  JsonWriter out(2048);
  put_spec(out, spec, Audience::server);
  return out.take();
}

std::string job_spec_shown_json(const JobSpec& spec) {
  JsonWriter out(2048);
  put_spec(out, spec, Audience::people);
  return out.take();
}

namespace {

bool is_request_id(const std::string& id) {
  return !id.empty() && id.size() <= 64 && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

}  // namespace

std::string submit_request_json(const SubmitRequest& request) {
  JsonWriter out(2048);
  out.begin_object();
  out.key("spec");
  put_spec(out, request.spec, Audience::server);
  out.field("default_tier", to_string(request.default_tier));
  if (!request.request_id.empty()) out.field("request_id", request.request_id);
  out.end_object();
  return out.take();
}

Result<JobSpec> job_spec_from_json(std::string_view text, const Limits& limits) {
  const Result<JsonValue> document = parse_json(text, limits.spec_bytes_max);
  if (!document) return tl::make_unexpected(document.error());
  SpecReader reader;
  JobSpec spec = reader.spec(*document, "");
  const Result<void> fine = verdict(reader, spec, limits);
  if (!fine) return tl::make_unexpected(fine.error());
  return spec;
}

Result<SubmitRequest> submit_request_from_json(std::string_view body, const Limits& limits) {
  const Result<JsonValue> document = parse_json(body, limits.spec_bytes_max);
  if (!document) return tl::make_unexpected(document.error());
  SpecReader reader;
  SubmitRequest request;
  std::optional<Tier> tier;
  bool has_spec = false;
  reader.object(*document, "",
                {{"spec",
                  [&](auto& v, auto&) {
                    has_spec = true;
                    request.spec = reader.spec(v, "");
                  }},
                 {"default_tier", reader.word<Tier>(tier, tier_from, "a tier")},
                 {"request_id", [&](auto& v, auto& p) {
                    reader.text(request.request_id)(v, p);
                    if (reader.faults.empty() && !is_request_id(request.request_id))
                      reader.fault(p, "expected 1 to 64 letters, digits, '-' or '_'");
                  }}});
  if (tier && *tier != Tier::experimental && *tier != Tier::batch)
    reader.fault("default_tier", "'" + to_string(*tier) + "' is not experimental or batch");
  if (!has_spec && reader.faults.empty()) reader.fault("spec", "is missing");
  const Result<void> fine = verdict(reader, request.spec, limits);
  if (!fine) return tl::make_unexpected(fine.error());
  if (tier) request.default_tier = *tier;
  return request;
}

std::string submit_reply_json(const DocumentHead& head, const SubmitReply& reply) {
  JsonWriter out(2048);
  begin_document(out, head);
  out.field("dry_run", reply.dry_run);
  out.key("id");
  if (reply.ids.empty())
    out.null();
  else
    out.natural(reply.ids.front().value);
  out.key("ids");
  out.begin_array();
  for (const JobId id : reply.ids) out.natural(id.value);
  out.end_array();
  out.field("count", reply.count);
  out.key("spec");
  put_spec(out, reply.spec, Audience::people);
  out.field("would_start", reply.would_start);
  blockers_field(out, "waiting_for", reply.waiting_for);
  texts_field(out, "decision", reply.decision);
  out.end_object();
  return out.take();
}

}  // namespace takt::codec
