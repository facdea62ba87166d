#pragma once
// The processes of the attempt as a whole: signalling them, counting what they used, and clearing
// their cgroups away.
#include "edge/launch/shim/processes.h"
#include "edge/launch/shim/spec.h"

namespace takt::shim {

// Both ways into a cgroup without the kernel's lock on all forking of the host: taking that for a
// moment costs 10 ms and more on a quiet machine (an RCU grace period), and cgroup.procs takes it.
//
// v2: like fork(), the child begins in `folder` (clone3 with CLONE_INTO_CGROUP, Linux 5.7). Null or
// "" is a plain fork. `joined` says whether the child is there; where not, cgroup.procs has to do.
pid_t fork_into(const char* folder, bool& joined);
// v1: the calling thread joins; for a process of one thread that is the process ("0" into `tasks`
// takes no lock since Linux 5.4). Returns 0 or errno.
int join_v1(const char* folder);
// Any version, any process: writes cgroup.procs. Returns 0 or errno.
int move_into(const char* folder, pid_t pid);
// v1 cgroups have a file `tasks`, v2 cgroups have not.
bool is_v1(const char* folder);

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
