#include "edge/codec/sbatch_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>

#include "core/model/job_spec_rules.h"
#include "edge/codec/job_fields.h"
#include "edge/codec/utf8.h"

namespace takt::codec {
namespace {

// Letters of sbatch and what they stand for.
std::string long_name(char letter) {
  switch (letter) {
    case 'J': return "job-name";
    case 'G': return "gpus";
    case 'c': return "cpus-per-task";
    case 't': return "time";
    case 'a': return "array";
    case 'N': return "nodes";
    case 'n': return "ntasks";
    case 'd': return "dependency";
    case 'D': return "chdir";
    case 'o': return "output";
    case 'e': return "error";
    case 'p': return "partition";
    case 'A': return "account";
    case 'q': return "qos";
    case 'b': return "begin";
    case 'H': return "hold";
    case 'w': return "nodelist";
    case 'x': return "exclude";
    case 'C': return "constraint";
    case 'M': return "clusters";
    case 'L': return "licenses";
    case 's': return "oversubscribe";
    default: return std::string(1, letter);
  }
}

// Options that stand alone; all others take a value, after '=' or as the next word.
bool is_flag(const std::string& name) {
  constexpr std::array<std::string_view, 14> flags = {
      "exclusive",  "requeue",    "no-requeue", "hold",         "oversubscribe",
      "overcommit", "contiguous", "spread-job", "verbose",      "quiet",
      "parsable",   "wait",       "reboot",     "use-min-nodes"};
  return std::find(flags.begin(), flags.end(), name) != flags.end();
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '"' || c == '\'') {
      quote = c;
      inside = true;
    } else if (c == ' ' || c == '\t') {
      if (inside) words.push_back(std::move(word));
      word.clear();
      inside = false;
    } else if (c == '#' && !inside) {
      break;  // a remark at the end of the line
    } else {
      word += c;
      inside = true;
    }
  }
  if (inside) words.push_back(std::move(word));
  return words;
}

Result<std::int64_t> whole(std::string_view text) {
  std::int64_t number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, code] = std::from_chars(text.data(), last, number);
  if (text.empty() || code != std::errc() || end != last || number < 0)
    return fail(ErrorKind::invalid, "'" + printable(text) + "' is not a whole number");
  return number;
}

class Applier {
 public:
  Applier(std::size_t tasks_max, JobSpec& spec, std::vector<std::string>& warnings,
          YamlFaults& faults)
      : tasks_max_(tasks_max), spec_(spec), warnings_(warnings), faults_(faults) {}

  void apply(const SbatchOption& o) {
    if (!o.has_value && !is_flag(o.name)) return fault(o, "has no value");
    if (o.name == "job-name") {
      spec_.name = o.value;
    } else if (o.name == "gpus" || o.name == "gpus-per-node" || o.name == "gpus-per-task") {
      gpus(o, o.value);
    } else if (o.name == "gres") {
      gres(o);
    } else if (o.name == "cpus-per-task") {
      count(o, "a number of CPUs", spec_.cpus);
    } else if (o.name == "mem") {
      memory(o);
    } else if (o.name == "time") {
      time(o);
    } else if (o.name == "array") {
      array(o);
    } else if (o.name == "chdir") {
      spec_.workdir = resolve_workdir(spec_.workdir, o.value);
    } else if (o.name == "nodes" || o.name == "ntasks" || o.name == "ntasks-per-node") {
      one_only(o);
    } else if (o.name == "output" || o.name == "error") {
      warn(o, "is not followed: takt keeps the output itself; see takt logs");
    } else {
      refuse_or_note(o);
    }
  }

 private:
  static std::string written(const SbatchOption& o) {
    return "--" + printable(o.name) + (o.has_value ? "=" + printable(o.value) : "");
  }
  void fault(const SbatchOption& o, const std::string& sentence) {
    faults_.add(o.line, "#SBATCH --" + printable(o.name), sentence);
  }
  void warn(const SbatchOption& o, const std::string& sentence) {
    warnings_.push_back("line " + std::to_string(o.line) + ": #SBATCH " + written(o) + ": " +
                        sentence);
  }

