#pragma once
// One GPU of the probe: its reader in a thread of its own, and what is said about it while it does
// not answer.
#include <chrono>
#include <memory>
#include <optional>

#include "edge/device/gpu_reader.h"
#include "edge/device/pending.h"
#include "edge/device/worker.h"

namespace takt::device {

class GpuSlot {
 public:
  GpuSlot(std::shared_ptr<NvmlLibrary> library, std::shared_ptr<XidWatch> xids, unsigned index);
  // Gives the reader back to the driver in its own thread, or leaves both behind if it hangs.
  ~GpuSlot();
  GpuSlot(const GpuSlot&) = delete;
  GpuSlot& operator=(const GpuSlot&) = delete;

  // Starts a reading unless one is still running. An answer to an older question only tells the
  // GPU's identity, for its numbers are old.
  void start(Instant now, Detail detail);
  // Waits for the reading until `end`, and not longer than `deadline` from the question on: a GPU
  // that hangs since an earlier read is not waited for.
  GpuReading finish(std::chrono::steady_clock::time_point end, Duration deadline);

 private:
  GpuReading unresponsive(Duration deadline) const;

  std::shared_ptr<XidWatch> xids_;
  unsigned index_;
  std::shared_ptr<GpuReader> reader_;
  Worker worker_;
  std::shared_ptr<Pending<GpuReading>> pending_;
  std::chrono::steady_clock::time_point asked_at_{};
  std::optional<GpuReading> last_;
};

}  // namespace takt::device
