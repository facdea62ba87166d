#include "fleet/gpu_models.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

namespace takt::emulator {
namespace {

// memory_mib: measured on real cards where a capture or a fact sheet gives it (H100 81559 and
// reserved 479, L40S 46068 and 609, A100-80 81920 and 869, A100-40 40960 and 605, RTX PRO 6000
// 97887); otherwise the commonly printed total, to be checked against a card before anything relies
// on it. Power, clocks and MIG slices are of the vendor's data sheets.
constexpr GpuModel kModels[] = {
    {"T4", "Tesla T4", 15360, 450, 40, 0, 0, 0, 70, 1590, 5001, 0x1EB810DE, 0, false, false},
    {"V100-16", "Tesla V100-SXM2-16GB", 16384, 230, 80, 0, 0, 0, 300, 1530, 877, 0x1DB110DE, 6,
     false, false},
    {"V100-32", "Tesla V100-SXM2-32GB", 32768, 270, 80, 0, 0, 0, 300, 1530, 877, 0x1DB510DE, 6,
     false, false},
    {"A10", "NVIDIA A10", 23028, 510, 72, 0, 0, 0, 150, 1695, 6251, 0x223610DE, 0, false, false},
    {"A30", "NVIDIA A30", 24576, 300, 56, 14, 4, 4, 165, 1440, 1215, 0x20B710DE, 4, false, false},
    {"A40", "NVIDIA A40", 46068, 610, 84, 0, 0, 0, 300, 1740, 7251, 0x223510DE, 4, false, false},
    {"L4", "NVIDIA L4", 23034, 490, 58, 0, 0, 0, 72, 2040, 6251, 0x27B810DE, 0, false, false},
    {"L40S", "NVIDIA L40S", 46068, 609, 142, 0, 0, 0, 350, 2520, 9001, 0x26B910DE, 0, false, false},
    {"A100-40", "NVIDIA A100-SXM4-40GB", 40960, 605, 108, 14, 7, 8, 400, 1410, 1215, 0x20B010DE, 12,
     false, false},
    {"A100-80", "NVIDIA A100-SXM4-80GB", 81920, 869, 108, 14, 7, 8, 400, 1410, 1593, 0x20B210DE, 12,
     false, false},
    {"A100-80-PCIE", "NVIDIA A100 80GB PCIe", 81920, 869, 108, 14, 7, 8, 300, 1410, 1512,
     0x20B510DE, 12, false, false},
    {"H100", "NVIDIA H100 80GB HBM3", 81559, 479, 132, 16, 7, 8, 700, 1980, 2619, 0x233010DE, 18,
     false, true},
    {"H100-PCIE", "NVIDIA H100 PCIe", 81559, 479, 114, 16, 7, 8, 350, 1755, 1593, 0x233110DE, 12,
     false, true},
    {"H100-NVL", "NVIDIA H100 NVL", 95830, 500, 132, 16, 7, 8, 400, 1785, 2619, 0x232110DE, 12,
     false, true},
    {"H200", "NVIDIA H200", 143771, 520, 132, 16, 7, 8, 700, 1980, 3201, 0x233510DE, 18, false,
     true},
    {"B200", "NVIDIA B200", 183359, 700, 148, 18, 7, 8, 1000, 1965, 3996, 0x290110DE, 18, false,
     true},
    {"RTX3090", "NVIDIA GeForce RTX 3090", 24576, 310, 82, 0, 0, 0, 350, 2100, 9751, 0x220410DE, 0,
     true, false},
    {"RTX4090", "NVIDIA GeForce RTX 4090", 24564, 360, 128, 0, 0, 0, 450, 3105, 10501, 0x268410DE,
     0, true, false},
    {"RTX5090", "NVIDIA GeForce RTX 5090", 32607, 480, 170, 0, 0, 0, 575, 3090, 14001, 0x2B8510DE,
     0, true, false},
    {"RTX6000ADA", "NVIDIA RTX 6000 Ada Generation", 49140, 620, 142, 0, 0, 0, 300, 3105, 10001,
     0x26B110DE, 0, true, false},
    {"RTXPRO6000", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887, 640, 188, 46, 4, 4, 600,
     2430, 12481, 0x2BB510DE, 0, false, false},
};

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

// Memory in the profile's name, in GB as NVIDIA names profiles (public documentation): the card's
// nominal size times memory slices, with the rounding of that card.
struct Labels {
  std::string_view key;
  unsigned one, two_memory, two, three, four, whole;
};
constexpr Labels kLabels[] = {
    {"A30", 6, 0, 12, 0, 24, 24},         {"A100-40", 5, 10, 10, 20, 20, 40},
    {"A100-80", 10, 20, 20, 40, 40, 80},  {"A100-80-PCIE", 10, 20, 20, 40, 40, 80},
    {"H100", 10, 20, 20, 40, 40, 80},     {"H100-PCIE", 10, 20, 20, 40, 40, 80},
    {"H100-NVL", 12, 24, 24, 47, 47, 94}, {"H200", 18, 35, 35, 71, 71, 141},
    {"B200", 23, 45, 45, 90, 90, 180},    {"RTXPRO6000", 24, 0, 48, 0, 96, 96},
};

}  // namespace

const GpuModel* gpu_model(std::string_view key) {
  for (const auto& model : kModels)
    if (equal_ignoring_case(key, model.key) || equal_ignoring_case(key, model.name)) return &model;
  return nullptr;
}

const GpuModel* gpu_model_by_name(std::string_view name) {
  for (const auto& model : kModels)
    if (name == model.name) return &model;
  return nullptr;
}

std::string gpu_model_keys() {
  std::string out;
  for (const auto& model : kModels) out += (out.empty() ? "" : ", ") + std::string(model.key);
  return out;
}

std::vector<MigProfile> mig_profiles(const GpuModel& model) {
  for (const auto& l : kLabels) {
    if (l.key != model.key) continue;
    auto named = [](unsigned slices, unsigned gigabytes) {
      return fmt::format("{}g.{}gb", slices, gigabytes);
    };
    if (model.mig_compute == 4)
      return {{named(1, l.one), 1, 1, {0, 1, 2, 3}},
              {named(2, l.two), 2, 2, {0, 2}},
              {named(4, l.four), 4, 4, {0}}};
    return {{named(1, l.one), 1, 1, {0, 1, 2, 3, 4, 5, 6}},
            {named(1, l.two_memory), 1, 2, {0, 2, 4, 6}},
            {named(2, l.two), 2, 2, {0, 2, 4}},
            {named(3, l.three), 3, 4, {0, 4}},
            {named(4, l.four), 4, 4, {0}},
            {named(7, l.whole), 7, 8, {0}}};
  }
  return {};
}

unsigned mig_multiprocessors(const GpuModel& model, unsigned compute_slices) {
  return model.mig_sms * compute_slices;
}

}  // namespace takt::emulator
