#include <cstdio>
#include <cstring>

#include "app/cli/options.h"
#include "takt_version.h"

int main(int argc, char** argv) {
  // Asked often by scripts; answered before anything else is set up.
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    std::puts("takt " TAKT_VERSION);
    return 0;
  }
  return takt::cli::parse_and_run(argc, argv, TAKT_VERSION);
}
