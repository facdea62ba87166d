#pragma once
// The calls of NVML that the emulator answers, by canonical name (fleet.h).
#include <string>

namespace takt::emulator {

bool is_known_call(const std::string& name);

}  // namespace takt::emulator
