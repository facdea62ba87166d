#include "load/visible_devices.h"

#include <algorithm>

#include "fleet/document.h"

namespace takt::emulator {
namespace {

// A whole GPU in MIG mode runs nothing: its first MIG device stands for it.
std::optional<VisibleDevice> by_index(const std::vector<PresentGpu>& present, unsigned index) {
  if (index >= present.size()) return std::nullopt;
  if (!present[index].mig_enabled) return VisibleDevice{index, -1};
  if (present[index].migs.empty()) return std::nullopt;
  return VisibleDevice{index, 0};
}

std::optional<VisibleDevice> by_uuid(const std::vector<PresentGpu>& present,
                                     const std::string& start) {
  std::vector<VisibleDevice> found;
  auto fits = [&](const std::string& uuid) { return uuid.rfind(start, 0) == 0; };
  for (unsigned i = 0; i < present.size(); ++i) {
    if (fits(present[i].uuid)) {
      if (auto device = by_index(present, i)) found.push_back(*device);
    }
    for (std::size_t m = 0; m < present[i].migs.size(); ++m)
      if (fits(present[i].migs[m])) found.push_back({i, static_cast<int>(m)});
  }
  return found.size() == 1 ? std::optional(found[0]) : std::nullopt;
}

std::optional<VisibleDevice> device_of(const std::vector<PresentGpu>& present,
                                       const std::string& entry) {
  if (entry.empty()) return std::nullopt;
  if (entry.find_first_not_of("0123456789") != std::string::npos) return by_uuid(present, entry);
  return entry.size() < 6 ? by_index(present, static_cast<unsigned>(std::stoul(entry)))
                          : std::nullopt;
}

}  // namespace

std::vector<VisibleDevice> visible_devices(const std::vector<PresentGpu>& present,
                                           const std::optional<std::string>& variable) {
  std::vector<VisibleDevice> out;
  auto add = [&](const VisibleDevice& device) {
    if (std::find(out.begin(), out.end(), device) != out.end()) return false;  // named twice
    out.push_back(device);
    return true;
  };
  if (!variable) {
    for (unsigned i = 0; i < present.size(); ++i)
      if (auto device = by_index(present, i)) add(*device);
  } else {
    std::string rest = *variable;
    while (true) {
      auto comma = rest.find(',');
      auto device = device_of(present, trimmed(rest.substr(0, comma)));
      if (!device || !add(*device) || comma == std::string::npos) break;
      rest.erase(0, comma + 1);
    }
  }
  auto mig = std::find_if(out.begin(), out.end(), [](const auto& d) { return d.mig >= 0; });
  if (mig != out.end()) out = {mig == out.begin() || variable ? out.front() : *mig};
  return out;
}

}  // namespace takt::emulator
