#pragma once
// The processes on one GPU as the driver lists them; names and owners come from the process table.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/quantities.h"
#include "core/model/device.h"
#include "edge/device/gpu_calls.h"

namespace takt::device {

// An entry of the driver's list.
struct ListedProcess {
  std::int64_t pid = 0;
  std::uint64_t memory = NVML_VALUE_NOT_AVAILABLE_ULL;  // bytes
  unsigned gpu_instance = NVML_NO_INSTANCE_ID;
  unsigned compute_instance = NVML_NO_INSTANCE_ID;
};

// What a buffer is filled with before the driver writes its list into it.
inline constexpr std::byte kUntouched{0xA5};

// Reads `count` entries. Drivers 535.43 to before 535.86 write entries of 32 bytes where all others
// write 24 under the same name. The buffer tells which: it has room for `count` entries of 32 bytes
// and held kUntouched before; where that does not decide, the layout whose pids and instance
// numbers make sense is taken. Neither makes sense: out_of_range, for a list of wrong pids is worse
// than none.
Measured<std::vector<ListedProcess>> parse_process_list(std::span<const std::byte> buffer,
                                                        std::size_t count);

class GpuProcessReader {
 public:
  // Compute and graphics processes merged by pid and instance. `mig` attributes them to instances;
  // `memory_total` bounds what a process can hold (zero: unknown).
  Measured<std::vector<GpuProcess>> read(GpuCalls& calls, nvmlDevice_t device, const MigState& mig,
                                         Bytes memory_total, Instant now);

  // The same without asking how much each used since it was last asked.
  Measured<std::vector<GpuProcess>> list(GpuCalls& calls, nvmlDevice_t device, const MigState& mig,
                                         Bytes memory_total) const;

 private:
  void read_utilization(GpuCalls& calls, nvmlDevice_t device, Instant now,
                        std::vector<GpuProcess>& processes);
  std::uint64_t newest_sample_ = 0;  // the driver's time stamp in microseconds
};

}  // namespace takt::device
