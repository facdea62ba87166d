#pragma once
// The node agent process: reads the devices, launches and supervises attempts, and reports both.
// The only privileged part; it decides nothing. It leaves when its socket to the controller closes;
// the jobs go on, and the next agent finds them by their records.
#include <string>

#include "core/base/quantities.h"
#include "edge/device/device_probe.h"
#include "edge/launch/launcher.h"

namespace takt::agent {

struct AgentOptions {
  int channel_fd = -1;  // connected stream socket to the controller
  std::string version;  // of this takt
  launch::LauncherOptions launcher;
  device::ProbeOptions probe;
  Duration sample_interval = seconds(1);
};

// Runs until the controller is gone, or shows that it is of a release that speaks otherwise.
// Returns the exit code; what is wrong goes to standard error.
int run_agent(AgentOptions options);

}  // namespace takt::agent
