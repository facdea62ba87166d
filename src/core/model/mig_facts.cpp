#include "core/model/mig_facts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace takt {
namespace {

// The five GPUs with 7 compute and 8 memory slices differ only in the sizes in the names. Sources:
// nvidia-smi mig -lgip / -lgipp of A100 40 and 80 GB, H100 80 GB and NVL, and NVIDIA's MIG user
// guide (supported profiles) for GH200, H200 and B200. Starts: {0-6}:1, {0,2,4,6}:2, {0,2,4}:2,
// {0,4}:4, {0}:4, {0}:8 in -lgipp's words.
struct Sizes {
  std::string_view key;
  int one, two, half, whole;  // GB in the names: 1, 2, 4 and 8 memory slices
};
constexpr Sizes kSevenSlices[] = {
    {"a100-40", 5, 10, 20, 40},  {"a100-80", 10, 20, 40, 80},  {"h100-80", 10, 20, 40, 80},
    {"h100-94", 12, 24, 47, 94}, {"gh200-96", 12, 24, 48, 96}, {"h200", 18, 35, 71, 141},
    {"b200", 23, 45, 90, 180},
};

MigFamily seven_slices(const Sizes& s) {
  return {std::string(s.key),
          7,
          8,
          {
              {fmt::format("1g.{}gb", s.one), 1, 1, {0, 1, 2, 3, 4, 5, 6}, 7, false},
              {fmt::format("1g.{}gb+me", s.one), 1, 1, {0, 1, 2, 3, 4, 5, 6}, 1, true},
              {fmt::format("1g.{}gb", s.two), 1, 2, {0, 2, 4, 6}, 4, false},
              {fmt::format("2g.{}gb", s.two), 2, 2, {0, 2, 4}, 3, false},
              {fmt::format("3g.{}gb", s.half), 3, 4, {0, 4}, 2, false},
              {fmt::format("4g.{}gb", s.half), 4, 4, {0}, 1, false},
              {fmt::format("7g.{}gb", s.whole), 7, 8, {0}, 1, false},
          }};
}

// nvidia-smi mig -lgip / -lgipp of an A30; NVIDIA's MIG user guide for the RTX PRO 6000, of which
// the variants "+gfx", "-me" and "+me.all" have the same slices and are left out.
MigFamily four_slices(std::string_view key, int one, bool two_with_media) {
  MigFamily family{std::string(key), 4, 4, {}};
  family.profiles = {{fmt::format("1g.{}gb", one), 1, 1, {0, 1, 2, 3}, 4, false},
                     {fmt::format("1g.{}gb+me", one), 1, 1, {0, 1, 2, 3}, 1, true},
                     {fmt::format("2g.{}gb", 2 * one), 2, 2, {0, 2}, 2, false}};
  if (two_with_media)
    family.profiles.push_back({fmt::format("2g.{}gb+me", 2 * one), 2, 2, {0, 2}, 1, true});
  family.profiles.push_back({fmt::format("4g.{}gb", 4 * one), 4, 4, {0}, 1, false});
  return family;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// Gibibytes of the card: of the memory the driver tells, else of the name ("...-80GB"); 0: unknown.
double gibibytes_of(const std::string& model, Bytes memory) {
  if (memory.value > 0) return static_cast<double>(memory.value) / (1024.0 * 1024 * 1024);
  for (const int size : {24, 40, 80, 94, 96, 141, 180})
    if (model.find(fmt::format("{}gb", size)) != std::string::npos) return size;
  return 0;
}

// The key of the family, or empty. Sizes of one model differ enough to be told apart by memory.
std::string_view family_key(const std::string& model, double gib) {
  const auto named = [&](std::string_view word) { return model.find(word) != std::string::npos; };
  if (named("a30")) return named("a300") ? "" : "a30";
  if (named("a100") || named("a800")) return gib == 0 ? "" : gib < 48 ? "a100-40" : "a100-80";
  if (named("gh200")) return gib > 90 && gib < 100 ? "gh200-96" : "";
  if (named("h200")) return "h200";
  if (named("h100") || named("h800")) {
    if (named("nvl")) return "h100-94";
    if (gib == 0 || gib < 88) return "h100-80";
    return gib < 94.5 ? "h100-94" : "gh200-96";  // the H100 with 96 GB has GH200's profiles
  }
  if (named("b200")) return named("gb200") ? "" : "b200";
  if (named("rtx pro 6000")) return "rtxpro6000";
  return "";
}

}  // namespace

std::vector<MigFamily> all_mig_families() {
  std::vector<MigFamily> all{four_slices("a30", 6, true)};
  for (const Sizes& sizes : kSevenSlices) all.push_back(seven_slices(sizes));
  all.push_back(four_slices("rtxpro6000", 24, false));
  return all;
}

std::optional<MigFamily> mig_family_for(std::string_view model, Bytes device_memory) {
  const std::string name = lower(model);
  const std::string_view key = family_key(name, gibibytes_of(name, device_memory));
  for (MigFamily& family : all_mig_families())
    if (family.key == key) return std::move(family);
  return std::nullopt;
}

std::string mig_profile_name(const MigShape& shape) {
  constexpr double gibibyte = 1024.0 * 1024 * 1024;
  const auto memory = static_cast<double>(shape.memory.value);
  double gigabytes = std::ceil(memory / gibibyte);
  if (shape.device_memory.value > 0) {
    const auto device = static_cast<double>(shape.device_memory.value);
    const double eighths = std::min(std::ceil(memory / device * 8), 8.0);
    gigabytes = std::round(eighths / 8 * std::ceil(device / gibibyte));
  }
  std::string name;
  if (shape.compute_slices > 0 && shape.compute_slices != shape.gpu_slices)
    name = fmt::format("{}c.", shape.compute_slices);
  name += fmt::format("{}g.{}gb", shape.gpu_slices, static_cast<int>(gigabytes));
  if (shape.media_extensions) name += "+me";
  return name;
}

}  // namespace takt