  // Without following these the program would run when or with what it must not.
  void refuse_or_note(const SbatchOption& o) {
    static constexpr std::array<std::pair<std::string_view, const char*>, 6> refused = {
        {{"dependency", "wait for another job"},
         {"begin", "start a job at a later time"},
         {"hold", "submit a job on hold"},
         {"het-group", "run a heterogeneous job"},
         {"wrap", "take a command from a header"},
         {"mem-per-gpu", "size memory by GPU (use --mem)"}}};
    for (const auto& [name, what] : refused)
      if (o.name == name)
        return fault(o, std::string("this version of takt cannot ") + what +
                            " yet; remove the line or do it another way");
    if (o.name == "mem-per-cpu")
      return fault(o, "this version of takt cannot size memory by CPU; use --mem for all of it");
    warn(o, "is not known to takt and has no effect");
  }

  void count(const SbatchOption& o, const char* what, int& to) {
    const Result<std::int64_t> n = whole(o.value);
    if (!n || *n < 1 || *n > 65'536)
      return fault(o, "'" + printable(o.value) + "' is not " + what + "; expected 1 to 65536");
    to = static_cast<int>(*n);
  }

  // "2" or "a100:2".
  void gpus(const SbatchOption& o, std::string_view text) {
    const std::size_t colon = text.rfind(':');
    std::string type;
    if (colon != std::string_view::npos) {
      type = text.substr(0, colon);
      text.remove_prefix(colon + 1);
    }
    const Result<std::int64_t> n = whole(text);
    if (!n || *n > 65'536)
      return fault(
          o, "'" + printable(o.value) + "' is not a number of GPUs; expected e.g. 2 or a100:2");
    spec_.gpus.count = static_cast<int>(*n);
    for (char& c : type)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    spec_.gpus.types.clear();
    if (!type.empty()) spec_.gpus.types.push_back(type);
  }

  // "gpu", "gpu:2", "gpu:a100:2"; other resources are not takt's.
  void gres(const SbatchOption& o) {
    std::string_view rest = o.value;
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      std::string_view item = rest.substr(0, comma);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      if (item == "gpu") {
        gpus(o, "1");
      } else if (item.rfind("gpu:", 0) == 0) {
        item.remove_prefix(4);
        const bool only_type = item.find(':') == std::string_view::npos && !item.empty() &&
                               (item.front() < '0' || item.front() > '9');
        gpus(o, only_type ? std::string(item) + ":1" : std::string(item));
      } else if (item == "none") {
        spec_.gpus = {};
      } else {
        fault(o, "'" + printable(item) +
                     "' is not a resource that takt gives; expected gpu, gpu:2 "
                     "or gpu:a100:2");
      }
    }
  }

  void memory(const SbatchOption& o) {
    const Result<Bytes> size = parse_slurm_memory(o.value);
    if (!size) return fault(o, size.error().message);
    if (size->value == 0)
      warn(o,
           "0 means all of a node's memory in Slurm; takt gives no such promise and sets no limit");
    spec_.memory = size->value == 0 ? std::nullopt : std::optional<Bytes>(*size);
  }

  void time(const SbatchOption& o) {
    if (o.value == "0" || o.value == "UNLIMITED" || o.value == "INFINITE") {
      spec_.time.reset();
      return;
    }
    const Result<Duration> span = parse_slurm_time(o.value);
    if (!span) return fault(o, span.error().message);
    spec_.time = *span;
    warn(o, "is used as an estimate and ends nothing; for a hard stop add #TAKT kill_after");
  }

  // "0-4", "0-10:2", "1,3,5-7", "0-99%4".
  void array(const SbatchOption& o) {
    std::string_view rest = o.value;
    const std::size_t percent = rest.find('%');
    if (percent != std::string_view::npos) {
      warn(o, "the number of tasks at once is not limited by takt");
      rest = rest.substr(0, percent);
    }
    std::vector<std::string> values;
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      const std::string_view item = rest.substr(0, comma);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      const auto range = expand_range(item, tasks_max_);
      if (!range) return fault(o, range.error().message);
      if (!whole(range->front()))
        return fault(
            o, "'" + printable(item) + "' is not a number or a range; expected e.g. 0-4 or 0-10:2");
      values.insert(values.end(), range->begin(), range->end());
    }
    if (values.empty()) return fault(o, "names no task; expected e.g. 0-4");
    spec_.array = {{"SLURM_ARRAY_TASK_ID", std::move(values)}};
  }

