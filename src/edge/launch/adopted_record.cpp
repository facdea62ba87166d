#include "edge/launch/adopted_record.h"

#include <ctime>

#include "edge/launch/cgroup_tree.h"

namespace takt::launch {
namespace {

std::int64_t clock_us(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

}  // namespace

std::int64_t boottime_us() { return clock_us(CLOCK_BOOTTIME); }

ExitRecord outcome(std::uint64_t generation, ExitCause cause, std::string message) {
  ExitRecord record;
  record.generation = generation;
  record.status.cause = cause;
  record.status.message = std::move(message);
  record.ended = Instant{clock_us(CLOCK_REALTIME)};
  record.processes_gone = true;
  return record;
}

void remove_spec_cgroups(const std::string& place) {
  const auto summary = read_spec_summary(place);
  if (!summary) return;
  for (const std::string& cgroup : summary->cgroups) (void)remove_cgroup(cgroup);
}

}  // namespace takt::launch
