#pragma once
// What is asked of several jobs, one after the other: cancel, hold, release.
#include <string>
#include <vector>

namespace takt::cli {

// `verb` is the last part of the API's path; `done` its past, as answers and documents name it.
// What is refused does not stop the rest. Returns the exit code.
int ask_of_each(const std::vector<std::string>& ids, const std::string& verb, const char* done,
                bool json);

}  // namespace takt::cli
