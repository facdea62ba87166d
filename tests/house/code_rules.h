#pragma once
// The rules about code. Each gives one sentence "file:line: what is wrong and what to do" for every
// violation, in the order of the files.
#include <string>
#include <vector>

#include "house/source_text.h"

namespace takt::house {

// app -> edge -> core; inside core and between edges only what the table in ARCHITECTURE.md allows;
// the emulator knows core/base and the ABI of NVML; takt knows no emulator.
std::vector<std::string> wrong_includes(const Files& files);

// core has no clock, thread, file, environment, socket or randomness of its own, and nothing that
// stays changed between two calls: no mutable static, no mutable global.
std::vector<std::string> impurities_of_core(const Files& files);

// Headers that take seconds to compile are included by .cpp files only.
std::vector<std::string> heavy_headers_in_headers(const Files& files);

// No source file or script has more than 800 lines.
std::vector<std::string> overlong_files(const Files& files);

}  // namespace takt::house
