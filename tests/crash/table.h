#pragma once
// The crash table: what was killed where, how often, and what came of it.
#include <map>
#include <string>
#include <utility>

#include "crash/checks.h"

namespace takt::crash {

struct TableLine {
  int rounds = 0;
  std::int64_t reached = 0;
  std::size_t acknowledged = 0;  // jobs, in these rounds
  std::map<Violation::Kind, int> violations;
};

class Table {
 public:
  // Of this program; printed when it ends.
  static Table& of_this_program();

  TableLine& line(const std::string& place, const std::string& process) {
    return lines_[{process, place}];
  }
  bool empty() const { return lines_.empty(); }
  std::string text() const;

 private:
  std::map<std::pair<std::string, std::string>, TableLine> lines_;
};

}  // namespace takt::crash
