#include "core/model/job_spec_rules.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "core/model/quantity_text.h"
#include "core/model/secret_names.h"

namespace takt {
namespace {

// Linux passes no single argument or "NAME=value" of this many bytes or more, its final NUL
// included (MAX_ARG_STRLEN in the kernel's include/uapi/linux/binfmts.h: 32 pages of 4 KiB).
constexpr std::size_t kArgumentBytesMax = 131'071;
constexpr int kGpusMax = 65'536;
constexpr int kCpusMax = 65'536;
constexpr std::size_t kNameBytesMax = 128;
constexpr std::size_t kTypesMax = 64;
constexpr int kRetriesMax = 1'000;
constexpr Duration kSpanMax = hours(24 * 3650);

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_identifier(std::string_view text) {
  if (text.empty() || is_digit(text.front())) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
}

bool has_nul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

class Problems {
 public:
  Problems(const JobSpec& spec, const Limits& limits) : spec_(spec), limits_(limits) {}

  std::vector<SpecProblem> take() {
    name();
    command();
    gpus();
    placement();
    host();
    times();
    service_level();
    checkpoint_and_retry();
    environment();
    many();
    return std::move(found_);
  }

 private:
  void add(std::string field, std::string sentence) {
    found_.push_back({std::move(field), std::move(sentence)});
  }

  void name() {
    if (spec_.name.empty()) return;  // resolved later
    if (spec_.name.size() > kNameBytesMax) {
      add("name", "the name has " + std::to_string(spec_.name.size()) +
                      " bytes; expected at most " + std::to_string(kNameBytesMax));
      return;
    }
    const bool fine = std::all_of(spec_.name.begin(), spec_.name.end(), [](char c) {
      return is_letter(c) || is_digit(c) || c == '-' || c == '_' || c == '.' || c == '+' ||
             c == ':' || c == '@';
    });
    if (!fine)
      add("name", quoted(spec_.name) +
                      " is not a workload name; expected letters, digits and - _ . + : @ only");
    else if (spec_.name.front() == '-' || spec_.name.front() == '.')
      add("name", quoted(spec_.name) + " begins with '-' or '.'; expected a letter or a digit");
  }

  void command() {
    if (spec_.argv.empty() || spec_.argv.front().empty()) {
      add("run", "nothing to run; expected a command, e.g. run: python3 train.py");
      return;
    }
    for (const std::string& word : spec_.argv) {
      if (has_nul(word)) {
        add("run", "the command contains a NUL byte; no program can be given that");
        return;
      }
      if (word.size() > kArgumentBytesMax) {
        add("run", "one argument has " + std::to_string(word.size()) +
                       " bytes and the kernel passes at most " + std::to_string(kArgumentBytesMax) +
                       "; put the text in a file and run that");
        return;
      }
    }
    if (!spec_.workdir.empty() && (spec_.workdir.front() != '/' || has_nul(spec_.workdir)))
      add("workdir", quoted(spec_.workdir) + " is not an absolute path");
  }

  void gpus() {
    const GpuRequest& g = spec_.gpus;
    if (g.count && (*g.count < 0 || *g.count > kGpusMax))
      add("gpus.count", quoted(std::to_string(*g.count)) +
                            " is not a number of GPUs; expected 0 to " + std::to_string(kGpusMax));
    if (g.memory && g.memory->value <= 0)
      add("gpus.memory",
          quoted(format_size(*g.memory)) + " is not a size to ask for; expected more than 0 bytes");
    if (g.compute_percent && (*g.compute_percent < 1 || *g.compute_percent > 100))
      add("gpus.compute",
          quoted(std::to_string(*g.compute_percent) + "%") + " is not between 1% and 100%");
    if (g.count && g.compute_percent)
      add("gpus.compute",
          "contradicts gpus.count: a count asks for whole GPUs, compute for a part of one; keep "
          "one of them");
    if (g.compute_percent && !g.memory && !g.count)
      add("gpus.compute", "needs gpus.memory beside it: a share of a GPU is made by its memory");
    if (g.distributed && g.count)
      add("gpus.distributed",
          "contradicts gpus.count: with distributed takt picks the number of devices; keep one");
    if (g.distributed && !g.memory)
      add("gpus.distributed", "needs gpus.memory: the bytes that all devices together must hold");
    if (g.distributed && g.compute_percent)
      add("gpus.distributed", "contradicts gpus.compute; keep one of them");
    if (g.from_profile && (g.count || g.memory || g.compute_percent || g.distributed))
      add("gpus", "auto takes the size from the workload's profile; give no size beside it");
    if (g.count && *g.count == 0 && (g.memory || !g.types.empty() || g.link != LinkNeed::any))
      add("gpus", "asks for 0 GPUs and says of which kind; remove the other fields or the count");
    if (g.link == LinkNeed::nvlink && !g.distributed && !(g.count && *g.count >= 2))
      add("gpus.link", "nvlink connects GPUs; it needs a count of 2 or more, or distributed: true");
    gpu_types();
  }

