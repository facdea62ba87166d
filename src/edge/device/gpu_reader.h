#pragma once
// One GPU: everything that is read of it, in the order and thread of one caller.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/model/device.h"
#include "edge/device/gpm_reader.h"
#include "edge/device/gpu_calls.h"
#include "edge/device/gpu_process_reader.h"
#include "edge/device/xid_watch.h"

namespace takt::device {

struct GpuReading {
  Gpu gpu;
  nvmlDevice_t handle = nullptr;         // null: the driver does not give the GPU out
  std::vector<std::string> nvlink_ends;  // PCI ids at the other ends of the active NVLinks
  bool driver_gone = false;              // a call said that the whole driver is gone
  std::string note;                      // a sentence about what is limited; may be empty
};

// The UUID a GPU is listed under until the driver tells its real one.
DeviceUuid unknown_uuid(unsigned index);

// "0000000A:07:00.0" for a location; made from the numbers, for the texts differ between drivers.
std::string pci_text(const nvmlPciInfo_t& pci);

// `presence`: health, memory in use and processes; the rest as it was at the last full reading.
enum class Detail { all, presence };

class GpuReader {
 public:
  GpuReader(std::shared_ptr<NvmlLibrary> library, std::shared_ptr<XidWatch> xids, unsigned index);

  // May block for as long as the driver does.
  GpuReading read(Instant now, Detail detail = Detail::all);
  // The call that is running right now, or null. From any thread.
  const char* running_call() const { return calls_.running(); }

 private:
  std::optional<Missing> identify();
  void read_all(Gpu& gpu, Instant now);
  void read_presence(Gpu& gpu);
  void read_memory(Gpu& gpu);
  void read_memory_without_reserved(Gpu& gpu, std::optional<Missing> why);
  void read_use(Gpu& gpu);
  void read_sensors(Gpu& gpu);
  void read_performance_counters(Gpu& gpu);
  void read_nvlinks();
  void judge_health(Gpu& gpu, const std::optional<Missing>& unidentified) const;

  std::shared_ptr<XidWatch> xids_;
  unsigned index_;
  GpuCalls calls_;
  GpmReader gpm_;
  GpuProcessReader processes_;
  // Found once and kept, so that a GPU that is lost later is still named.
  nvmlDevice_t handle_ = nullptr;
  bool identified_ = false;
  Gpu identity_;
  std::optional<Gpu> full_;  // the last full reading
  std::vector<std::string> nvlink_ends_;
  std::string note_;
};

}  // namespace takt::device
