#include "crash/table.h"

#include <fmt/core.h>

namespace takt::crash {
namespace {

constexpr const char* kLayout = "{:<32} {:<24} {:>6} {:>8} {:>12} {:>5} {:>5} {:>6} {:>7} {:>5}\n";

std::string line_text(const std::string& place, const std::string& process, const TableLine& line) {
  const auto count = [&](Violation::Kind kind) {
    const auto it = line.violations.find(kind);
    return it == line.violations.end() ? 0 : it->second;
  };
  using Kind = Violation::Kind;
  return fmt::format(fmt::runtime(kLayout), place, process, line.rounds, line.reached,
                     line.acknowledged, count(Kind::lost), count(Kind::twice), count(Kind::killed),
                     count(Kind::granted),
                     count(Kind::outcome) + count(Kind::left) + count(Kind::other));
}

}  // namespace

Table& Table::of_this_program() {
  static Table table;
  return table;
}

std::string Table::text() const {
  std::string text =
      fmt::format(fmt::runtime(kLayout), "fault point", "killed", "rounds", "reached",
                  "acknowledged", "lost", "twice", "killed", "granted", "other");
  TableLine sum;
  for (const auto& [key, line] : lines_) {
    text += line_text(key.second, key.first, line);
    sum.rounds += line.rounds;
    sum.reached += line.reached;
    sum.acknowledged += line.acknowledged;
    for (const auto& [kind, count] : line.violations) sum.violations[kind] += count;
  }
  return text + line_text("all", "", sum);
}

}  // namespace takt::crash
