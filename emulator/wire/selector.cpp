#include "wire/selector.h"

namespace takt::emulator {

FleetSelector selector_of(const std::string& text) {
  auto hash = text.rfind('#');
  if (hash != std::string::npos) {
    std::string state = text.substr(hash + 1);
    if (state == "idle" || state == "load") return {text.substr(0, hash), state};
  }
  return {text, ""};
}

}  // namespace takt::emulator
