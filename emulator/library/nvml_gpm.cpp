// GPM: two samples of running totals, and the averages between them.
#include <cmath>
#include <limits>

#include "library/session.h"

// What an nvmlGpmSample_t points to: the numbers of the daemon's "gpmsampleget".
struct nvmlGpmSample_st {
  std::vector<std::uint64_t> totals;
};

using namespace takt::emulator;

namespace {

enum Total : std::size_t { time_us, busy, sm, tensor, dram, pcie_tx, pcie_rx, total_count };

nvmlReturn_t sample_into(nvmlDevice_t device, int mig, nvmlGpmSample_t sample) {
  Session& session = Session::instance();
  if (!session.started()) return NVML_ERROR_UNINITIALIZED;
  if (sample == nullptr || !session.knows(device)) return NVML_ERROR_INVALID_ARGUMENT;
  Reply reply;
  Request request{"gpmsampleget", mig, {}, {}};
  nvmlReturn_t code = session.ask(device->gpu, request, reply);
  if (code != NVML_SUCCESS) return code;
  if (reply.numbers.size() != total_count) return NVML_ERROR_UNKNOWN;
  sample->totals = reply.numbers;
  return NVML_SUCCESS;
}

void measure(nvmlGpmMetric_t& metric, const std::vector<std::uint64_t>& a,
             const std::vector<std::uint64_t>& b) {
  auto change = [&](Total which) {
    return static_cast<double>(b[which]) - static_cast<double>(a[which]);
  };
  double elapsed_us = change(time_us);
  metric.nvmlReturn = NVML_SUCCESS;
  constexpr double kMebibyte = 1048576.0;
  switch (metric.metricId) {
    case NVML_GPM_METRIC_GRAPHICS_UTIL: metric.value = 100 * change(busy) / elapsed_us; return;
    case NVML_GPM_METRIC_SM_UTIL: metric.value = 100 * change(sm) / elapsed_us; return;
    // A warp on an SM is resident on a part of it: half is usual and enough for the emulation.
    case NVML_GPM_METRIC_SM_OCCUPANCY: metric.value = 50 * change(sm) / elapsed_us; return;
    case NVML_GPM_METRIC_ANY_TENSOR_UTIL: metric.value = 100 * change(tensor) / elapsed_us; return;
    case NVML_GPM_METRIC_DRAM_BW_UTIL: metric.value = 100 * change(dram) / elapsed_us; return;
    case NVML_GPM_METRIC_PCIE_TX_PER_SEC:
      metric.value = change(pcie_tx) / kMebibyte / elapsed_us * 1e6;
      return;
    case NVML_GPM_METRIC_PCIE_RX_PER_SEC:
      metric.value = change(pcie_rx) / kMebibyte / elapsed_us * 1e6;
      return;
    default:
      metric.nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
      metric.value = std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace

extern "C" {

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t* support) {
  if (support != nullptr && support->version != NVML_GPM_SUPPORT_VERSION)
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  Reply reply;
  nvmlReturn_t code = ask_device("gpmquerydevicesupport", device, support, reply, 1);
  if (code == NVML_SUCCESS) support->isSupportedDevice = static_cast<unsigned>(reply.numbers[0]);
  return code;
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t* sample) {
  if (sample == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *sample = new nvmlGpmSample_st;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample) {
  if (sample == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  delete sample;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample) {
  return sample_into(device, -1, sample);
}

nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned int gpu_instance,
                                 nvmlGpmSample_t sample) {
  // Which MIG device has this instance: the first whose handle says so.
  for (unsigned i = 0;; ++i) {
    nvmlDevice_t mig = nullptr;
    nvmlReturn_t code = nvmlDeviceGetMigDeviceHandleByIndex(device, i, &mig);
    if (code != NVML_SUCCESS) return code;
    unsigned id = 0;
    if (nvmlDeviceGetGpuInstanceId(mig, &id) == NVML_SUCCESS && id == gpu_instance)
      return sample_into(device, mig->mig, sample);
  }
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t* metrics) {
  if (metrics == nullptr || metrics->sample1 == nullptr || metrics->sample2 == nullptr)
    return NVML_ERROR_INVALID_ARGUMENT;
  if (metrics->version != NVML_GPM_METRICS_GET_VERSION) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (metrics->numMetrics > NVML_GPM_METRIC_MAX) return NVML_ERROR_INVALID_ARGUMENT;
  const auto& a = metrics->sample1->totals;
  const auto& b = metrics->sample2->totals;
  if (a.size() != total_count || b.size() != total_count || b[time_us] <= a[time_us])
    return NVML_ERROR_INVALID_ARGUMENT;
  for (unsigned i = 0; i < metrics->numMetrics; ++i) measure(metrics->metrics[i], a, b);
  return NVML_SUCCESS;
}

}  // extern "C"
