#include "edge/codec/snapshot_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "edge/codec/journal_json.h"

namespace takt::codec {
namespace {

constexpr std::string_view kPrintWord = "fingerprint ";

}  // namespace

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

std::string snapshot_of(const std::vector<control::Fact>& facts, Fingerprint print) {
  return fmt::format("{}{} {:016x}\n", kPrintWord, print.version, print.value) + snapshot_of(facts);
}

namespace {

// The line's value when it is one; takes it off the text.
Result<std::optional<Fingerprint>> take_print(std::string_view& text) {
  if (text.substr(0, kPrintWord.size()) != kPrintWord) return std::optional<Fingerprint>();
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  Fingerprint print;
  const char* last = line.data() + line.size();
  const auto version = std::from_chars(line.data() + kPrintWord.size(), last, print.version);
  if (version.ec == std::errc() && version.ptr != last && *version.ptr == ' ') {
    const auto value = std::from_chars(version.ptr + 1, last, print.value, 16);
    if (value.ec == std::errc() && value.ptr == last && end < text.size()) {
      text.remove_prefix(end + 1);
      return std::optional<Fingerprint>(print);
    }
  }
  return fail(ErrorKind::invalid, "snapshot: line 1 is not a fingerprint");
}

Result<control::Fact> fact_in(std::string_view row, std::size_t line) {
  const std::size_t kind_end = row.find(' ');
  const std::size_t version_end =
      kind_end == std::string_view::npos ? kind_end : row.find(' ', kind_end + 1);
  if (version_end != std::string_view::npos) {
    JournalRecord record;
    record.kind = row.substr(0, kind_end);
    const char* digits = row.data() + kind_end + 1;
    const auto read = std::from_chars(digits, row.data() + version_end, record.version);
    if (read.ec == std::errc() && read.ptr == row.data() + version_end) {
      record.body = row.substr(version_end + 1);
      auto fact = decode_fact(record);
      if (!fact) return fail_at(fmt::format("snapshot: line {}", line), fact.error());
      return fact;
    }
  }
  return fail(ErrorKind::invalid,
              fmt::format("snapshot: line {} does not begin with a kind and a version", line));
}

}  // namespace

Result<std::optional<Fingerprint>> read_snapshot(
    std::string_view text, const std::function<Result<void>(control::Fact)>& each) {
  auto print = take_print(text);
  if (!print) return print;
  for (std::size_t line = *print ? 2 : 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos)
      return fail(ErrorKind::invalid, fmt::format("snapshot: line {} is cut off", line));
    auto fact = fact_in(text.substr(0, end), line);
    if (!fact) return tl::make_unexpected(fact.error());
    if (auto done = each(std::move(*fact)); !done) return tl::make_unexpected(done.error());
    text.remove_prefix(end + 1);
  }
  return print;
}

Result<std::vector<control::Fact>> facts_from_snapshot(std::string_view text) {
  std::vector<control::Fact> facts;
  auto read = read_snapshot(text, [&](control::Fact fact) {
    facts.push_back(std::move(fact));
    return Result<void>();
  });
  if (!read) return tl::make_unexpected(read.error());
  return facts;
}

}  // namespace takt::codec