  void gpu_types() {
    const GpuRequest& g = spec_.gpus;
    if (g.types.size() > kTypesMax)
      add("gpus.type",
          std::to_string(g.types.size()) + " types; expected at most " + std::to_string(kTypesMax));
    std::set<std::string> seen;
    for (const std::string& type : g.types) {
      const bool fine =
          !type.empty() && type.size() <= 64 && std::all_of(type.begin(), type.end(), [](char c) {
            return is_letter(c) || is_digit(c) || c == '-' || c == '_' || c == '.' || c == ' ';
          });
      if (!fine)
        add("gpus.type", quoted(type) + " is not a GPU type; expected names such as h100 or a100");
      else if (!seen.insert(type).second)
        add("gpus.type", quoted(type) + " is named twice");
    }
    if (!g.types.empty() && !g.count && !g.memory && !g.from_profile)
      add("gpus.type", "says which kind of GPU but not how much; add count or memory");
  }

  void placement() {
    if (spec_.nodes < 1)
      add("nodes", quoted(std::to_string(spec_.nodes)) + " is not a number of nodes; expected 1");
    if (spec_.nodes > 1)
      add("nodes",
          "this version of takt cannot run a job on more than one node yet; remove the field or "
          "use nodes: 1");
    if (spec_.isolation == Isolation::limited)
      add("isolation",
          "this version of takt cannot keep the level 'limited' (MPS with limits in force) yet; "
          "remove the field or use strict or watched");
    if (spec_.isolation == Isolation::watched && spec_.tier == Tier::serving)
      add("isolation",
          "'watched' shares a GPU without hardware limits and tier serving is promised guaranteed "
          "memory; use strict, or another tier");
  }

  void host() {
    if (spec_.cpus < 0 || spec_.cpus > kCpusMax)
      add("cpus", quoted(std::to_string(spec_.cpus)) + " is not a number of CPUs; expected 1 to " +
                      std::to_string(kCpusMax));
    if (spec_.memory && spec_.memory->value <= 0)
      add("memory", quoted(format_size(*spec_.memory)) +
                        " is not a size to ask for; expected more than 0 bytes");
  }

  void span(const char* field, const std::optional<Duration>& value) {
    if (!value) return;
    if (value->us <= 0)
      add(field, quoted(format_duration(*value)) + " is not a time to give; expected more than 0");
    else if (*value > kSpanMax)
      add(field, quoted(format_duration(*value)) + " is longer than 10 years");
  }

  void times() {
    span("time", spec_.time);
    span("kill_after", spec_.kill_after);
    if (spec_.time && spec_.kill_after && *spec_.kill_after < *spec_.time)
      add("kill_after", quoted(format_duration(*spec_.kill_after)) +
                            " is shorter than the estimate time: " + format_duration(*spec_.time) +
                            "; the job would be stopped before it can be done");
    if (spec_.deadline && !deadline_is_well_formed(*spec_.deadline))
      add("deadline", quoted(*spec_.deadline) +
                          " is not a time; expected a time of day such as \"07:00\" or an ISO 8601 "
                          "time such as 2026-01-31T07:00:00Z");
  }

  // "HH:MM" or "YYYY-MM-DDTHH:MM[:SS](Z|+HH:MM|-HH:MM)".
  static bool deadline_is_well_formed(std::string_view text) {
    const auto matches = [](std::string_view value, std::string_view form) {
      if (value.size() != form.size()) return false;
      for (std::size_t i = 0; i < form.size(); ++i)
        if (form[i] == '0' ? !is_digit(value[i]) : value[i] != form[i]) return false;
      return true;
    };
    const auto number = [](std::string_view value) {
      return (value[0] - '0') * 10 + (value[1] - '0');
    };
    const auto clock = [&](std::string_view value) {
      return matches(value, "00:00") && number(value) < 24 && number(value.substr(3)) < 60;
    };
    if (text.size() == 5) return clock(text);
    if (text.size() < 17 || !matches(text.substr(0, 11), "0000-00-00T") ||
        !clock(text.substr(11, 5)))
      return false;
    const int month = number(text.substr(5));
    const int day = number(text.substr(8));
    if (month < 1 || month > 12 || day < 1 || day > 31) return false;
    std::string_view rest = text.substr(16);
    if (rest.front() == ':') {
      if (rest.size() < 4 || !matches(rest.substr(0, 3), ":00") || number(rest.substr(1)) > 59)
        return false;
      rest.remove_prefix(3);
    }
    return rest == "Z" || ((rest.front() == '+' || rest.front() == '-') && clock(rest.substr(1)));
  }

