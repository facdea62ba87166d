#include "edge/codec/job_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/model/job_spec_rules.h"
#include "core/model/quantity_text.h"
#include "core/model/secret_names.h"
#include "edge/codec/utf8.h"

namespace takt::codec {
namespace {

constexpr std::int64_t kCountMax = 65'536;

class JobReader {
 public:
  JobReader(RunField run, const YamlContext& context, YamlFields& fields, JobSpec& spec)
      : run_(run), context_(context), f_(fields), spec_(spec) {}

  void read(const YamlValue& root) {
    f_.map(
        root, "",
        {{"name", [this](auto& v, auto& p) { f_.text(v, p, spec_.name); }},
         {"run", [this](auto& v, auto& p) { run(v, p); }},
         {"tier", [this](auto& v, auto& p) { tier(v, p); }},
         {"gpus", [this](auto& v, auto& p) { gpus(v, p); }},
         {"slo", [this](auto& v, auto& p) { slo(v, p); }},
         {"min_speed", [this](auto& v, auto& p) { min_speed(v, p); }},
         {"deadline", [this](auto& v, auto& p) { optional_text(v, p, spec_.deadline); }},
         {"isolation", [this](auto& v, auto& p) { isolation(v, p); }},
         {"nodes", [this](auto& v, auto& p) { number(v, p, 1, "a number of nodes", spec_.nodes); }},
         {"cpus", [this](auto& v, auto& p) { number(v, p, 1, "a number of CPUs", spec_.cpus); }},
         {"memory", [this](auto& v, auto& p) { quantity(v, p, parse_size, spec_.memory); }},
         {"time", [this](auto& v, auto& p) { quantity(v, p, parse_duration, spec_.time); }},
         {"kill_after",
          [this](auto& v, auto& p) { quantity(v, p, parse_duration, spec_.kill_after); }},
         {"window",
          [this](auto& v, auto& p) {
            not_yet(v, p, "shift a job into a window", "submit it when it may start");
          }},
         {"checkpoint", [this](auto& v, auto& p) { checkpoint(v, p); }},
         {"retry", [this](auto& v, auto& p) { retry(v, p); }},
         {"image",
          [this](auto& v, auto& p) {
            not_yet(v, p, "run a container image", "start the container in `run`");
          }},
         {"env", [this](auto& v, auto& p) { env(v, p); }},
         {"secrets", [this](auto& v, auto& p) { secrets(v, p); }},
         {"mounts", [this](auto& v, auto& p) { mounts(v, p); }},
         {"array", [this](auto& v, auto& p) { array(v, p); }},
         {"after",
          [this](auto& v, auto& p) {
            not_yet(v, p, "wait for another job", "submit this job when the other is done");
          }},
         {"replicas", [this](auto& v, auto& p) { replicas(v, p); }},
         {"workdir", [this](auto& v, auto& p) { workdir(v, p); }}},
        "a job; expected fields such as run: python3 train.py");
    mark_secrets();
  }

 private:
  void not_yet(const YamlValue& value, const std::string& path, const std::string& what,
               const std::string& instead) {
    f_.faults.add(f_.lines.count(path) > 0 ? f_.lines[path] : value.line, path,
                  "this version of takt cannot " + what + " yet; remove the field or " + instead);
  }

  void number(const YamlValue& value, const std::string& path, std::int64_t min, const char* what,
              int& to) {
    std::int64_t n = 0;
    if (f_.whole(value, path, min, kCountMax, what, n)) to = static_cast<int>(n);
  }

  template <class T>
  void quantity(const YamlValue& value, const std::string& path,
                Result<T> (*parse)(std::string_view), std::optional<T>& to) {
    T found{};
    if (f_.parsed(value, path, parse, found)) to = found;
  }

  void optional_text(const YamlValue& value, const std::string& path,
                     std::optional<std::string>& to) {
    std::string found;
    if (f_.text(value, path, found)) to = found;
  }

  void run(const YamlValue& value, const std::string& path) {
    if (run_ == RunField::refused)
      return f_.faults.add(value.line, path, "the script itself is what runs; remove the field");
    if (value.kind == YamlValue::Kind::list) {
      if (!f_.texts(value, path, spec_.argv)) return;
      for (const std::string& word : spec_.argv)
        spec_.command_text += (spec_.command_text.empty() ? "" : " ") + shell_word(word);
      return;
    }
    std::string text;
    if (!f_.text(value, path, text)) return;
    const std::size_t end = text.find_last_not_of(" \t\n");
    spec_.command_text = end == std::string::npos ? "" : text.substr(0, end + 1);
    if (!spec_.command_text.empty()) spec_.argv = {"/bin/sh", "-c", text};
  }

