#include "edge/device/gpu_slot.h"

#include <algorithm>

namespace takt::device {

GpuSlot::GpuSlot(std::shared_ptr<NvmlLibrary> library, std::shared_ptr<XidWatch> xids,
                 unsigned index)
    : xids_(xids),
      index_(index),
      reader_(std::make_shared<GpuReader>(std::move(library), std::move(xids), index)) {}

GpuSlot::~GpuSlot() {
  // The reader's end calls the driver; the task owns the last reference to it.
  worker_.set_patience(milliseconds(200));
  if (!worker_.post([reader = std::move(reader_)] {})) worker_.set_patience(Duration{0});
}

void GpuSlot::start(Instant now, Detail detail) {
  if (pending_) {
    std::optional<GpuReading> late = pending_->take(std::chrono::steady_clock::now());
    if (!late) return;
    last_ = std::move(late);
  }
  pending_ = std::make_shared<Pending<GpuReading>>();
  asked_at_ = std::chrono::steady_clock::now();
  const bool posted = worker_.post([reader = reader_, answer = pending_, now, detail] {
    answer->give(reader->read(now, detail));
  });
  if (!posted) pending_.reset();
}

GpuReading GpuSlot::finish(std::chrono::steady_clock::time_point end, Duration deadline) {
  if (!pending_) return unresponsive(deadline);
  std::optional<GpuReading> answer =
      pending_->take(std::min(end, asked_at_ + std::chrono::microseconds(deadline.us)));
  if (!answer) return unresponsive(deadline);
  pending_.reset();
  last_ = answer;
  return *std::move(answer);
}

GpuReading GpuSlot::unresponsive(Duration deadline) const {
  GpuReading reading;
  Gpu& gpu = reading.gpu;
  gpu.uuid = unknown_uuid(index_);
  gpu.index = index_;
  const auto why = missing(MissingKind::timed_out);
  gpu.minor = why;
  if (last_) {
    const Gpu& known = last_->gpu;
    gpu.uuid = known.uuid;
    gpu.minor = known.minor;
    gpu.model = known.model;
    gpu.pci_bus_id = known.pci_bus_id;
    gpu.numa_node = known.numa_node;
    gpu.memory_total = known.memory_total;
    gpu.mig = known.mig;
    for (MigInstance& instance : gpu.mig.instances) instance.memory_used = why;
    reading.nvlink_ends = last_->nvlink_ends;
  } else {
    gpu.memory_total = why;
  }
  gpu.memory_used = gpu.memory_reserved = why;
  gpu.utilization_percent = gpu.memory_utilization_percent = why;
  gpu.sm_active_ratio = gpu.tensor_active_ratio = gpu.dram_active_ratio = why;
  gpu.pcie_rx_bytes_per_second = gpu.pcie_tx_bytes_per_second = why;
  gpu.temperature_celsius = gpu.sm_clock_mhz = gpu.memory_clock_mhz = gpu.fan_percent = why;
  gpu.power_watts = gpu.power_limit_watts = why;
  gpu.energy_millijoules = gpu.ecc_uncorrected = why;
  gpu.throttle_reasons = why;
  gpu.performance_state = why;
  gpu.processes = why;
  gpu.xids = xids_->events(index_);
  gpu.health = GpuHealth::unresponsive;
  const char* call = reader_->running_call();
  const auto waited = std::chrono::steady_clock::now() - asked_at_;
  gpu.health_reason = fmt::format(
      "GPU {} has not answered {} for {:.1f} s (deadline {:.1f} s): the driver or the GPU hangs. "
      "Look "
      "at \"dmesg | grep -i xid\"; it is used again when it answers, else reset it or reboot.",
      index_, call == nullptr ? "the driver" : call, std::chrono::duration<double>(waited).count(),
      static_cast<double>(deadline.us) / 1e6);
  return reading;
}

}  // namespace takt::device
