#include "app/cli/job_flags.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <set>

#include "core/model/quantity_text.h"
#include "core/model/secret_names.h"

extern char** environ;

namespace takt::cli {
namespace {

class Reader {
 public:
  template <class T>
  void read(const char* flag, const std::string& text, std::optional<T>& field,
            Result<T> (*parse)(std::string_view)) {
    if (text.empty()) return;
    auto value = parse(text);
    if (value)
      field = *value;
    else
      problem(flag, value.error().message);
  }
  template <class T>
  void word(const char* flag, const std::string& text, std::optional<T>& field,
            std::optional<T> (*from)(const std::string&), const char* expected) {
    if (text.empty()) return;
    field = from(text);
    if (!field) problem(flag, fmt::format("'{}' is not one of {}", text, expected));
  }
  void problem(const char* flag, const std::string& sentence) {
    problems_ += fmt::format("{}{}: {}", problems_.empty() ? "" : "\n", flag, sentence);
  }
  Result<void> result() const {
    if (problems_.empty()) return {};
    return fail(ErrorKind::invalid, problems_);
  }

 private:
  std::string problems_;
};

void read_env(const JobFlags& flags, JobSpec& spec, Reader& reader) {
  for (const std::string& pair : flags.env) {
    const std::size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string::npos) {
      reader.problem("--env", fmt::format("'{}' is not NAME=VALUE", shown_variable_name(pair)));
      continue;
    }
    const std::string name = pair.substr(0, equals);
    std::erase_if(spec.env, [&](const EnvironmentVariable& e) { return e.name == name; });
    spec.env.push_back({name, pair.substr(equals + 1), is_secret_name(name)});
  }
}

}  // namespace

Result<void> apply_flags(const JobFlags& flags, JobSpec& spec) {
  Reader reader;
  if (flags.gpus) {
    spec.gpus.count = flags.gpus;
    if (flags.memory.empty()) spec.gpus.memory.reset();
    spec.gpus.from_profile = false;
  }
  reader.read("--memory", flags.memory, spec.gpus.memory, parse_size);
  if (!flags.memory.empty() && !flags.gpus) spec.gpus.count.reset();
  reader.read("--compute", flags.compute, spec.gpus.compute_percent, parse_percent);
  if (!flags.types.empty()) spec.gpus.types = flags.types;
  reader.word("--tier", flags.tier, spec.tier, tier_from, "serving, training, batch, experimental");
  reader.word("--isolation", flags.isolation, spec.isolation, isolation_from,
              "strict, limited, watched");
  if (!flags.name.empty()) spec.name = flags.name;
  if (flags.cpus) spec.cpus = *flags.cpus;
  reader.read("--host-memory", flags.host_memory, spec.memory, parse_size);
  reader.read("--time", flags.time, spec.time, parse_duration);
  reader.read("--kill-after", flags.kill_after, spec.kill_after, parse_duration);
  read_env(flags, spec, reader);
  spec.wait_for_capacity = spec.wait_for_capacity || flags.wait_for_capacity;
  return reader.result();
}

void inherit_environment(JobSpec& spec) {
  std::set<std::string> there;
  for (const EnvironmentVariable& e : spec.env) there.insert(e.name);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string pair = *entry;
    const std::size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string::npos) continue;
    const std::string name = pair.substr(0, equals);
    // Shell functions and the like cannot be passed on by a launcher.
    if (name.find_first_of("%() ") != std::string::npos || !there.insert(name).second) continue;
    spec.env.push_back({name, pair.substr(equals + 1), is_secret_name(name)});
  }
}

Result<std::string> current_folder() {
  char path[PATH_MAX];
  // "(unreachable)/..." is how some C libraries name a folder outside of our root.
  if (::getcwd(path, sizeof path) != nullptr && path[0] == '/') return std::string(path);
  return fail(
      ErrorKind::invalid,
      fmt::format("the current folder is gone or cannot be named ({}), and a job runs where "
                  "it was submitted: change to a folder that exists",
                  std::strerror(errno)));
}

}  // namespace takt::cli