  // As one would have to type it.
  static std::string shell_word(const std::string& word) {
    const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             std::string_view("-_./=:,+@%").find(c) != std::string_view::npos;
    });
    if (plain) return word;
    std::string quoted = "'";
    for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
  }

  void tier(const YamlValue& value, const std::string& path) {
    std::size_t i = 0;
    if (f_.word(value, path, {"serving", "training", "batch", "experimental"}, "a tier", i))
      spec_.tier = std::vector{Tier::serving, Tier::training, Tier::batch, Tier::experimental}[i];
  }

  void isolation(const YamlValue& value, const std::string& path) {
    std::size_t i = 0;
    if (f_.word(value, path, {"strict", "limited", "watched"}, "an isolation level", i))
      spec_.isolation = std::vector{Isolation::strict, Isolation::limited, Isolation::watched}[i];
  }

  void gpus(const YamlValue& value, const std::string& path) {
    GpuRequest& g = spec_.gpus;
    g = {};  // replaces whatever a script's #SBATCH lines asked for
    if (value.kind == YamlValue::Kind::map) {
      f_.map(
          value, path,
          {{"count", [&](auto& v, auto& p) { gpu_count(v, p); }},
           {"type", [&](auto& v, auto& p) { gpu_types(v, p); }},
           {"memory", [&](auto& v, auto& p) { quantity(v, p, parse_size, g.memory); }},
           {"compute", [&](auto& v, auto& p) { quantity(v, p, parse_percent, g.compute_percent); }},
           {"link", [&](auto& v, auto& p) { link(v, p); }},
           {"distributed", [&](auto& v, auto& p) { f_.boolean(v, p, g.distributed); }}});
      if (value.entries.empty())
        f_.faults.add(value.line, path, "is empty; expected count, or memory, or both");
      return;
    }
    if (value.kind == YamlValue::Kind::scalar && value.text == "auto") {
      g.from_profile = true;
      return;
    }
    if (value.kind == YamlValue::Kind::scalar && parse_size(value.text).has_value())
      return f_.faults.add(value.line, path,
                           describe(value) +
                               " is a size, not a number of GPUs; for a device with "
                               "that much memory write gpus: {memory: " +
                               value.text + "}");
    if (value.kind == YamlValue::Kind::list)
      return f_.faults.add(value.line, path,
                           "a list is not a request for GPUs; expected a number, auto, or a "
                           "mapping such as {memory: 12GiB}");
    gpu_count(value, path);
  }

