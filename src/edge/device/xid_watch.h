#pragma once
// Waits for the driver's error events (XIDs) in a thread of its own, so that each comes with its
// time and none between two polls is missed.
#include <memory>
#include <string>
#include <vector>

#include "core/model/device.h"
#include "edge/device/nvml_library.h"
#include "edge/device/worker.h"

namespace takt::device {

class XidWatch {
 public:
  // Calls the driver: not for a thread that must not block. Works without events where the driver
  // has none; `problem` then says why.
  explicit XidWatch(std::shared_ptr<NvmlLibrary> library);
  ~XidWatch();
  XidWatch(const XidWatch&) = delete;
  XidWatch& operator=(const XidWatch&) = delete;

  // Adds a GPU; to be called from the thread that talks to it. Empty, or why its XIDs are not seen.
  std::string add(nvmlDevice_t device, unsigned index);
  // The last few events of a GPU, oldest first.
  std::vector<XidEvent> events(unsigned index) const;

 private:
  struct State;
  static void watch(State& state);
  std::shared_ptr<State> state_;
  Worker worker_;
};

}  // namespace takt::device
