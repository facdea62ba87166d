#include "app/report/table.h"

#include <algorithm>
#include <numeric>

#include "app/report/text.h"

namespace takt::report {
namespace {

constexpr std::size_t gap = 2;

const char* sequence(Colour colour) {
  switch (colour) {
    case Colour::none: return "";
    case Colour::bold: return "\x1b[1m";
    case Colour::dim: return "\x1b[2m";
    case Colour::red: return "\x1b[31m";
    case Colour::green: return "\x1b[32m";
    case Colour::yellow: break;
  }
  return "\x1b[33m";
}

std::size_t total(const std::vector<std::size_t>& widths) {
  std::size_t sum = 0;
  for (std::size_t w : widths)
    if (w > 0) sum += w + (sum > 0 ? gap : 0);
  return sum;
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::size_t width_of(const Screen& screen) {
  return static_cast<std::size_t>(std::max(screen.width, 40));
}

std::string paint(const std::string& text, Colour colour, const Screen& screen) {
  if (!screen.colour || colour == Colour::none || text.empty()) return text;
  const bool newline = text.back() == '\n';  // the colour ends before the line does
  return sequence(colour) + text.substr(0, text.size() - (newline ? 1 : 0)) + "\x1b[0m" +
         (newline ? "\n" : "");
}

void Table::row(std::vector<Cell> cells, bool spill) {
  cells.resize(head_.size());
  for (Cell& cell : cells) cell.text = harmless(cell.text);
  rows_.push_back({std::move(cells), {}, spill});
}

void Table::line(std::string lead, std::string text, Colour colour) {
  (rows_.empty() ? before_ : rows_.back().below)
      .push_back({std::move(lead), harmless(text), colour});
}

std::vector<std::size_t> Table::layout(std::size_t width) const {
  std::vector<std::size_t> widths(head_.size(), 0);
  for (std::size_t c = 0; c < head_.size(); ++c) {
    bool empty = true;
    widths[c] = columns(head_[c].head);
    for (const Row& row : rows_) {
      empty = empty && row.cells[c].text.empty();
      widths[c] = std::max(widths[c], columns(row.cells[c].text));
    }
    if (empty && head_[c].drop > 0) widths[c] = 0;  // nothing to show anywhere
  }
  for (;;) {
    // What can shrink gives way first, always the widest, one column at a time.
    while (total(widths) > width) {
      std::size_t widest = head_.size();
      for (std::size_t c = 0; c < head_.size(); ++c) {
        if (head_[c].least == 0 || widths[c] <= head_[c].least) continue;
        if (widest == head_.size() || widths[c] > widths[widest]) widest = c;
      }
      if (widest == head_.size()) break;
      --widths[widest];
    }
    if (total(widths) <= width) return widths;
    std::size_t victim = head_.size();
    for (std::size_t c = 0; c < head_.size(); ++c)
      if (widths[c] > 0 && head_[c].drop > 0 &&
          (victim == head_.size() || head_[c].drop > head_[victim].drop))
        victim = c;
    if (victim == head_.size()) return widths;
    widths[victim] = 0;
  }
}

std::string Table::print(const Screen& screen) const {
  const std::size_t width = width_of(screen);
  const std::vector<std::size_t> widths = layout(width);
  std::string out;
  const auto put_row = [&](std::vector<Cell> cells, bool spills) {
    if (spills) cells.back().text.clear();
    std::string line;
    std::size_t used = 0;
    for (std::size_t c = 0; c < widths.size(); ++c) {
      if (widths[c] == 0 || used >= width) continue;
      if (used > 0) line += std::string(gap, ' ');
      used += used > 0 ? gap : 0;
      const std::size_t w = std::min(widths[c], width > used ? width - used : 0);
      const std::string text = head_[c].right ? pad_left(cells[c].text, w) : pad(cells[c].text, w);
      line += paint(text, cells[c].colour, screen);
      used += w;
    }
    out += without_trailing_spaces(line) + "\n";
  };
  const auto put_line = [&](const Line& line) {
    out += paint(paragraph(line.lead, line.text, width), line.colour, screen);
  };
  std::vector<Cell> head;
  for (const Column& column : head_) head.push_back({column.head, Colour::bold});
  put_row(head, false);
  for (const Line& line : before_) put_line(line);
  for (const Row& row : rows_) {
    const Cell& last = row.cells.back();
    const bool spills = row.spill && columns(last.text) > widths.back();
    put_row(row.cells, spills);
    if (spills) put_line({"    ", last.text, last.colour});
    for (const Line& line : row.below) put_line(line);
  }
  return out;
}

}  // namespace takt::report