  void gpu_count(const YamlValue& value, const std::string& path) {
    std::int64_t n = 0;
    if (f_.whole(value, path, 0, 65'536, "a number of GPUs", n))
      spec_.gpus.count = static_cast<int>(n);
  }

  void gpu_types(const YamlValue& value, const std::string& path) {
    if (!f_.texts(value, path, spec_.gpus.types)) return;
    for (std::string& type : spec_.gpus.types)
      for (char& c : type)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (spec_.gpus.types.empty())
      f_.faults.add(value.line, path, "is an empty list; expected names such as h100, or no field");
  }

  void link(const YamlValue& value, const std::string& path) {
    std::size_t i = 0;
    if (f_.word(value, path, {"any", "nvlink"}, "a link", i))
      spec_.gpus.link = i == 0 ? LinkNeed::any : LinkNeed::nvlink;
  }

  void slo(const YamlValue& value, const std::string& path) {
    ServiceLevel level;
    const auto span = [&](std::optional<Duration>& to) {
      return [this, &to](auto& v, auto& p) { quantity(v, p, parse_duration, to); };
    };
    f_.map(value, path,
           {{"ttft_p95", span(level.ttft_p95)},
            {"tpot_p95", span(level.tpot_p95)},
            {"latency_p95", span(level.latency_p95)}});
    spec_.slo = level;
  }

  void min_speed(const YamlValue& value, const std::string& path) {
    std::string text;
    if (!f_.text(value, path, text)) return;
    double speed = 0;
    const char* const last = text.data() + text.size();
    const auto [end, code] = std::from_chars(text.data(), last, speed, std::chars_format::fixed);
    if (code != std::errc() || end != last || !std::isfinite(speed))
      return f_.faults.add(value.line, path,
                           describe(value) +
                               " is not a number; expected for instance 0.8: the "
                               "speed as a multiple of the reference type's");
    spec_.min_speed = speed;
  }

  void checkpoint(const YamlValue& value, const std::string& path) {
    CheckpointSpec checkpoint;
    const auto signal = [&](const YamlValue& v, const std::string& p) {
      if (!f_.text(v, p, checkpoint.signal)) return;
      if (checkpoint.signal.rfind("SIG", 0) == 0) checkpoint.signal.erase(0, 3);
    };
    f_.map(
        value, path,
        {{"signal", signal},
         {"grace", [&](auto& v, auto& p) { f_.parsed(v, p, parse_duration, checkpoint.grace); }}},
        "a mapping; expected e.g. {signal: USR1, grace: 120s}");
    spec_.checkpoint = checkpoint;
  }

  void retry(const YamlValue& value, const std::string& path) {
    const auto causes = [&](const YamlValue& v, const std::string& p) {
      const std::vector<std::string> words = {"node-lost", "preempted", "oom", "failed"};
      const std::vector<RetryCause> values = {RetryCause::node_lost, RetryCause::preempted,
                                              RetryCause::oom, RetryCause::failed};
      const std::vector<YamlValue> one = {v};
      for (const YamlValue& item : v.kind == YamlValue::Kind::list ? v.items : one) {
        std::size_t i = 0;
        if (f_.word(item, p, words, "a cause", i)) spec_.retry.on.push_back(values[i]);
      }
    };
    const auto max = [&](const YamlValue& v, const std::string& p) {
      std::int64_t n = 0;
      if (f_.whole(v, p, 0, 1'000, "a number of retries", n)) spec_.retry.max = static_cast<int>(n);
    };
    const auto oom = [&](const YamlValue& v, const std::string& p) {
      not_yet(v, p, "give a retry more memory", "ask for more memory at once");
    };
    f_.map(value, path, {{"on", causes}, {"max", max}, {"oom", oom}},
           "a mapping; expected e.g. {on: [node-lost], max: 2}");
  }

  // Nothing here may put a value into a message: it may be a secret.
  void env(const YamlValue& value, const std::string& path) {
    if (value.kind != YamlValue::Kind::map)
      return f_.faults.add(value.line, path, "is not a mapping; expected {NAME: value, ...}");
    for (const YamlEntry& entry : value.entries) {
      const std::string at = path + "." + shown_variable_name(entry.key);
      f_.lines[at] = entry.line;
      if (entry.value.kind == YamlValue::Kind::scalar)
        spec_.env.push_back({entry.key, entry.value.text, false});
      else
        f_.faults.add(entry.line, at,
                      entry.value.kind == YamlValue::Kind::null
                          ? "has no value; write \"\" for an empty one"
                          : "is not a single value");
    }
  }

  void secrets(const YamlValue& value, const std::string& path) {
    std::vector<std::string> names;
    if (f_.texts(value, path, names)) secret_names_ = names, secrets_line_ = value.line;
  }

  void mark_secrets() {
    for (EnvironmentVariable& variable : spec_.env) variable.secret = is_secret_name(variable.name);
    for (const std::string& name : secret_names_) {
      const auto found = std::find_if(spec_.env.begin(), spec_.env.end(),
                                      [&](const auto& variable) { return variable.name == name; });
      if (found != spec_.env.end())
        found->secret = true;
      else
        // The name may be a value that slipped in here, so it is not repeated.
        f_.faults.add(secrets_line_, "secrets",
                      "names a variable that env does not set; expected names of env, not values");
    }
  }

  void mounts(const YamlValue& value, const std::string& path) {
    if (value.kind == YamlValue::Kind::list && value.items.empty()) return;
    not_yet(value, path, "mount folders into a job", "use the host's own paths");
  }

  void array(const YamlValue& value, const std::string& path) {
    if (value.kind != YamlValue::Kind::map || value.entries.empty())
      return f_.faults.add(
          value.line, path,
          describe(value) + " is not a mapping of parameters; expected e.g. {seed: 0-4}");
    spec_.array.clear();  // of a script's #SBATCH lines
    for (const YamlEntry& entry : value.entries) {
      const std::string at = path + "." + printable(entry.key);
      f_.lines[at] = entry.line;
      std::vector<std::string>& values = spec_.array[entry.key];
      const std::vector<YamlValue> one = {entry.value};
      for (const YamlValue& item :
           entry.value.kind == YamlValue::Kind::list ? entry.value.items : one) {
        std::string text;
        if (!f_.text(item, at, text)) continue;
        if (item.quoted) {
          values.push_back(text);
          continue;
        }
        const auto range = expand_range(text, context_.limits.array_tasks_max);
        if (range)
          values.insert(values.end(), range->begin(), range->end());
        else
          f_.faults.add(item.line, at, range.error().message);
      }
    }
  }

  void replicas(const YamlValue& value, const std::string& path) {
    if (value.kind != YamlValue::Kind::map)
      return number(value, path, 1, "a number of replicas", spec_.replicas);
    int min = 0;
    int max = 0;
    const auto cannot_scale = [this](const YamlValue& v, const std::string& p) {
      not_yet(v, p, "scale a service by itself", "give a fixed number: replicas: 2");
    };
    f_.map(value, path,
           {{"min", [&](auto& v, auto& p) { number(v, p, 1, "a number of replicas", min); }},
            {"max", [&](auto& v, auto& p) { number(v, p, 1, "a number of replicas", max); }},
            {"scale_on", cannot_scale},
            {"cool", cannot_scale}});
    if (f_.faults.any_at(path)) return;
    if (min == 0 || max == 0)
      return f_.faults.add(value.line, path, "needs min and max, or one number: replicas: 2");
    if (min != max) return cannot_scale(value, path);
    spec_.replicas = min;
  }

  void workdir(const YamlValue& value, const std::string& path) {
    std::string text;
    if (!f_.text(value, path, text)) return;
    if (text.empty()) return f_.faults.add(value.line, path, "is empty; expected a path");
    spec_.workdir = resolve_workdir(context_.workdir, text);
  }

  RunField run_;
  const YamlContext& context_;
  YamlFields& f_;
  JobSpec& spec_;
  std::vector<std::string> secret_names_;
  int secrets_line_ = 1;
};

// The line of a field, or of the nearest field above it.
int line_of(const YamlFields& fields, std::string path) {
  for (;;) {
    const auto found = fields.lines.find(path);
    if (found != fields.lines.end()) return found->second;
    const std::size_t dot = path.find_last_of('.');
    if (dot == std::string::npos) return 1;
    path.erase(dot);
  }
}

// Whether a rule about `field` can be judged although other things are wrong: what it speaks of was
// read without a fault.
bool can_be_judged(const YamlFaults& faults, const std::string& field) {
  const std::string top = field.substr(0, field.find('.'));
  if (faults.any_at(top)) return false;
  if ((top == "replicas" || top == "isolation") && faults.any_at("tier")) return false;
  return !(top == "kill_after" && faults.any_at("time"));
}

}  // namespace

void read_job_fields(const YamlValue& root, RunField run, const YamlContext& context,
                     YamlFields& fields, JobSpec& spec) {
  JobReader(run, context, fields, spec).read(root);
}

Result<ParsedJob> finish_job(JobSpec spec, std::vector<std::string> warnings, YamlFields& fields,
                             const YamlContext& context) {
  if (spec.workdir.empty()) spec.workdir = context.workdir;
  if (spec.name.empty() && !fields.faults.any_at("name"))
    spec.name = default_name(spec.argv, spec.command_text);
  std::vector<std::pair<std::string, std::string>> found;
  for (const SpecProblem& problem : spec_problems(spec, context.limits))
    if (can_be_judged(fields.faults, problem.field))
      found.emplace_back(problem.field, problem.sentence);
  for (const auto& [field, sentence] : found)
    fields.faults.add(line_of(fields, field), field, sentence);
  if (fields.faults.any()) return fields.faults.error();
  for (std::string& sentence : spec_warnings(spec)) warnings.push_back(std::move(sentence));
  return ParsedJob{std::move(spec), std::move(warnings)};
}

std::string resolve_workdir(const std::string& base, const std::string& path) {
  if (!path.empty() && path.front() == '/') return path;
  if (path.empty() || path == ".") return base;
  return (base.empty() || base.back() == '/' ? base : base + "/") + path;
}

}  // namespace takt::codec
