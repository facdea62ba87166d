#include "app/report/wait_log.h"

#include <algorithm>

namespace takt::report {

namespace {
constexpr std::size_t kJobsMax = 20'000;
}  // namespace

void WaitLog::look(const std::vector<control::JobView>& jobs, Instant now) {
  const Duration since = std::max(now - last_, Duration{});
  for (const auto& [job, kinds] : open_)
    for (BlockerKind kind : kinds) {
      Duration& time = waits_[job].times[kind];
      time = time + since;
    }
  open_.clear();
  for (const control::JobView& job : jobs) {
    if (job.state != control::JobState::waiting) continue;
    Wait& wait = waits_[job.id];
    std::vector<BlockerKind>& kinds = open_[job.id];
    for (const Blocker& blocker : job.waiting_for) {
      wait.last[blocker.kind] = blocker;
      if (std::find(kinds.begin(), kinds.end(), blocker.kind) == kinds.end())
        kinds.push_back(blocker.kind);
    }
  }
  // The oldest jobs are forgotten first, as they are in the live state.
  while (waits_.size() > kJobsMax) waits_.erase(waits_.begin());
  last_ = std::max(last_, now);
}

}  // namespace takt::report
