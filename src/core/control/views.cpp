#include "core/control/views.h"

#include <fmt/core.h>

#include "core/schedule/decide.h"
#include "core/schedule/place.h"

namespace takt::control {
namespace {

std::string device_label(const Sight& sight, const Grant& grant, const DeviceGrant& device) {
  std::string label = device.uuid.value;
  const auto it = sight.cluster.nodes.find(grant.node);
  if (it == sight.cluster.nodes.end()) return label;
  for (const Gpu& gpu : it->second.report.node.gpus) {
    if (gpu.uuid != device.gpu) continue;
    label = fmt::format("gpu{}", gpu.index);
    if (device.kind == DeviceKind::share)
      label += fmt::format(" {:.1f} GiB", static_cast<double>(device.memory.value) / (1 << 30));
    if (device.kind == DeviceKind::mig_instance)
      for (const MigInstance& m : gpu.mig.instances)
        if (m.uuid == device.uuid)
          label += m.start >= 0 ? fmt::format(" {}@{}", m.profile, m.start) : " " + m.profile;
  }
  return sight.cluster.nodes.size() > 1 ? grant.node.value + ":" + label : label;
}

std::vector<std::string> granted_decision(const Job& job, const JobView& view) {
  std::string devices;
  for (const DeviceLabel& d : view.devices) devices += (devices.empty() ? "" : ", ") + d.label;
  const Grant& grant = job.attempt->grant;
  if (grant.devices.empty() && schedule::wants_gpu(job.spec()))
    return {"asked: " + view.request,
            "handed to " + grant.node.value + ", which has not said where it goes"};
  return {"asked: " + view.request,
          "granted on " + grant.node.value + ": " + (devices.empty() ? "no GPU" : devices),
          "isolation: " + to_string(grant.isolation)};
}

void attempt_view(const Sight& sight, const Job& job, JobView& view) {
  const Attempt& a = *job.attempt;
  view.started = a.started;
  view.ended = a.ended;
  view.exit = a.exit;
  view.grant = a.grant;
  for (const DeviceGrant& d : a.grant.devices)
    view.devices.push_back({d, device_label(sight, a.grant, d)});
  view.stdout_path = stdout_path(sight.places, a.id);
  view.stderr_path = stderr_path(sight.places, a.id);
  if (a.started && !a.exit)
    if (job.spec().time) view.expected_end = *a.started + *job.spec().time;
  if (a.stop && !job.finished) view.reason = a.stop->detail;
}

void waiting_view(const Sight& sight, const Job& job, JobView& view) {
  if (job.hold)
    view.waiting_for.push_back({BlockerKind::held, "to be released", job.hold->reason,
                                "`takt release " + to_string(job.id) + "`"});
  if (job.holding())
    view.waiting_for.push_back(
        {BlockerKind::draining, "the end of its last attempt",
         job.attempt->kill_failed.empty()
             ? "processes of attempt " + to_string(job.attempt->id) + " are not yet proven gone"
             : job.attempt->kill_failed,
         "wait; it goes on by itself when they are"});
  if (!view.waiting_for.empty()) {
    view.expected_start_unknown = job.hold ? "it is held" : "its last attempt is not yet gone";
    return;
  }
  const auto it = sight.plan.waiting.find(job.id);
  if (it == sight.plan.waiting.end()) {
    view.expected_start_unknown = "the scheduler has not looked at it yet";
    return;
  }
  view.waiting_for = it->second->blockers;
  view.decision = it->second->decision;
  view.expected_start = it->second->expected_start;
  view.expected_start_unknown = it->second->expected_start_unknown;
}

}  // namespace

JobView job_view(const Sight& sight, const Job& job) {
  JobView view;
  view.id = job.id;
  view.name = job.spec().name;
  view.user = job.submitter().user;
  view.uid = job.submitter().uid;
  view.tier = *job.spec().tier;
  view.state = job.state();
  view.command = job.spec().command_text;
  view.group = job.submission->group;
  view.group_index = job.group_index;
  view.group_size = job.submission->group_size;
  view.submitted = job.submission->at;
  view.attempts = static_cast<int>(job.attempts);
  view.request = schedule::describe_request(job.spec());
  if (job.attempt) attempt_view(sight, job, view);
  if (job.attempt) view.decision = granted_decision(job, view);
  if (job.waiting()) waiting_view(sight, job, view);
  if (job.finished) {
    view.reason = job.finished->reason;
    view.ended = job.finished->at;
  }
  for (const EnvironmentVariable& e : sight.state.environment_of(job))
    view.environment_names.push_back(e.name);
  return view;
}

std::vector<JobView> job_views(const Sight& sight, bool all) {
  std::vector<JobView> views;
  views.reserve(all ? sight.state.jobs.size()
                    : sight.state.waiting.size() + sight.state.holding.size());
  for (const auto& [id, job] : sight.state.jobs)
    if (all || !job.finished) views.push_back(job_view(sight, job));
  return views;
}

std::vector<NodeView> node_views(const Cluster& cluster) {
  std::vector<NodeView> views;
  for (const auto& [id, seen] : cluster.nodes)
    views.push_back({seen.report.node, seen.report.at, seen.reachable()});
  return views;
}

Counts counts(const State& state) {
  Counts c;
  for (const auto& [id, job] : state.jobs) {
    switch (job.state()) {
      case JobState::waiting: ++c.waiting; break;
      case JobState::starting: ++c.starting; break;
      case JobState::running: ++c.running; break;
      case JobState::stopping: ++c.stopping; break;
      case JobState::done: ++c.done; break;
      case JobState::failed: ++c.failed; break;
      case JobState::cancelled: ++c.cancelled; break;
    }
  }
  return c;
}

std::string to_string(JobState state) {
  switch (state) {
    case JobState::waiting: return "waiting";
    case JobState::starting: return "starting";
    case JobState::running: return "running";
    case JobState::stopping: return "stopping";
    case JobState::done: return "done";
    case JobState::failed: return "failed";
    case JobState::cancelled: break;
  }
  return "cancelled";
}

}  // namespace takt::control