  void service_level() {
    if (spec_.slo) {
      span("slo.ttft_p95", spec_.slo->ttft_p95);
      span("slo.tpot_p95", spec_.slo->tpot_p95);
      span("slo.latency_p95", spec_.slo->latency_p95);
      if (!spec_.slo->ttft_p95 && !spec_.slo->tpot_p95 && !spec_.slo->latency_p95)
        add("slo", "is empty; expected ttft_p95, tpot_p95 or latency_p95");
    }
    if (spec_.min_speed &&
        !(std::isfinite(*spec_.min_speed) && *spec_.min_speed > 0 && *spec_.min_speed <= 100))
      add("min_speed", quoted(fmt::format("{}", *spec_.min_speed)) +
                           " is out of range; expected a number above 0, at most 100: the speed as "
                           "a multiple of the reference "
                           "type's");
  }

  void checkpoint_and_retry() {
    if (spec_.checkpoint) {
      constexpr std::array<std::string_view, 9> allowed = {"USR1", "USR2", "TERM", "INT",  "HUP",
                                                           "QUIT", "ALRM", "CONT", "WINCH"};
      const std::string& name = spec_.checkpoint->signal;
      if (std::find(allowed.begin(), allowed.end(), name) == allowed.end())
        add("checkpoint.signal", quoted(name) +
                                     " is not a signal for checkpoints; expected USR1, USR2, TERM, "
                                     "INT, HUP, QUIT, ALRM, CONT or WINCH");
      span("checkpoint.grace", spec_.checkpoint->grace);
    }
    if (spec_.retry.max < 0 || spec_.retry.max > kRetriesMax)
      add("retry.max", quoted(std::to_string(spec_.retry.max)) +
                           " is not a number of retries; expected 0 to " +
                           std::to_string(kRetriesMax));
    std::set<RetryCause> seen;
    for (const RetryCause cause : spec_.retry.on)
      if (!seen.insert(cause).second) add("retry.on", quoted(to_string(cause)) + " is named twice");
    if (spec_.retry.on.empty() && spec_.retry.max > 0)
      add("retry.on",
          "is missing: retry.max without it would never retry; expected a list of "
          "node-lost, preempted, oom, failed");
    if (!spec_.retry.on.empty() && spec_.retry.max == 0)
      add("retry.max",
          "is missing or 0: retry.on without it would never retry; expected 1 or more");
  }

  // Values are never part of a message: they may be secret.
  void environment() {
    std::size_t bytes = 0;
    std::set<std::string_view> seen;
    for (const EnvironmentVariable& variable : spec_.env) {
      const std::string shown = shown_variable_name(variable.name);
      bytes += variable.name.size() + variable.value.size() + 2;
      if (!is_identifier(variable.name))
        add("env", quoted(shown) +
                       " is not a variable name; expected letters, digits and _, no digit first");
      else if (!seen.insert(variable.name).second)
        add("env." + shown, "is given twice");
      if (has_nul(variable.value))
        add("env." + shown, "the value contains a NUL byte; no program can be given that");
      if (variable.name.size() + variable.value.size() + 1 > kArgumentBytesMax)
        add("env." + shown, "is longer than the " + std::to_string(kArgumentBytesMax) +
                                " bytes that the kernel passes");
    }
    if (bytes > limits_.environment_bytes_max)
      add("env", "the environment has " + std::to_string(bytes) + " bytes; at most " +
                     std::to_string(limits_.environment_bytes_max) +
                     " are accepted (policy limits.environment_bytes_max)");
  }

  void many() {
    if (spec_.replicas < 1 || spec_.replicas > limits_.replicas_max)
      add("replicas", quoted(std::to_string(spec_.replicas)) +
                          " is not a number of replicas; expected 1 to " +
                          std::to_string(limits_.replicas_max) + " (policy limits.replicas_max)");
    if (spec_.replicas > 1 && spec_.tier != Tier::serving)
      add("replicas", "a service has replicas; they need tier: serving");
    if (spec_.replicas > 1 && !spec_.array.empty())
      add("array", "contradicts replicas: a job is an array or a service; keep one of them");
    for (const auto& [parameter, values] : spec_.array) {
      if (!is_identifier(parameter))
        add("array",
            quoted(parameter) +
                " is not a parameter name; expected letters, digits and _, no digit first");
      if (values.empty()) add("array." + parameter, "has no values; expected at least one");
      for (const std::string& value : values)
        if (has_nul(value)) add("array." + parameter, "a value contains a NUL byte");
    }
    const std::int64_t tasks = job_count(spec_);
    if (!spec_.array.empty() && tasks > static_cast<std::int64_t>(limits_.array_tasks_max))
      add("array", "has " + std::to_string(tasks) + " tasks; at most " +
                       std::to_string(limits_.array_tasks_max) +
                       " are accepted in one submission (policy limits.array_tasks_max)");
  }

