#include "core/replay/program.h"

#include "core/base/random.h"

namespace takt::replay {

Program program_of(std::uint64_t seed, AttemptId attempt, const std::string& kind) {
  Random random = Random(seed).fork("program " + to_string(attempt));
  Program p;
  p.runs = random.between(milliseconds(10), seconds(8));
  p.minds_term = random.between({}, seconds(2));
  p.shown = random.chance(20) ? random.between({}, seconds(6)) : Duration{};
  p.memory_percent = 10 + random.below(85);
  if (kind == kind::steady) p.runs = random.between(seconds(5), seconds(60));
  if (kind == kind::failing) p.exit_code = random.chance(60) ? 1 + random.below(9) : 0;
  if (kind == kind::forever) p.runs = hours(24 * 365);
  if (kind == kind::stubborn) {
    p.minds_term = hours(24 * 365);
    p.child = random.between(seconds(1), seconds(60));
    p.runs = random.between(seconds(5), seconds(90));
  }
  if (kind == kind::greedy) {
    p.memory_percent = 110 + random.below(50);
    p.runs = random.between(seconds(10), seconds(40));
  }
  if (kind == kind::stuck) {
    p.runs = random.between(seconds(5), seconds(60));
    p.minds_term = hours(24 * 365);
    p.outlives_kill = random.between(seconds(10), seconds(90));
  }
  if (kind == kind::absent) p.starts = false;
  return p;
}

}  // namespace takt::replay
