#include "edge/codec/snapshot_text.h"

#include <fmt/core.h>

#include <charconv>

#include "edge/codec/journal_json.h"

namespace takt::codec {

std::string snapshot_of(const std::vector<control::Fact>& facts) {
  std::string text;
  for (const control::Fact& fact : facts) {
    const JournalRecord record = encode_fact(fact);
    text += fmt::format("{} {} ", record.kind, record.version);
    text += record.body;
    text += '\n';
  }
  return text;
}

Result<std::vector<control::Fact>> facts_from_snapshot(std::string_view text) {
  std::vector<control::Fact> facts;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos)
      return fail(ErrorKind::invalid, fmt::format("snapshot: line {} is cut off", line));
    const std::string_view row = text.substr(0, end);
    text.remove_prefix(end + 1);
    const std::size_t kind_end = row.find(' ');
    const std::size_t version_end =
        kind_end == std::string_view::npos ? kind_end : row.find(' ', kind_end + 1);
    JournalRecord record;
    if (version_end != std::string_view::npos) {
      record.kind = row.substr(0, kind_end);
      const char* digits = row.data() + kind_end + 1;
      const auto read = std::from_chars(digits, row.data() + version_end, record.version);
      if (read.ec == std::errc() && read.ptr == row.data() + version_end) {
        record.body = row.substr(version_end + 1);
        auto fact = decode_fact(record);
        if (!fact) return fail_at(fmt::format("snapshot: line {}", line), fact.error());
        facts.push_back(std::move(*fact));
        continue;
      }
    }
    return fail(ErrorKind::invalid,
                fmt::format("snapshot: line {} does not begin with a kind and a version", line));
  }
  return facts;
}

}  // namespace takt::codec
