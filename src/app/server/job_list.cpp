#include "app/server/job_list.h"

#include <algorithm>
#include <set>

namespace takt::server {
namespace {

using control::JobState;
using control::JobView;

bool over(const JobView& job) {
  return job.state == JobState::done || job.state == JobState::failed ||
         job.state == JobState::cancelled;
}

bool fits(const JobView& job, const JobsAsked& asked) {
  return (asked.user.empty() || job.user == asked.user) &&
         (asked.state.empty() || control::to_string(job.state) == asked.state);
}

// As job_view, with a state that only this job is in.
JobView archived_view(const control::Sight& sight, const Archivist::Found& found) {
  return control::job_view(
      {found.state, sight.cluster, sight.plan, sight.policy, sight.places, sight.now}, found.job());
}

store::Archive::Wanted wanted_of(const JobsAsked& asked) {
  store::Archive::Wanted wanted;
  if (!asked.user.empty()) wanted.user = asked.user;
  if (!asked.state.empty()) wanted.outcome = asked.state;
  if (asked.ended_from) wanted.ended_from_us = asked.ended_from->us;
  return wanted;
}

// Takes the oldest ends out until so many are left, or none that is over.
void shorten(JobsFound& found, std::size_t limit) {
  if (limit == 0 || found.jobs.size() <= limit) return;
  std::vector<std::pair<Instant, JobId>> ends;
  for (const JobView& job : found.jobs)
    if (over(job)) ends.emplace_back(job.ended.value_or(job.submitted), job.id);
  const std::size_t surplus = std::min(found.jobs.size() - limit, ends.size());
  std::sort(ends.begin(), ends.end());
  std::set<JobId> leaving;
  for (std::size_t i = 0; i < surplus; ++i) leaving.insert(ends[i].second);
  std::erase_if(found.jobs, [&](const JobView& job) { return leaving.count(job.id) != 0; });
  found.hidden += surplus;
}

}  // namespace

Result<JobsFound> find_jobs(const Controller& controller, const Archivist* archive,
                            const JobsAsked& asked) {
  JobsFound found;
  const bool finished = asked.finished || !asked.state.empty();
  controller.read([&](const control::Sight& sight) {
    found.jobs = control::job_views(sight, finished);
    std::erase_if(found.jobs, [&](const JobView& job) { return !fits(job, asked); });
  });
  // The archive second: what leaves the live state in between is seen twice, not never.
  if (finished && archive != nullptr) {
    auto page = archive->newest(wanted_of(asked), asked.limit == 0 ? SIZE_MAX : asked.limit);
    if (!page) return tl::make_unexpected(page.error());
    found.hidden = page->more;
    std::set<JobId> live;
    for (const JobView& job : found.jobs) live.insert(job.id);
    controller.read([&](const control::Sight& sight) {
      for (const Archivist::Found& job : page->jobs)
        if (live.count(job.id) == 0) found.jobs.push_back(archived_view(sight, job));
    });
  }
  std::sort(found.jobs.begin(), found.jobs.end(),
            [](const JobView& a, const JobView& b) { return a.id < b.id; });
  shorten(found, asked.limit);
  return found;
}

Result<std::optional<JobView>> find_job(const Controller& controller, const Archivist* archive,
                                        JobId id) {
  std::optional<JobView> view;
  controller.read([&](const control::Sight& sight) {
    const auto it = sight.state.jobs.find(id);
    if (it != sight.state.jobs.end()) view = control::job_view(sight, it->second);
  });
  if (view || archive == nullptr) return view;
  auto archived = archive->find(id);
  if (!archived) return tl::make_unexpected(archived.error());
  if (!*archived) return view;
  controller.read([&](const control::Sight& sight) { view = archived_view(sight, **archived); });
  return view;
}

}  // namespace takt::server
