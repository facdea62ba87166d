#pragma once
#include <string>

namespace takt::cli {

// Reads the command line and runs the command; returns its exit code.
int parse_and_run(int argc, char** argv, const std::string& version);

}  // namespace takt::cli
