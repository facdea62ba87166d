#pragma once
// Scenarios of the fault simulator as files: what `takt simulate` prints when something fails, and
// reads to play it again.
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/replay/scenario.h"

namespace takt::codec {

// Errors as in job files: all at once, each with file, line, field, value and what was expected.
Result<replay::Scenario> parse_scenario_yaml(std::string_view text, const std::string& file);
std::string scenario_to_yaml(const replay::Scenario& scenario);

}  // namespace takt::codec
