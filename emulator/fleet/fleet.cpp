#include "fleet/fleet.h"

#include <algorithm>
#include <cctype>

namespace takt::emulator {

std::string canonical_call(const std::string& name) {
  std::string call = name;
  for (std::string_view prefix : {"nvml", "Device", "Get"})
    if (call.rfind(prefix, 0) == 0) call.erase(0, prefix.size());
  auto underscore = call.rfind("_v");
  if (underscore != std::string::npos && underscore + 2 < call.size() &&
      std::all_of(call.begin() + static_cast<std::ptrdiff_t>(underscore) + 2, call.end(),
                  [](unsigned char c) { return std::isdigit(c); }))
    call.erase(underscore);
  std::transform(call.begin(), call.end(), call.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return call;
}

}  // namespace takt::emulator
