#pragma once
// GPU performance monitoring (GPM, Hopper and later): how busy the parts of a GPU were between two
// readings, without DCGM. Needs two samples at least 100 ms apart (FACTS B2), so the first reading
// of a GPU has none.
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/base/measured.h"
#include "edge/device/gpu_calls.h"

namespace takt::device {

struct GpmRates {
  Measured<double> sm_active = missing(MissingKind::no_sample_yet);  // ratios 0-1
  Measured<double> tensor_active = missing(MissingKind::no_sample_yet);
  Measured<double> dram_active = missing(MissingKind::no_sample_yet);
  Measured<std::int64_t> pcie_rx = missing(MissingKind::no_sample_yet);  // bytes per second
  Measured<std::int64_t> pcie_tx = missing(MissingKind::no_sample_yet);
};

class GpmReader {
 public:
  explicit GpmReader(GpuCalls& calls) : calls_(calls) {}
  ~GpmReader();
  GpmReader(const GpmReader&) = delete;
  GpmReader& operator=(const GpmReader&) = delete;

  // `mig`: the GPU is partitioned. Drivers before 550 then mix up numbers of instances.
  GpmRates read(nvmlDevice_t device, bool mig, std::chrono::steady_clock::time_point now);

 private:
  std::optional<Missing> prepare(nvmlDevice_t device, bool mig);
  GpmRates rates_between();

  GpuCalls& calls_;
  std::optional<Missing> unusable_;  // known after the first reading
  bool prepared_ = false;
  std::array<nvmlGpmSample_t, 2> samples_{};  // older, newer
  std::optional<std::chrono::steady_clock::time_point> older_at_;
  std::unique_ptr<nvmlGpmMetricsGet_t> request_;
  GpmRates last_;
};

}  // namespace takt::device
