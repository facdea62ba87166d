#pragma once
// Facts as the journal of production writes and reads them.
#include "core/replay/disk.h"
#include "edge/codec/snapshot_text.h"

namespace takt::replay {

inline FactText journal_text() {
  return {[](const std::vector<control::Fact>& facts) { return codec::snapshot_of(facts); },
          [](const std::string& text) { return codec::facts_from_snapshot(text); }};
}

}  // namespace takt::replay
