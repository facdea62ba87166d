#pragma once
// How a fleet is named: "FILE", or "FILE#load" for the loaded half of a capture.
#include <string>

namespace takt::emulator {

struct FleetSelector {
  std::string path;
  std::string state;  // "idle" or "load"; empty: none was named
};
FleetSelector selector_of(const std::string& text);

}  // namespace takt::emulator
