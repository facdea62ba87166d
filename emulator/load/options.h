#pragma once
// The command line of takt-load.
#include <optional>
#include <string>
#include <vector>

#include "load/phases.h"

namespace takt::emulator {

struct LoadOptions {
  std::vector<Phase> phases;  // never empty
  double grow = 0;            // bytes a second on top of the phases' memory
  double crash_after = -1;    // seconds; < 0: never
  bool ignore_term = false;
  bool repeat = false;  // the phases, until it is ended
  bool quiet = false;
  bool help = false;
  int exit_code = 0;
};

// A sentence that names the option and what was expected.
Result<LoadOptions> parse_load_options(const std::vector<std::string>& words);
extern const char* const kLoadHelp;

}  // namespace takt::emulator
