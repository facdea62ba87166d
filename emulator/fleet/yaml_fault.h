#pragma once
// The parts of a YAML fleet about what goes wrong, and the words it uses.
#include <optional>
#include <string>

#include "fleet/fleet.h"
#include "fleet/yaml_fields.h"

namespace takt::emulator {

FleetFault read_fault(const YAML::Node& node, const std::string& where, Problems& problems);

std::optional<std::uint64_t> throttle_bit(const std::string& name);  // "sw_power_cap" -> 0x4
std::string throttle_names();
std::optional<Topology> topology_of(const std::string& word);           // "pix", "phb", ...
std::optional<std::uint64_t> cuda_version_of(const std::string& text);  // "12.4" -> 12040

}  // namespace takt::emulator
