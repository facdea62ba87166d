#pragma once
// The processes of the attempt as a whole: signalling them, counting what they used, and clearing
// their cgroups away.
#include "edge/launch/shim/processes.h"
#include "edge/launch/shim/spec.h"

namespace takt::shim {

// All living processes: below the shim, and in the attempt's cgroup (a process can leave the one by
// rights of root, but not both).
void add_family(const Spec& spec, PidList& pids);
// TERM, and CONT so that stopped ones hear it.
void ask_family_to_end(const Spec& spec);
// KILL, at once for the whole cgroup where the kernel can (cgroup.kill, Linux 5.14).
void kill_family(const Spec& spec);
// True when the attempt's cgroup has no process, or when there is none.
bool cgroup_is_empty(const Spec& spec);

struct Usage {
  std::int64_t cpu_us = 0;  // of all processes; from the cgroup, else of those that were waited for
  std::int64_t user_us = 0;  // of those that were waited for
  std::int64_t system_us = 0;
  std::int64_t memory_peak = -1;  // bytes; -1: nobody counted
  bool oom = false;               // the out-of-memory killer struck
};
Usage read_usage(const Spec& spec);

// rmdir of all cgroups that the job joined. Ignores failures: the launcher tries again.
void remove_cgroups(const Spec& spec);

}  // namespace takt::shim
