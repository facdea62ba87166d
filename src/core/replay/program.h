#pragma once
// What a simulated program does. It follows from the seed, the attempt and the kind that the job
// names as its command, so that it does the same whenever it is played.
#include <string>

#include "core/base/ids.h"
#include "core/base/quantities.h"

namespace takt::replay {

// Commands of simulated jobs.
namespace kind {
inline constexpr const char* brief = "brief";        // seconds
inline constexpr const char* steady = "steady";      // up to minutes
inline constexpr const char* failing = "failing";    // ends with an exit code, often
inline constexpr const char* forever = "forever";    // until it is stopped
inline constexpr const char* stubborn = "stubborn";  // minds no TERM, leaves a child behind
inline constexpr const char* greedy = "greedy";      // takes more memory than it was granted
inline constexpr const char* stuck = "stuck";        // KILL does not end it for long
inline constexpr const char* absent = "absent";      // there is no such program
}  // namespace kind

struct Program {
  bool starts = true;
  Duration runs;  // its main process, left alone
  int exit_code = 0;
  Duration minds_term;      // so long after TERM it ends
  Duration outlives_kill;   // so long after KILL it ends: stuck in a driver
  Duration child;           // so long after its main process another one of it lives
  Duration shown;           // so long after its last process the driver still shows one
  int memory_percent = 60;  // of what it was granted
};

Program program_of(std::uint64_t seed, AttemptId attempt, const std::string& kind);

}  // namespace takt::replay
