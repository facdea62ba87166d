#pragma once
// A snapshot as text: the facts that fold to the state, one a line: "<kind> <version> <body>". The
// records are the journal's own, so a snapshot has hardly a format of its own to grow old. Version
// 2 begins with a line of its own, the state's fingerprint: "fingerprint <version> <16 hex
// digits>".
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/control/fact.h"

namespace takt::codec {

inline constexpr int kSnapshotVersion = 2;

struct Fingerprint {
  int version = 0;
  std::uint64_t value = 0;
  bool operator==(const Fingerprint&) const = default;
};

// Version 1.
std::string snapshot_of(const std::vector<control::Fact>& facts);
// Version 2.
std::string snapshot_of(const std::vector<control::Fact>& facts, Fingerprint print);
// Hands on the facts of either version in order; the fingerprint of a version 2. Errors name the
// line; an error of `each` ends it.
Result<std::optional<Fingerprint>> read_snapshot(
    std::string_view text, const std::function<Result<void>(control::Fact)>& each);
// Errors name the line.
Result<std::vector<control::Fact>> facts_from_snapshot(std::string_view text);

}  // namespace takt::codec
