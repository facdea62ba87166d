#include "edge/device/gpm_reader.h"

#include <cmath>
#include <utility>

namespace takt::device {
namespace {

constexpr auto kShortestGap = std::chrono::milliseconds(100);
constexpr double kBytesPerMebibyte = 1024.0 * 1024.0;
constexpr double kRoundingSlack = 0.5;  // per cent above 100 that is rounding, not nonsense

GpmRates all_missing(const Missing& reason) {
  const auto why = tl::make_unexpected(reason);
  return {why, why, why, why, why};
}

Measured<double> value_of(const nvmlGpmMetric_t& metric, double most) {
  if (metric.nvmlReturn != NVML_SUCCESS)
    return tl::make_unexpected(nvml_missing("nvmlGpmMetricsGet", metric.nvmlReturn));
  if (std::isnan(metric.value))
    return missing(MissingKind::no_sample_yet, "nvmlGpmMetricsGet gave no number");
  if (metric.value < 0 || metric.value > most + kRoundingSlack)
    return missing(MissingKind::out_of_range,
                   fmt::format("nvmlGpmMetricsGet gave {}", metric.value));
  return std::min(metric.value, most);
}

Measured<double> ratio(const nvmlGpmMetric_t& metric) {
  return value_of(metric, 100.0).map([](double percent) { return percent / 100.0; });
}

Measured<std::int64_t> bytes_per_second(const nvmlGpmMetric_t& metric) {
  return value_of(metric, 1e6).map([](double mebibytes) {
    return static_cast<std::int64_t>(mebibytes * kBytesPerMebibyte);
  });
}

}  // namespace

std::optional<Missing> GpmReader::prepare(nvmlDevice_t device, bool mig) {
  if (mig && calls_.library().driver_major() > 0 && calls_.library().driver_major() < 550)
    return Missing{MissingKind::not_supported,
                   "GPM on a MIG GPU needs driver 550 or newer: older ones mix up instances"};
  if (prepared_) return unusable_;
  const NvmlFunctions& f = calls_.functions();
  nvmlGpmSupport_t support{NVML_GPM_SUPPORT_VERSION, 0};
  nvmlReturn_t code = calls_.call(f.nvmlGpmQueryDeviceSupport, device, &support);
  if (code != NVML_SUCCESS) {
    unusable_ = nvml_missing(f.nvmlGpmQueryDeviceSupport.name, code);
  } else if (support.isSupportedDevice == 0) {
    unusable_ = Missing{MissingKind::not_supported, "this GPU has no performance monitoring (GPM)"};
  }
  for (nvmlGpmSample_t& sample : samples_) {
    if (unusable_) break;
    code = calls_.call(f.nvmlGpmSampleAlloc, &sample);
    if (code != NVML_SUCCESS) unusable_ = nvml_missing(f.nvmlGpmSampleAlloc.name, code);
  }
  prepared_ = true;
  if (!unusable_) request_ = std::make_unique<nvmlGpmMetricsGet_t>();
  return unusable_;
}

GpmRates GpmReader::read(nvmlDevice_t device, bool mig, std::chrono::steady_clock::time_point now) {
  if (const auto reason = prepare(device, mig)) return all_missing(*reason);
  if (older_at_ && now - *older_at_ < kShortestGap) return last_;
  const NvmlFunctions& f = calls_.functions();
  const nvmlReturn_t code = calls_.call(f.nvmlGpmSampleGet, device, samples_[1]);
  if (code != NVML_SUCCESS) {
    older_at_.reset();
    last_ = all_missing(nvml_missing(f.nvmlGpmSampleGet.name, code));
    return last_;
  }
  if (older_at_)
    last_ = rates_between();
  else
    last_ = GpmRates{};
  std::swap(samples_[0], samples_[1]);
  older_at_ = now;
  return last_;
}

GpmRates GpmReader::rates_between() {
  constexpr std::array ids{NVML_GPM_METRIC_SM_UTIL, NVML_GPM_METRIC_ANY_TENSOR_UTIL,
                           NVML_GPM_METRIC_DRAM_BW_UTIL, NVML_GPM_METRIC_PCIE_RX_PER_SEC,
                           NVML_GPM_METRIC_PCIE_TX_PER_SEC};
  *request_ = {};
  request_->version = NVML_GPM_METRICS_GET_VERSION;
  request_->numMetrics = ids.size();
  request_->sample1 = samples_[0];
  request_->sample2 = samples_[1];
  for (std::size_t i = 0; i < ids.size(); ++i) request_->metrics[i].metricId = ids[i];
  const NvmlFunctions& f = calls_.functions();
  const nvmlReturn_t code = calls_.call(f.nvmlGpmMetricsGet, request_.get());
  if (code != NVML_SUCCESS) return all_missing(nvml_missing(f.nvmlGpmMetricsGet.name, code));
  const auto& m = request_->metrics;
  return {ratio(m[0]), ratio(m[1]), ratio(m[2]), bytes_per_second(m[3]), bytes_per_second(m[4])};
}

GpmReader::~GpmReader() {
  for (const nvmlGpmSample_t sample : samples_)
    if (sample != nullptr) calls_.call(calls_.functions().nvmlGpmSampleFree, sample);
}

}  // namespace takt::device
