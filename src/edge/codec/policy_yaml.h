#pragma once
// Policy files: strict, short YAML -> Policy (docs/policy.md). What is not written keeps its
// default.
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/model/policy.h"

namespace takt::codec {

// Errors as in job files: all at once, each with file, line, field, value and what was expected.
// Without `revision:` the revision is "file-" and the FNV-1a hash of the text.
Result<Policy> parse_policy_yaml(std::string_view text, const std::string& file);

// A file that gives exactly this policy, every field written out.
std::string policy_to_yaml(const Policy& policy);

}  // namespace takt::codec
