// Tables that nvidia-smi prints with --format=csv: "name [unit], name [unit]" and rows.
#include <fmt/core.h>

#include <algorithm>

#include "fleet/smi_fleet.h"

namespace takt::emulator {
namespace {

// Cells are separated by ", "; a comma inside a cell (of a Windows path) has no space after it.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  while (true) {
    auto at = line.find(", ");
    cells.push_back(trimmed(line.substr(0, at)));
    if (at == std::string_view::npos) return cells;
    line.remove_prefix(at + 2);
  }
}

std::string column_of(const std::string& header) {
  auto unit = header.find(" [");
  std::string name = header.substr(0, unit);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

}  // namespace

const std::string* CsvTable::cell(const Row& row, std::string_view column) const {
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i] == column) return &row.cells[i];
  return nullptr;
}

Result<CsvTable> parse_csv(std::string_view text, const std::string& place, int first_line) {
  CsvTable table;
  int number = first_line - 1;
  while (!text.empty()) {
    auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (trimmed(line).empty()) continue;
    auto cells = cells_of(line);
    if (table.columns.empty()) {
      for (const auto& cell : cells) table.columns.push_back(column_of(cell));
      continue;
    }
    if (cells.size() != table.columns.size())
      return fail(ErrorKind::invalid,
                  fmt::format("{}: line {}: {} cells; expected {} as in the header", place, number,
                              cells.size(), table.columns.size()));
    table.rows.push_back({number, std::move(cells)});
  }
  return table;
}

}  // namespace takt::emulator
