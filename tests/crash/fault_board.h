#pragma once
// What the crash tests and the programs under test share: one file beside the programs, mapped by
// all of them. The tests name points and say at which time of reaching one a process is to end; the
// programs count.
#include <atomic>
#include <cstdint>

namespace takt::crash {

inline constexpr int kBoardRowsMax = 128;
inline constexpr char kBoardName[] = "fault-board";
inline constexpr char kController[] = "controller";
inline constexpr char kAgent[] = "agent";
inline constexpr char kShim[] = "shim";

struct BoardRow {
  char process[16];
  char point[40];
  char victim[32];                     // of a shim: the attempt that it was there for
  std::atomic<std::int64_t> reached;   // how often, by all processes of the kind together
  std::atomic<std::int64_t> fatal_at;  // who reaches it for this time ends by SIGKILL; 0: nobody
  std::atomic<std::int64_t> fired;     // how many have ended so
};

// A new file of this size, all zero, is an empty board.
struct Board {
  std::atomic<std::int64_t> rows;
  std::atomic<std::int64_t> unknown;  // times that a point without a row was reached
  char unknown_point[56];             // "process point"
  BoardRow row[kBoardRowsMax];
};

}  // namespace takt::crash
