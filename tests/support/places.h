#pragma once
// Where this checkout and its build are. Functions rather than macros on every command line: those
// would make each test's compilation one of this folder only, and a clone elsewhere would build all
// of them again.
#include <string>

namespace takt::testing {

// The root of the repository.
std::string source_folder();
// The folder of the preset that this test was built in: build/release. Programs lie there.
std::string build_folder();

}  // namespace takt::testing
