#include "edge/codec/job_script.h"

#include <algorithm>
#include <set>

#include "edge/codec/job_fields.h"
#include "edge/codec/sbatch_options.h"
#include "edge/codec/utf8.h"

namespace takt::codec {
namespace {

constexpr std::string_view kSbatch = "#SBATCH";
constexpr std::string_view kTakt = "#TAKT";

bool is_header(std::string_view line, std::string_view mark) {
  return line.substr(0, mark.size()) == mark &&
         (line.size() == mark.size() || line[mark.size()] == ' ' || line[mark.size()] == '\t');
}

std::string_view without_blanks_in_front(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text;
}

// The headers of a script. They end at the first command, as in sbatch.
struct Headers {
  std::string first_line;  // "#!..." or empty
  std::vector<SbatchOption> options;
  std::string yaml;  // the #TAKT lines, each on its own line number
  bool has_yaml = false;
};

Headers read_headers(std::string_view text, std::vector<std::string>& warnings,
                     YamlFaults& faults) {
  Headers headers;
  bool in_headers = true;
  int number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (number == 1 && line.rfind("#!", 0) == 0) headers.first_line = line;
    const bool sbatch = is_header(line, kSbatch);
    const bool takt = is_header(line, kTakt);
    if (in_headers && sbatch)
      for (SbatchOption& option : split_sbatch_line(line.substr(kSbatch.size()), number, faults))
        headers.options.push_back(std::move(option));
    if (in_headers && takt) {
      line.remove_prefix(std::min(kTakt.size() + 1, line.size()));
      headers.yaml += line;
      headers.has_yaml = true;
    }
    headers.yaml += '\n';
    if (!in_headers && (sbatch || takt))
      warnings.push_back("line " + std::to_string(number) + ": " +
                         std::string(sbatch ? kSbatch : kTakt) +
                         " stands behind the first command and has no effect");
    const std::string_view content = without_blanks_in_front(line);
    if (!sbatch && !takt && !content.empty() && content.front() != '#') in_headers = false;
  }
  return headers;
}

// The words that start the interpreter, with "-c" at their end. Empty: not one that takt knows.
std::vector<std::string> interpreter(const std::string& first_line) {
  if (first_line.empty()) return {"/bin/sh", "-c"};
  std::vector<std::string> words;
  std::string_view rest = std::string_view(first_line).substr(2);
  for (;;) {
    rest = without_blanks_in_front(rest);
    if (rest.empty()) break;
    const std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
    words.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  if (words.empty()) return {};
  const auto base = [](const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
  };
  const std::size_t program = base(words[0]) == "env" && words.size() > 1 ? 1 : 0;
  const std::string name = base(words[program]);
  const bool shell =
      name == "sh" || name == "bash" || name == "dash" || name == "zsh" || name == "ksh";
  if (!shell && name.rfind("python", 0) != 0) return {};
  words.emplace_back("-c");
  return words;
}

std::string base_name(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? file : file.substr(slash + 1);
}

// The file's name as far as it can be a workload's.
std::string name_from_file(const std::string& file) {
  std::string name;
  for (const char c : base_name(file)) {
    const bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_' || c == '.' || c == '+';
    if (fits && !(name.empty() && (c == '-' || c == '.'))) name += c;
  }
  for (const std::string_view ending : {".sh", ".bash", ".py", ".sbatch", ".slurm", ".job"})
    if (name.size() > ending.size() &&
        std::string_view(name).substr(name.size() - ending.size()) == ending) {
      name.resize(name.size() - ending.size());
      break;
    }
  return name.empty() ? "job" : name.substr(0, 128);
}

// Variables that Slurm sets and the script reads, and takt does not set.
std::string unset_slurm_variables(std::string_view text) {
  constexpr std::string_view mark = "SLURM_";
  std::set<std::string> names;
  for (std::size_t at = text.find(mark); at != std::string_view::npos; at = text.find(mark, at)) {
    std::size_t end = at;
    while (end < text.size() && ((text[end] >= 'A' && text[end] <= 'Z') || text[end] == '_' ||
                                 (text[end] >= '0' && text[end] <= '9')))
      ++end;
    names.emplace(text.substr(at, std::min<std::size_t>(end - at, 60)));
    at = end;
  }
  names.erase("SLURM_ARRAY_TASK_ID");
  std::string listed;
  for (const std::string& name : names) listed += (listed.empty() ? "" : ", ") + name;
  return listed;
}

// A task of an array finds its parameter as TAKT_PARAM_<name>; scripts for Slurm expect another
// name.
void name_task_as_slurm_does(JobSpec& spec) {
  if (spec.array.count("SLURM_ARRAY_TASK_ID") == 0) return;
  const std::vector<std::string> wrapper = {
      "/bin/sh", "-c",
      "SLURM_ARRAY_TASK_ID=\"$TAKT_PARAM_SLURM_ARRAY_TASK_ID\"; export SLURM_ARRAY_TASK_ID; "
      "exec \"$0\" \"$@\""};
  spec.argv.insert(spec.argv.begin(), wrapper.begin(), wrapper.end());
}

}  // namespace

Result<ParsedJob> parse_job_script(std::string_view text, const std::string& file,
                                   const std::vector<std::string>& arguments,
                                   const YamlContext& context) {
  YamlFaults faults(file);
  const std::size_t bytes_max = context.limits.spec_bytes_max;
  if (text.size() > bytes_max) {
    faults.add(1, "",
               "the script has " + std::to_string(text.size()) + " bytes; at most " +
                   std::to_string(bytes_max) + " are read");
    return faults.error();
  }
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  if (text.find('\0') != std::string_view::npos) {
    faults.add(1, "",
               "a NUL byte is in the text; this is not a script but a program: takt run runs it");
    return faults.error();
  }
  if (text.substr(0, std::min(text.find('\n'), text.size())).find('\r') != std::string_view::npos) {
    faults.add(1, "",
               "the lines end as in DOS (CR LF) and no shell reads that; convert the file, e.g. "
               "with dos2unix");
    return faults.error();
  }
  std::vector<std::string> warnings;
  JobSpec spec;
  spec.workdir = context.workdir;
  const Headers headers = read_headers(text, warnings, faults);

  spec.argv = interpreter(headers.first_line);
  if (spec.argv.empty())
    faults.add(1, "",
               "'" + printable(headers.first_line) +
                   "' is not an interpreter that takt can give a script to; expected a shell "
                   "or Python. For others write a job file with run: ./" +
                   base_name(file));
  spec.argv.emplace_back(text);
  // A shell takes the word behind the text as $0; Python has sys.argv[0] = "-c" whatever follows.
  if (spec.argv.size() >= 3 && spec.argv[0].find("python") == std::string::npos &&
      (spec.argv.size() < 4 || spec.argv[1].find("python") == std::string::npos))
    spec.argv.push_back(file);
  spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
  spec.command_text = file;
  for (const std::string& argument : arguments) spec.command_text += " " + argument;

  apply_sbatch_options(headers.options, context.limits.array_tasks_max, spec, warnings, faults);
  YamlFields fields(faults);
  if (headers.has_yaml) {
    YamlValue root;
    if (!parse_yaml(headers.yaml, bytes_max, root, faults)) return faults.error();
    if (root.kind != YamlValue::Kind::null)
      read_job_fields(root, RunField::refused, context, fields, spec);
  }
  if (spec.name.empty()) spec.name = name_from_file(file);
  name_task_as_slurm_does(spec);
  const std::string unset = unset_slurm_variables(text);
  if (!unset.empty())
    warnings.push_back("the script uses " + unset +
                       ", which takt does not set (it sets TAKT_JOB_ID, TAKT_GPUS and others)");
  return finish_job(std::move(spec), std::move(warnings), fields, context);
}

bool looks_like_script(std::string_view text) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  if (text.rfind("#!", 0) == 0) return true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (is_header(line, kSbatch) || is_header(line, kTakt)) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

}  // namespace takt::codec
