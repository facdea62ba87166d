#include "core/model/gpu_facts.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

namespace takt {
namespace {

constexpr std::nullopt_t none = std::nullopt;

struct Row {
  std::string_view words;    // parts that the driver's name must have
  std::string_view without;  // parts that it must not have
};

// The facts, and in kNames at the same place how the driver names the card. Rates: NVIDIA's and
// AMD's data sheets and the system files of NVIDIA/aiconfigurator (Apache-2.0); rows marked
// `approximate` hold numbers that were rounded or remembered. The A100 PCIe with 40 GB, the V100
// forms and the halves of the MI250X (two devices to a scheduler) are split from one line of the
// source.
constexpr std::array kFacts{
    GpuFacts{"t4", "", "7.5", 16, 320, none, 65, none, 130, none, 70},
    GpuFacts{"v100-16", "pcie", "7.0", 16, 900, none, 112, none, none, none, 250},
    GpuFacts{"v100-32", "pcie", "7.0", 32, 900, none, 112, none, none, none, 250},
    GpuFacts{"v100-16", "sxm", "7.0", 16, 900, none, 125, none, none, none, 300},
    GpuFacts{"v100-32", "sxm", "7.0", 32, 900, none, 125, none, none, none, 300},
    GpuFacts{"a10", "", "8.6", 24, 600, 125, 125, none, 250, none, 150},
    GpuFacts{"a30", "", "8.0", 24, 933, 165, 165, none, 330, none, 165, 4, 4},
    GpuFacts{"a40", "", "8.6", 48, 696, 149.7, 149.7, none, 299, none, 300},
    GpuFacts{"l4", "", "8.9", 24, 300, 121, 121, 242, 242, none, 72},
    GpuFacts{"l40s", "", "8.9", 48, 864, 362, 362, 733, 733, none, 350},
    GpuFacts{"a100-40", "pcie", "8.0", 40, 1555, 312, 312, none, 624, none, 250, 7, 8},
    GpuFacts{"a100-40", "sxm", "8.0", 40, 1555, 312, 312, none, 624, none, 400, 7, 8},
    GpuFacts{"a100-80", "pcie", "8.0", 80, 1935, 312, 312, none, 624, none, 300, 7, 8},
    GpuFacts{"a100-80", "sxm", "8.0", 80, 2039, 312, 312, none, 624, none, 400, 7, 8},
    GpuFacts{"h100-80", "pcie", "9.0", 80, 2000, 756, 756, 1513, 1513, none, 350, 7, 8},
    GpuFacts{"h100-80", "sxm", "9.0", 80, 3350, 989, 989, 1979, 1979, none, 700, 7, 8},
    GpuFacts{"h100-94", "nvl", "9.0", 94, 3900, 835, 835, 1670, 1670, none, 400, 7, 8, true},
    GpuFacts{"h200", "", "9.0", 141, 4800, 989, 989, 1979, 1979, none, 700, 7, 8},
    GpuFacts{"b200", "", "10.0", 180, 7700, 2250, 2250, 4500, none, none, 1000, 7, 8, true},
    GpuFacts{"rtx3090", "", "8.6", 24, 936, 71, 71, none, 284, 142, 350, 0, 0, true},
    GpuFacts{"rtx4090", "", "8.9", 24, 1008, 165, 165, 330, 660, 330, 450},
    GpuFacts{"rtx5090", "", "12.0", 32, 1792, 209.5, 209.5, 419, none, none, 575, 0, 0, true},
    GpuFacts{"rtx6000ada", "", "8.9", 48, 960, 182, 182, 364, 728, 364, 300, 0, 0, true},
    GpuFacts{"rtxpro6000", "", "12.0", 96, 1792, 467.8, 467.8, 935.6, none, none, 600, 4, 4},
    GpuFacts{"mi210", "", "gfx90a", 64, 1638, 181, 181, none, 181, none, 300, 0, 0, true},
    GpuFacts{"mi250x", "", "gfx90a", 64, 1638, 191.5, 191.5, none, 191.5, none, 280, 0, 0, true},
    GpuFacts{"mi300x", "", "gfx942", 192, 5300, 1307, 1307, 2615, 2615, none, 750},
};

constexpr std::array kNames{
    Row{"t4", ""},
    Row{"v100 pcie 16gb", ""},
    Row{"v100 pcie 32gb", ""},
    Row{"v100 sxm2 16gb", ""},
    Row{"v100 sxm2 32gb", ""},
    Row{"a10", ""},
    Row{"a30", ""},
    Row{"a40", ""},
    Row{"l4", ""},
    Row{"l40s", ""},
    Row{"a100 pcie 40gb", ""},
    Row{"a100 40gb", "pcie"},
    Row{"a100 pcie 80gb", ""},
    Row{"a100 80gb", "pcie"},
    Row{"h100 pcie", ""},
    Row{"h100 80gb hbm3", ""},
    Row{"h100 nvl", ""},
    Row{"h200", "nvl"},
    Row{"b200", ""},
    Row{"rtx 3090", "ti laptop"},
    Row{"rtx 4090", "d laptop"},
    Row{"rtx 5090", "d laptop"},
    Row{"rtx 6000 ada", ""},
    Row{"rtx pro 6000 server", ""},
    Row{"mi210", ""},
    Row{"mi250x", ""},
    Row{"mi300x", ""},
};
static_assert(kFacts.size() == kNames.size());

// "NVIDIA A100-SXM4-80GB" → nvidia, a100, sxm4, 80gb.
std::vector<std::string> parts(std::string_view text) {
  std::vector<std::string> found;
  bool inside = false;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) == 0) {
      inside = false;
      continue;
    }
    if (!inside) found.emplace_back();
    inside = true;
    found.back() += static_cast<char>(std::tolower(byte));
  }
  return found;
}

bool has(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

bool row_matches(const Row& row, const std::vector<std::string>& name) {
  const auto wanted = parts(row.words);
  const auto unwanted = parts(row.without);
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& w) { return has(name, w); }) &&
         std::none_of(unwanted.begin(), unwanted.end(),
                      [&](const auto& w) { return has(name, w); });
}

// Whether neighbouring parts of `name`, written together, are `word`.
bool run_matches(const std::vector<std::string>& name, const std::string& word) {
  for (std::size_t first = 0; first < name.size(); ++first) {
    std::string joined;
    for (std::size_t last = first; last < name.size() && joined.size() < word.size(); ++last) {
      joined += name[last];
      if (joined == word) return true;
    }
  }
  return false;
}

}  // namespace

std::optional<GpuFacts> gpu_facts_for(std::string_view model) {
  const auto name = parts(model);
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (row_matches(kNames[i], name)) return kFacts[i];
  return std::nullopt;
}

std::span<const GpuFacts> all_gpu_facts() { return kFacts; }

bool type_matches(std::string_view model, std::string_view word) {
  const auto wanted = parts(word);
  if (wanted.empty()) return false;
  const auto name = parts(model);
  auto known = name;
  if (const auto facts = gpu_facts_for(model)) {
    for (const auto& part : parts(facts->key)) known.push_back(part);
    if (!facts->form.empty()) known.emplace_back(facts->form);
    known.push_back(std::to_string(facts->memory_gib));
    known.push_back(std::to_string(facts->memory_gib) + "gb");
  }
  if (std::all_of(wanted.begin(), wanted.end(), [&](const auto& w) { return has(known, w); }))
    return true;
  std::string joined;
  for (const auto& part : wanted) joined += part;
  return run_matches(name, joined);
}

}  // namespace takt
