#include <signal.h>

#include <cstring>

#include "app/cli/options.h"
#include "app/cli/output.h"
#include "takt_version.h"

int main(int argc, char** argv) {
  takt::cli::hold_standard_descriptors();
  ::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is noticed where we write
  // Asked often by scripts; answered before anything else is set up.
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    return takt::cli::put("takt " TAKT_VERSION "\n");
  }
  return takt::cli::parse_and_run(argc, argv, TAKT_VERSION);
}
