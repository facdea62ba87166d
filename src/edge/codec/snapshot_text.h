#pragma once
// A snapshot as text: the facts that fold to the state, one a line: "<kind> <version> <body>". The
// records are the journal's own, so a snapshot has no format of its own to grow old.
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/control/fact.h"

namespace takt::codec {

std::string snapshot_of(const std::vector<control::Fact>& facts);
// Errors name the line.
Result<std::vector<control::Fact>> facts_from_snapshot(std::string_view text);

}  // namespace takt::codec
