#pragma once
// Tables that fit a terminal: columns shrink, then the least important ones are left out.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "app/report/report.h"

namespace takt::report {

enum class Colour { none, bold, dim, red, green, yellow };

// `text` between the sequences of `colour`; plain when the screen has none.
std::string paint(const std::string& text, Colour colour, const Screen& screen);

struct Column {
  std::string head;
  std::size_t least = 0;  // may shrink to this many columns; 0: never shrinks
  int drop = 0;           // left out if there is no room, the highest first; 0: never
  bool right = false;
};

struct Cell {
  std::string text;  // made harmless by the table
  Colour colour = Colour::none;
};

class Table {
 public:
  explicit Table(std::vector<Column> head) : head_(std::move(head)) {}

  // With `spill` the last cell is printed in full below the row if it does not fit into it.
  void row(std::vector<Cell> cells, bool spill = false);
  // Below the last row: `lead` and then the text, wrapped.
  void line(std::string lead, std::string text, Colour colour = Colour::none);
  std::size_t size() const { return rows_.size(); }
  std::string print(const Screen& screen) const;

 private:
  struct Line {
    std::string lead;
    std::string text;
    Colour colour;
  };
  struct Row {
    std::vector<Cell> cells;
    std::vector<Line> below;
    bool spill = false;
  };
  // Widths by column; 0 for those left out.
  std::vector<std::size_t> layout(std::size_t width) const;

  std::vector<Column> head_;
  std::vector<Row> rows_;
  std::vector<Line> before_;  // lines before the first row
};

// The usable width of a screen.
std::size_t width_of(const Screen& screen);

}  // namespace takt::report