  const JobSpec& spec_;
  const Limits& limits_;
  std::vector<SpecProblem> found_;
};

std::string_view next_word(std::string_view& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) {
    text = {};
    return {};
  }
  text.remove_prefix(begin);
  const std::size_t end = std::min(text.find_first_of(" \t\r\n"), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

bool is_assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  return equals != std::string_view::npos && is_identifier(word.substr(0, equals));
}

// The file name in `word` as far as it can be a workload's name.
std::string as_name(std::string_view word) {
  const std::size_t slash = word.find_last_of('/');
  if (slash != std::string_view::npos) word.remove_prefix(slash + 1);
  std::string name;
  for (const char c : word)
    if (is_letter(c) || is_digit(c) || c == '-' || c == '_' || c == '.' || c == '+') name += c;
  while (!name.empty() && (name.front() == '-' || name.front() == '.')) name.erase(0, 1);
  return name.substr(0, kNameBytesMax);
}

}  // namespace

std::vector<SpecProblem> spec_problems(const JobSpec& spec, const Limits& limits) {
  return Problems(spec, limits).take();
}

Result<void> validate(const JobSpec& spec, const Limits& limits) {
  std::string lines;
  for (const SpecProblem& problem : spec_problems(spec, limits)) {
    if (!lines.empty()) lines += '\n';
    lines += problem.field + ": " + problem.sentence;
  }
  if (!lines.empty()) return fail(ErrorKind::invalid, lines);
  return {};
}

std::vector<std::string> spec_warnings(const JobSpec& spec) {
  std::vector<std::string> sentences;
  const auto note = [&](const char* field) {
    sentences.push_back(std::string(field) +
                        ": recorded; this version of takt does not use it for placement yet");
  };
  if (spec.slo) note("slo");
  if (spec.min_speed) note("min_speed");
  if (spec.deadline) note("deadline");
  if (spec.checkpoint)
    sentences.push_back(
        "checkpoint: recorded; this version of takt does not preempt or move jobs yet");
  return sentences;
}

std::string default_name(const std::vector<std::string>& argv, std::string_view command_text) {
  const bool shell_text = argv.size() == 3 && argv[0] == "/bin/sh" && argv[1] == "-c";
  std::string name;
  if (shell_text || argv.empty()) {
    std::string_view text = argv.empty() ? command_text : std::string_view(argv[2]);
    std::string_view word = next_word(text);
    while (is_assignment(word) || word == "exec" || word == "env" || word == "nohup")
      word = next_word(text);
    name = as_name(word);
  } else {
    name = as_name(argv.front());
  }
  return name.empty() ? "job" : name;
}

std::int64_t job_count(const JobSpec& spec) {
  if (spec.array.empty()) return std::max(spec.replicas, 1);
  std::int64_t count = 1;
  for (const auto& [parameter, values] : spec.array) {
    const auto length = static_cast<std::int64_t>(values.size());
    if (length == 0) return 0;
    if (count > std::numeric_limits<std::int64_t>::max() / length)
      return std::numeric_limits<std::int64_t>::max();
    count *= length;
  }
  return count;
}

Result<std::vector<std::string>> expand_range(std::string_view text, std::size_t values_max) {
  const auto take = [](std::string_view& from, std::int64_t& to) {
    const auto [end, code] = std::from_chars(from.data(), from.data() + from.size(), to);
    if (code != std::errc() || from.empty() || !is_digit(from.front())) return false;
    from.remove_prefix(static_cast<std::size_t>(end - from.data()));
    return true;
  };
  std::string_view rest = text;
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t step = 1;
  const std::vector<std::string> as_it_is = {std::string(text)};
  if (!take(rest, first) || rest.empty() || rest.front() != '-') return as_it_is;
  rest.remove_prefix(1);
  if (!take(rest, last)) return as_it_is;
  if (!rest.empty()) {
    if (rest.front() != ':') return as_it_is;
    rest.remove_prefix(1);
    if (!take(rest, step) || !rest.empty()) return as_it_is;
  }
  if (step == 0) return fail(ErrorKind::invalid, quoted(text) + " has a step of 0");
  if (last < first)
    return fail(ErrorKind::invalid,
                quoted(text) + " runs backwards; expected the smaller number first");
  if ((last - first) / step >= static_cast<std::int64_t>(values_max))
    return fail(ErrorKind::invalid,
                quoted(text) + " has more than " + std::to_string(values_max) + " values");
  std::vector<std::string> values;
  for (std::int64_t value = first;; value += step) {
    values.push_back(std::to_string(value));
    if (last - value < step) break;
  }
  return values;
}

}  // namespace takt
