#include "fleet/yaml_fault.h"

#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "fleet/calls.h"
#include "fleet/quantity.h"

namespace takt::emulator {
namespace {

struct Throttle {
  const char* name;
  std::uint64_t bit;
};
constexpr Throttle kThrottles[] = {{"application_clocks", 0x2}, {"sw_power_cap", 0x4},
                                   {"hw_slowdown", 0x8},        {"sync_boost", 0x10},
                                   {"sw_thermal", 0x20},        {"hw_thermal", 0x40},
                                   {"hw_power_brake", 0x80},    {"display_clocks", 0x100}};

bool check_call(const YAML::Node& node, const std::string& field, const std::string& name,
                Problems& problems) {
  if (is_known_call(name)) return true;
  problems.add(
      node, field,
      "names the call '" + name + "'; expected one of NVML such as MemoryInfo or UtilizationRates");
  return false;
}

void read_hang(Fields& f, FleetFault& fault) {
  YAML::Node hang = f.node("hang");
  if (hang.IsScalar() && hang.Scalar() == "all") {
    fault.hang_all = true;
    return;
  }
  if (!hang.IsSequence()) {
    f.problems().add(hang, f.path("hang"),
                     "expected 'all' or a list of calls such as [MemoryInfo]");
    return;
  }
  for (const auto& item : hang) {
    std::string name = item.IsScalar() ? item.Scalar() : "?";
    if (check_call(item, f.path("hang"), name, f.problems()))
      fault.hang.push_back(canonical_call(name));
  }
}

void read_errors(Fields& f, FleetFault& fault) {
  YAML::Node errors = f.node("error");
  if (!errors.IsMap()) {
    f.problems().add(errors, f.path("error"),
                     "is not a mapping; expected 'MemoryInfo: GPU_IS_LOST'");
    return;
  }
  for (const auto& pair : errors) {
    std::string call = pair.first.Scalar();
    std::string word = pair.second.IsScalar() ? pair.second.Scalar() : "?";
    auto code = code_by_name(word);
    if (!code)
      f.problems().add(
          pair.second, f.path("error"),
          "is '" + word + "'; expected an NVML error such as NOT_SUPPORTED or GPU_IS_LOST");
    else if (call == "all")
      fault.errors["*"] = *code;
    else if (check_call(pair.first, f.path("error"), call, f.problems()))
      fault.errors[canonical_call(call)] = *code;
  }
}

void read_xids(Fields& f, FleetFault& fault) {
  auto items = f.list("xid");
  for (std::size_t i = 0; i < items.size(); ++i) {
    Fields x(items[i], fmt::format("{}[{}]", f.path("xid"), i), f.problems(), {"at", "code"});
    auto at = x.value<double>("at", "a time such as 3s",
                              [](const std::string& raw) { return parse_seconds(raw); });
    auto code = x.whole("code", 1, 999);
    if (!code && !x.has("code"))
      f.problems().add(items[i], x.path("code"), "is missing; expected an XID such as 79");
    fault.xids.push_back({at.value_or(0), code.value_or(0)});
  }
  std::sort(fault.xids.begin(), fault.xids.end(),
            [](const FleetXid& a, const FleetXid& b) { return a.at_seconds < b.at_seconds; });
}

bool switched_on(Fields& f, const char* key) {
  return f
      .value<bool>(key, "true or false",
                   [](const std::string& raw) -> std::optional<bool> {
                     if (raw == "true") return true;
                     if (raw == "false") return false;
                     return std::nullopt;
                   })
      .value_or(false);
}

}  // namespace

FleetFault read_fault(const YAML::Node& node, const std::string& where, Problems& problems) {
  Fields f(node, where, problems, {"after", "hang", "lost", "reset_required", "error", "xid"});
  FleetFault fault;
  auto after = f.value<double>("after", "a time such as 2s",
                               [](const std::string& raw) { return parse_seconds(raw); });
  fault.after_seconds = after.value_or(0);
  if (f.has("hang")) read_hang(f, fault);
  if (f.has("error")) read_errors(f, fault);
  read_xids(f, fault);
  fault.lost = switched_on(f, "lost");
  fault.reset_required = switched_on(f, "reset_required");
  return fault;
}

std::optional<std::uint64_t> throttle_bit(const std::string& name) {
  for (const auto& t : kThrottles)
    if (name == t.name) return t.bit;
  return std::nullopt;
}

std::string throttle_names() {
  std::string out;
  for (const auto& t : kThrottles) out += (out.empty() ? "" : ", ") + std::string(t.name);
  return out;
}

std::optional<Topology> topology_of(const std::string& word) {
  if (word == "pix") return Topology::single;
  if (word == "pxb") return Topology::multiple;
  if (word == "phb") return Topology::hostbridge;
  if (word == "node") return Topology::node;
  if (word == "sys") return Topology::system;
  return std::nullopt;
}

std::optional<std::uint64_t> cuda_version_of(const std::string& text) {
  auto dot = text.find('.');
  if (dot == std::string::npos) return std::nullopt;
  auto major = parse_scaled(text.substr(0, dot), "", 1);
  auto minor = parse_scaled(text.substr(dot + 1), "", 1);
  if (!major || !minor || *major > 99 || *minor > 99) return std::nullopt;
  return *major * 1000 + *minor * 10;
}

}  // namespace takt::emulator
