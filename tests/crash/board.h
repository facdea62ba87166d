#pragma once
// The board as the tests use it: say where a process is to end, and see whether one has.
#include <cstdint>
#include <filesystem>
#include <string>

#include "crash/fault_board.h"
#include "crash/points.h"

namespace takt::crash {

class FaultBoard {
 public:
  // Makes the file in the folder of the programs, with a row for every point.
  explicit FaultBoard(const std::filesystem::path& programs);
  ~FaultBoard();
  FaultBoard(const FaultBoard&) = delete;
  FaultBoard& operator=(const FaultBoard&) = delete;

  // The process that reaches the point for this time from now on ends.
  void arm(std::size_t point, int at_time);
  void disarm(std::size_t point);
  bool fired(std::size_t point) const;  // since it was armed
  std::int64_t reached(std::size_t point) const;
  std::string victim(std::size_t point) const;  // the attempt whose shim ended there
  // A point that was reached and is not in the table; or "".
  std::string unknown_point() const;

 private:
  Board* board_ = nullptr;
  std::int64_t fired_before_[kBoardRowsMax] = {};
};

}  // namespace takt::crash
