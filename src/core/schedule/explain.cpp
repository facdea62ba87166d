#include "core/schedule/explain.h"

#include <fmt/core.h>

namespace takt::schedule {

std::string shape_of(const WaitingJob& job) {
  const JobSpec& s = *job.spec;
  std::string types;
  for (const std::string& t : s.gpus.types) types += t + ",";
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", to_string(*s.tier),
                     s.isolation ? to_string(*s.isolation) : "", s.gpus.count.value_or(-1),
                     s.gpus.memory.value_or(Bytes{-1}).value, s.gpus.compute_percent.value_or(-1),
                     types, s.gpus.distributed, static_cast<int>(s.gpus.link), s.cpus,
                     s.memory.value_or(Bytes{0}).value, s.time.value_or(Duration{-1}).us);
}

Explanation backing_off(const WaitingJob& job, Instant now) {
  Explanation why;
  why.blockers.push_back({BlockerKind::backing_off, "its next attempt",
                          fmt::format("in {} s", ((job.not_before - now).us + 999'999) / 1'000'000),
                          "wait; it starts again by itself"});
  why.expected_start = job.not_before;
  return why;
}

}  // namespace takt::schedule
