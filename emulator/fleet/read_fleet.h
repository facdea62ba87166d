#pragma once
// Reads a fleet from any file the emulator understands. What it is, is seen from its content:
// YAML, `nvidia-smi -q -x`, `nvidia-smi -q`, a csv table of --query-gpu, or a whole capture file
// with one section a command; each plain or gzipped.
#include <string>

#include "core/base/result.h"
#include "fleet/fleet.h"
#include "wire/selector.h"

namespace takt::emulator {

// "FILE" or "FILE#load": of a capture with two states, idle is read unless "#load" is said.
Result<Fleet> read_fleet(const std::string& selector);

// The readers by form; `place` is put in front of every complaint.
Result<Fleet> fleet_of_yaml(const std::string& text, const std::string& place);
Result<Fleet> fleet_of_text(const std::string& text, const std::string& place,
                            const std::string& state);
Result<Fleet> fleet_of_capture(const std::string& text, const std::string& place,
                               const std::string& state);

}  // namespace takt::emulator
