#pragma once
// What this host has and what it is doing right now: the device edge's only public door. It talks
// to NVIDIA's management library (NVML), loaded at run time, and to /proc.
//
// Rules it keeps: one GPU that does not answer costs only that GPU; a driver that is absent, too
// old or broken is a sentence in Node::driver_problem and is tried again with every read; a reading
// that is impossible or not offered is Missing with a reason, never zero.
#include <memory>
#include <string>

#include "core/base/quantities.h"
#include "core/model/device.h"
#include "edge/device/process_table.h"

namespace takt::device {

struct ProbeOptions {
  std::string nvml_path = "libnvidia-ml.so.1";  // a name for the loader, or a path
  std::string node_name;                        // empty: the host's own name
  // How long the driver, and each GPU, may take for one read. `read` takes at most a little longer.
  Duration deadline = seconds(2);
  std::shared_ptr<const ProcessTable> processes;  // null: this host's /proc
};

class DeviceProbe {
 public:
  // Starts loading the driver's library in the background; never fails and never blocks.
  static std::unique_ptr<DeviceProbe> open(ProbeOptions options);

  // Calls that hang are left behind in their threads; everything else is given back to the driver.
  virtual ~DeviceProbe() = default;

  // The whole node with current readings, GPUs ordered by NVML's index. `now` is the time of the
  // reading. A GPU that did not answer keeps the identity it had before; one that never answered is
  // listed under the made-up UUID "unknown-gpu-<index>" until it does. Not for two threads at once.
  virtual Node read(Instant now) = 0;
  // The same, but only health, memory in use and processes are looked at; everything else is as it
  // was at the last full read. Some calls measure for 20 ms and more, and whether a process is
  // still there should not wait for them.
  virtual Node read_presence(Instant now) = 0;
};

}  // namespace takt::device
