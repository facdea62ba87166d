// What a capture leaves out about MIG devices and their sizes tell.
#include <fmt/core.h>

#include <cmath>

#include "fleet/gpu_models.h"
#include "fleet/smi_fleet.h"

namespace takt::emulator {
namespace {

// 64 bits of FNV-1a: identity for devices whose UUID was not printed.
std::uint64_t fingerprint(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

std::string made_up_uuid(const FleetGpu& gpu, const FleetMig& mig) {
  auto a = fingerprint(fmt::format("{}/{}/{}", gpu.uuid, mig.gpu_instance, mig.compute_instance));
  auto b = fingerprint(fmt::format("{}/mig/{}", mig.gpu_instance, gpu.uuid));
  return fmt::format("MIG-{:08x}-{:04x}-5{:03x}-8{:03x}-{:012x}", a >> 32, (a >> 16) & 0xffff,
                     a & 0xfff, (b >> 48) & 0xfff, b & 0xffffffffffffULL);
}

// A slice's SMs and the 8 (or 4) memory slices divide what nvidia-smi prints; the largest instances
// of H100 have a few SMs less than their slices would, so the number is rounded up.
void derive_slices(const FleetGpu& gpu, const GpuModel& model, FleetMig& mig) {
  if (model.mig_sms == 0) return;
  if (!mig.compute_slices && mig.multiprocessors) {
    auto slices = (*mig.multiprocessors + model.mig_sms - 1) / model.mig_sms;
    mig.compute_slices = std::min<std::uint64_t>(slices, model.mig_compute);
  }
  if (!mig.memory_slices && mig.memory_total && gpu.memory_total) {
    double share = static_cast<double>(*mig.memory_total) / static_cast<double>(*gpu.memory_total);
    auto slices = static_cast<std::uint64_t>(std::llround(share * model.mig_memory));
    mig.memory_slices = std::max<std::uint64_t>(slices, 1);
  }
  // 3g and 4g take the same memory; with one SM count rounded up 60 of 64 SMs would read as 4g.
  if (mig.compute_slices && *mig.compute_slices == 4 && model.mig_compute == 7 &&
      mig.multiprocessors && *mig.multiprocessors < 4ULL * model.mig_sms)
    mig.compute_slices = 3;
}

}  // namespace

void complete_migs(FleetGpu& gpu) {
  const GpuModel* model = gpu_model_by_name(gpu.name);
  if (model != nullptr && model->mig_sms != 0) gpu.mig_max = model->mig_compute;
  gpu.mig_max = std::max(gpu.mig_max, static_cast<unsigned>(gpu.migs.size()));
  for (auto& mig : gpu.migs) {
    if (mig.uuid.empty()) mig.uuid = made_up_uuid(gpu, mig);
    if (model != nullptr) derive_slices(gpu, *model, mig);
  }
}

}  // namespace takt::emulator
