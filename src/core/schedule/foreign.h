#pragma once
// Which GPUs nothing may start on: sick ones, and ones with somebody on them whom takt did not
// start. Such processes are respected, shown with pid, owner and program, and never killed.
#include <optional>
#include <string>

#include "core/model/blocker.h"
#include "core/model/device.h"
#include "core/model/policy.h"

namespace takt::schedule {

// Set when the device is closed to everybody.
std::optional<Blocker> closed_because(const Gpu& gpu, const std::string& label,
                                      const Policy& policy);

// Set when memory is in use although no process is visible and nothing is granted.
std::optional<Blocker> unseen_memory(const Gpu& gpu, const std::string& label,
                                     const Policy& policy);

// "pid 4242 (bob, vllm)": with what is known.
std::string describe_process(const GpuProcess& process);

}  // namespace takt::schedule
