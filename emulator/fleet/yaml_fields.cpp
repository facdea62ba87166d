#include "fleet/yaml_fields.h"

#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include "fleet/quantity.h"

namespace takt::emulator {

void Problems::add(const YAML::Node& node, const std::string& field, const std::string& what) {
  if (first_) return;
  int line = node.IsDefined() ? node.Mark().line + 1 : 1;
  first_ = Error{ErrorKind::invalid, fmt::format("{}: line {}: {} {}", place_, line, field, what)};
}

Fields::Fields(const YAML::Node& node, std::string where, Problems& problems,
               std::initializer_list<const char*> known)
    : node_(std::make_shared<YAML::Node>(node)), where_(std::move(where)), problems_(problems) {
  std::string names;
  for (const char* name : known) names += (names.empty() ? "" : ", ") + std::string(name);
  std::string self = where_.empty() ? "the file" : where_;
  if (!node_->IsMap()) {
    problems_.add(*node_, self, "is not a mapping; expected keys out of: " + names);
    node_->reset(YAML::Node(YAML::NodeType::Map));
    return;
  }
  std::vector<std::string> seen;
  for (const auto& pair : *node_) {
    std::string key = pair.first.IsScalar() ? pair.first.Scalar() : "?";
    bool ok = false;
    for (const char* name : known) ok = ok || key == name;
    if (!ok)
      problems_.add(pair.first, path(key.c_str()), "is not known; expected one of: " + names);
    for (const auto& other : seen)
      if (other == key)
        problems_.add(pair.first, path(key.c_str()), "is given twice; expected once");
    seen.push_back(key);
  }
}

bool Fields::has(const char* key) const { return node(key).IsDefined() && !node(key).IsNull(); }

YAML::Node Fields::node(const char* key) const {
  const YAML::Node& constant = *node_;  // operator[] of a non-const node would add the key
  return constant[key];
}

std::string Fields::path(const char* key) const {
  return where_.empty() ? key : where_ + "." + key;
}

void Fields::refuse(const char* key, const std::string& raw, const std::string& expected) {
  problems_.add(node(key), path(key), "is '" + raw + "'; expected " + expected);
}

std::optional<std::string> Fields::text(const char* key) {
  if (!has(key)) return std::nullopt;
  if (!node(key).IsScalar()) {
    problems_.add(node(key), path(key), "is a list or mapping; expected one value");
    return std::nullopt;
  }
  return node(key).Scalar();
}

std::optional<std::uint64_t> Fields::whole(const char* key, std::uint64_t least,
                                           std::uint64_t most) {
  return value<std::uint64_t>(key, fmt::format("a whole number from {} to {}", least, most),
                              [&](const std::string& raw) -> std::optional<std::uint64_t> {
                                if (raw.empty() || raw.size() > 18 ||
                                    raw.find_first_not_of("0123456789") != std::string::npos)
                                  return std::nullopt;
                                std::uint64_t n = std::stoull(raw);
                                return n >= least && n <= most ? std::optional(n) : std::nullopt;
                              });
}

std::vector<YAML::Node> Fields::list(const char* key) {
  std::vector<YAML::Node> out;
  if (!has(key)) return out;
  if (!node(key).IsSequence()) {
    problems_.add(node(key), path(key), "is not a list; expected '- ...' items");
    return out;
  }
  for (const auto& item : node(key)) out.push_back(item);
  return out;
}

}  // namespace takt::emulator
