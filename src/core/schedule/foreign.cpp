#include "core/schedule/foreign.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "core/base/planted.h"
#include "core/schedule/place.h"

namespace takt::schedule {
namespace {

// A desktop's display server below the policy's memory does not block a GPU.
bool ignored(const GpuProcess& process, const Policy& policy) {
  if (!process.name || !process.memory) return false;
  if (*process.memory > policy.ignored_memory_max) return false;
  const std::string& path = *process.name;
  const std::string program = path.substr(path.find_last_of('/') + 1);
  return std::find(policy.ignored_programs.begin(), policy.ignored_programs.end(), program) !=
         policy.ignored_programs.end();
}

Blocker foreign_blocker(const Gpu& gpu, const std::string& label,
                        const std::vector<const GpuProcess*>& others) {
  std::string text = label + ": ";
  if (gpu.memory_total && gpu.memory_used)
    text += fmt::format("{} of {} free; ", gib(*gpu.memory_total - *gpu.memory_used),
                        gib(*gpu.memory_total));
  for (const GpuProcess* p : others)
    text += fmt::format("{}{} held by {}", p == others.front() ? "" : ", ",
                        p->memory ? gib(*p->memory) : "an unknown amount of memory",
                        describe_process(*p));
  const GpuProcess& first = *others.front();
  return {BlockerKind::foreign_process, "a GPU without other processes",
          text + ": not started by takt",
          fmt::format("ask {} to end pid {}{}, or wait until it ends",
                      first.user ? *first.user : "its owner", first.pid,
                      others.size() > 1 ? " (and the others)" : "")};
}

}  // namespace

std::string describe_process(const GpuProcess& process) {
  std::string who = process.user ? *process.user : "owner unknown";
  std::string what = process.name ? *process.name : "program unknown";
  return fmt::format("pid {} ({}, {})", process.pid, who, what);
}

std::optional<Blocker> closed_because(const Gpu& gpu, const std::string& label,
                                      const Policy& policy) {
  if (gpu.health != GpuHealth::ok)
    return Blocker{BlockerKind::device_unhealthy, "a healthy GPU",
                   fmt::format("{} is {}: {}", label, to_string(gpu.health), gpu.health_reason),
                   fmt::format("look at {} with `nvidia-smi -q` and `takt doctor`, reset it or "
                               "restart the host; takt uses it again by itself",
                               label)};
  if (!gpu.processes)
    return Blocker{BlockerKind::device_unhealthy, "a GPU that is proven free",
                   fmt::format("{}: its processes cannot be listed ({})", label,
                               to_string(gpu.processes.error())),
                   "run `takt doctor` to see what is missing"};
  std::vector<const GpuProcess*> others;
  for (const GpuProcess& process : *gpu.processes)
    if (process.foreign() && !ignored(process, policy)) others.push_back(&process);
  if (others.empty() || planted(Planted::stranger_ignored)) return std::nullopt;
  return foreign_blocker(gpu, label, others);
}

std::optional<Blocker> unseen_memory(const Gpu& gpu, const std::string& label,
                                     const Policy& policy) {
  if (!gpu.memory_used || !gpu.processes) return std::nullopt;
  Bytes visible;
  for (const GpuProcess& process : *gpu.processes)
    if (process.memory) visible += *process.memory;
  const Bytes unseen = *gpu.memory_used - visible;
  if (unseen <= policy.ignored_memory_max) return std::nullopt;
  // A process whose memory the driver does not tell explains the rest.
  for (const GpuProcess& process : *gpu.processes)
    if (!process.memory) return std::nullopt;
  return Blocker{
      BlockerKind::foreign_process, "a GPU without other processes",
      fmt::format("{}: {} in use by no process that this host shows", label, gib(unseen)),
      "look for containers or leftovers that use it (`fuser -v /dev/nvidia*` as root)"};
}

}  // namespace takt::schedule
