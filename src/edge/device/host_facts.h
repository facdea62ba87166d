#pragma once
// What the host says about itself, without any GPU.
#include <string>

#include "core/base/quantities.h"

namespace takt::device {

struct HostFacts {
  std::string name;     // as the host names itself
  std::string boot_id;  // changes with every boot; empty when unknown
  int cpus = 1;         // that this process may run on (affinity), not all that are built in
  Bytes memory;         // of the host; zero when unknown
};

HostFacts read_host_facts();

Instant wall_clock();
// CLOCK_BOOTTIME: counts on while the host sleeps and while the wall clock is set.
Duration since_boot();

}  // namespace takt::device
