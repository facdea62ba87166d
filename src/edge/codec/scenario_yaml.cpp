#include "edge/codec/scenario_yaml.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <limits>

#include "edge/codec/yaml_value.h"

namespace takt::codec {
namespace {

constexpr std::size_t kFileBytesMax = 64 << 10;

}  // namespace

Result<replay::Scenario> parse_scenario_yaml(std::string_view text, const std::string& file) {
  YamlFaults faults(file);
  YamlValue root;
  if (!parse_yaml(text, kFileBytesMax, root, faults)) return faults.error();
  YamlFields fields(faults);
  replay::Scenario scenario;
  scenario.workloads.clear();
  const auto number = [&](std::int64_t min, std::int64_t max, const char* what, auto& to) {
    return [&fields, min, max, what, &to](const YamlValue& v, const std::string& p) {
      std::int64_t n = 0;
      if (fields.whole(v, p, min, max, what, n)) to = static_cast<std::decay_t<decltype(to)>>(n);
    };
  };
  fields.map(
      root, "",
      {{"seed", number(0, std::numeric_limits<std::int64_t>::max(), "a seed", scenario.seed)},
       {"steps", number(1, 1'000'000, "a number of steps", scenario.steps)},
       {"engine",
        [&](const YamlValue& v, const std::string& p) {
          std::size_t which = 0;
          if (fields.word(v, p, {"local", "leased", "placing"}, "an engine", which))
            scenario.engine = static_cast<replay::EngineKind>(which);
        }},
       {"nodes", number(1, 8, "a number of nodes", scenario.nodes)},
       {"workloads", [&](auto& v, auto& p) { fields.texts(v, p, scenario.workloads); }},
       {"faults", [&](auto& v, auto& p) { fields.texts(v, p, scenario.faults); }}},
      "a scenario; expected fields such as seed: 17");
  if (!faults.any())
    if (const std::string problem = problem_of(scenario); !problem.empty()) {
      const auto field = problem.substr(0, problem.find(':'));
      const auto line = fields.lines.find(field);
      faults.add(line == fields.lines.end() ? 1 : line->second, field,
                 problem.substr(field.size() + 2));
    }
  if (faults.any()) return faults.error();
  return scenario;
}

std::string scenario_to_yaml(const replay::Scenario& s) {
  return fmt::format("seed: {}\nsteps: {}\nengine: {}\nnodes: {}\nworkloads: [{}]\nfaults: [{}]\n",
                     s.seed, s.steps, to_string(s.engine), s.nodes, fmt::join(s.workloads, ", "),
                     fmt::join(s.faults, ", "));
}

}  // namespace takt::codec