  void one_only(const SbatchOption& o) {
    const Result<std::int64_t> n = whole(o.value);
    if (n && *n == 1) return;
    fault(o, "'" + printable(o.value) +
                 "': this version of takt runs a script once, on one node; expected 1. Start the "
                 "processes in the script (torchrun, mpirun)");
  }

  std::size_t tasks_max_;
  JobSpec& spec_;
  std::vector<std::string>& warnings_;
  YamlFaults& faults_;
};

}  // namespace

std::vector<SbatchOption> split_sbatch_line(std::string_view rest, int line, YamlFaults& faults) {
  std::vector<SbatchOption> options;
  const std::vector<std::string> words = words_of(rest);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    SbatchOption option;
    option.line = line;
    if (word.size() > 2 && word.rfind("--", 0) == 0) {
      const std::size_t equals = std::min(word.find('='), word.size());
      option.name = word.substr(2, equals - 2);
      option.has_value = equals < word.size();
      if (option.has_value) option.value = word.substr(equals + 1);
    } else if (word.size() >= 2 && word.front() == '-' && word[1] != '-') {
      option.name = long_name(word[1]);
      option.has_value = word.size() > 2;
      option.value = word.substr(2);
    } else {
      faults.add(line, "#SBATCH",
                 "'" + printable(word) + "' is not an option; expected --name=value or -x value");
      return options;
    }
    const bool next_is_value =
        i + 1 < words.size() && (words[i + 1].empty() || words[i + 1].front() != '-');
    if (!option.has_value && !is_flag(option.name) && next_is_value) {
      option.value = words[++i];
      option.has_value = true;
    }
    options.push_back(std::move(option));
  }
  return options;
}

void apply_sbatch_options(const std::vector<SbatchOption>& options, std::size_t array_tasks_max,
                          JobSpec& spec, std::vector<std::string>& warnings, YamlFaults& faults) {
  Applier applier(array_tasks_max, spec, warnings, faults);
  for (const SbatchOption& option : options) applier.apply(option);
}

Result<Duration> parse_slurm_time(std::string_view text) {
  const auto bad = [&] {
    return fail(ErrorKind::invalid, "'" + printable(text) +
                                        "' is not a time limit; expected minutes, HH:MM:SS or "
                                        "D-HH:MM:SS");
  };
  std::string_view rest = text;
  std::int64_t days = 0;
  const std::size_t dash = rest.find('-');
  if (dash != std::string_view::npos) {
    const Result<std::int64_t> n = whole(rest.substr(0, dash));
    if (!n || *n > 100'000) return bad();
    days = *n;
    rest.remove_prefix(dash + 1);
  }
  std::vector<std::int64_t> parts;
  for (;;) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    const Result<std::int64_t> n = whole(rest.substr(0, colon));
    if (!n || *n > 100'000'000) return bad();
    parts.push_back(*n);
    if (colon == rest.size()) break;
    rest.remove_prefix(colon + 1);
  }
  if (parts.size() > 3) return bad();
  // What the first number means depends on whether there are days and how many numbers follow.
  std::int64_t h = 0;
  std::int64_t m = 0;
  std::int64_t s = 0;
  if (dash != std::string_view::npos || parts.size() == 3) {
    h = parts[0];
    m = parts.size() > 1 ? parts[1] : 0;
    s = parts.size() > 2 ? parts[2] : 0;
  } else {
    m = parts[0];
    s = parts.size() > 1 ? parts[1] : 0;
  }
  return seconds(((days * 24 + h) * 60 + m) * 60 + s);
}

Result<Bytes> parse_slurm_memory(std::string_view text) {
  std::string_view digits = text;
  if (!digits.empty() && (digits.back() == 'B' || digits.back() == 'b')) digits.remove_suffix(1);
  std::int64_t unit = 1 << 20;
  if (!digits.empty()) {
    const std::size_t known = std::string_view("KMGTkmgt").find(digits.back());
    if (known != std::string_view::npos) {
      unit = std::int64_t{1024} << (10 * (known % 4));
      digits.remove_suffix(1);
    }
  }
  const Result<std::int64_t> n = whole(digits);
  if (!n || *n > std::numeric_limits<std::int64_t>::max() / unit)
    return fail(ErrorKind::invalid, "'" + printable(text) +
                                        "' is not a size; expected a number of MiB, or with K, M, "
                                        "G or T, e.g. 32G");
  return Bytes{*n * unit};
}

}  // namespace takt::codec
