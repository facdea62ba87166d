#include "load/options.h"

#include <functional>
#include <map>

#include "fleet/quantity.h"

namespace takt::emulator {

const char* const kLoadHelp =
    "usage: takt-load [options]\n"
    "\n"
    "Stands in for a GPU program on an emulated fleet (TAKT_EMULATED_FLEET): takes memory, keeps "
    "the GPU\n"
    "busy for a while, ends. Runs on the first GPU, or on all that CUDA_VISIBLE_DEVICES names. "
    "Where the\n"
    "memory is not there it prints CUDA's out of memory and ends with 1.\n"
    "\n"
    "  --duration TIME      how long (default 1s); 0: until it is ended\n"
    "  --memory SIZE        memory held on each GPU (default 256MiB)\n"
    "  --sm SHARE           share of multiprocessors at work, 0 to 1; likewise --tensor, --dram "
    "(bandwidth)\n"
    "  --busy SHARE         share of time with a kernel running (default: the largest of the "
    "three)\n"
    "  --pcie-rx RATE       host to GPU, such as 2GiB/s; likewise --pcie-tx\n"
    "  --phase DURATION:MEMORY[:SM[:TENSOR[:DRAM[:PCIE_RX[:PCIE_TX]]]]]\n"
    "                       instead of the options above; may be repeated\n"
    "  --pattern NAME       serving, training, batch or notebook, over --duration with --memory;\n"
    "                       --sm is its strength (default 0.7), --seed N its chance (default 1)\n"
    "  --grow RATE          takes ever more memory, such as 1GiB/s\n"
    "  --ignore-term        goes on after SIGTERM\n"
    "  --exit-code N        ends with N (default 0)\n"
    "  --crash-after TIME   ends by SIGSEGV then\n"
    "  --quiet              prints errors only\n"
    "\n"
    "examples: takt-load --memory 12GiB --sm 0.6 --tensor 0.3 --dram 0.4 --duration 3s\n"
    "          takt-load --pattern training --memory 60GiB --duration 20s --seed 7\n"
    "          takt-load --phase 2s:4GiB:0.1 --phase 5s:20GiB:0.9:0.5:0.6\n";

namespace {

struct Raw {
  Phase one;
  double duration = 1;
  std::optional<double> sm;
  std::optional<Pattern> pattern;
  std::uint64_t seed = 1;
  std::vector<Phase> phases;
};

using Setter = std::function<std::string(const std::string&)>;  // what was expected, or nothing

Setter share(double& target) {
  return [&target](const std::string& text) -> std::string {
    auto value = parse_ratio(text);
    if (!value) return "a share such as 0.6 or 60%";
    target = *value;
    return {};
  };
}

Setter rate(double& target) {
  return [&target](const std::string& text) -> std::string {
    auto value = parse_rate(text);
    if (!value) return "a rate such as 2GiB/s";
    target = *value;
    return {};
  };
}

Setter time(double& target) {
  return [&target](const std::string& text) -> std::string {
    auto value = parse_seconds(text);
    if (!value) return "a time such as 3s or 500ms";
    target = *value;
    return {};
  };
}

Setter whole(std::function<void(std::uint64_t)> set, std::uint64_t most) {
  return [set = std::move(set), most](const std::string& text) -> std::string {
    if (text.empty() || text.size() > 18 ||
        text.find_first_not_of("0123456789") != std::string::npos || std::stoull(text) > most)
      return "a whole number from 0 to " + std::to_string(most);
    set(std::stoull(text));
    return {};
  };
}

std::string set_pattern(Raw& raw, const std::string& text) {
  if (text == "serving")
    raw.pattern = Pattern::serving;
  else if (text == "training")
    raw.pattern = Pattern::training;
  else if (text == "batch")
    raw.pattern = Pattern::batch;
  else if (text == "notebook")
    raw.pattern = Pattern::notebook;
  else
    return "serving, training, batch or notebook";
  return {};
}

std::map<std::string, Setter> setters(Raw& raw, LoadOptions& out) {
  std::map<std::string, Setter> known;
  known["--duration"] = time(raw.duration);
  known["--memory"] = [&raw](const std::string& text) -> std::string {
    auto bytes = parse_bytes(text);
    if (!bytes) return "a size such as 12GiB";
    raw.one.memory = *bytes;
    return {};
  };
  known["--sm"] = [&raw](const std::string& text) -> std::string {
    raw.sm = parse_ratio(text);
    return raw.sm ? std::string() : "a share such as 0.6 or 60%";
  };
  known["--tensor"] = share(raw.one.tensor);
  known["--dram"] = share(raw.one.dram);
  known["--busy"] = share(raw.one.busy);
  known["--pcie-rx"] = rate(raw.one.pcie_rx);
  known["--pcie-tx"] = rate(raw.one.pcie_tx);
  known["--grow"] = rate(out.grow);
  known["--crash-after"] = time(out.crash_after);
  known["--exit-code"] =
      whole([&out](std::uint64_t n) { out.exit_code = static_cast<int>(n); }, 255);
  known["--seed"] = whole([&raw](std::uint64_t n) { raw.seed = n; }, 999999999999999999ULL);
  known["--pattern"] = [&raw](const std::string& text) { return set_pattern(raw, text); };
  return known;
}

}  // namespace

Result<LoadOptions> parse_load_options(const std::vector<std::string>& words) {
  LoadOptions out;
  Raw raw;
  raw.one.memory = 256ULL * 1024 * 1024;
  auto known = setters(raw, out);
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i];
    if (word == "--help" || word == "-h")
      out.help = true;
    else if (word == "--ignore-term")
      out.ignore_term = true;
    else if (word == "--quiet")
      out.quiet = true;
    else {
      std::optional<std::string> value;
      if (auto equals = word.find('='); equals != std::string::npos) {
        value = word.substr(equals + 1);
        word.erase(equals);
      }
      if (word != "--phase" && known.count(word) == 0)
        return fail(ErrorKind::invalid, word + " is not known; see takt-load --help");
      if (!value && i + 1 == words.size()) return fail(ErrorKind::invalid, word + " needs a value");
      if (!value) value = words[++i];
      if (word == "--phase") {
        auto phase = parse_phase(*value);
        if (!phase) return fail_at("--phase", phase.error());
        raw.phases.push_back(*phase);
      } else if (std::string expected = known[word](*value); !expected.empty()) {
        return fail(ErrorKind::invalid, word + " '" + *value + "': expected " + expected);
      }
    }
  }
  if (!raw.phases.empty() && raw.pattern)
    return fail(ErrorKind::invalid, "--phase and --pattern exclude each other");
  raw.one.sm = raw.sm.value_or(0);
  out.repeat = raw.duration <= 0 && raw.phases.empty();
  constexpr double kEndless = 60;  // seconds of a program without an end, again and again
  double length = out.repeat ? kEndless : raw.duration;
  raw.one.seconds = length;
  if (raw.pattern)
    out.phases = phases_of(*raw.pattern, length, raw.one.memory, raw.sm.value_or(0.7), raw.seed);
  else
    out.phases = raw.phases.empty() ? std::vector<Phase>{raw.one} : raw.phases;
  return out;
}

}  // namespace takt::emulator
