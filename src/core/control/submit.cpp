// Submit and cancel: checks identity, limits and feasibility, resolves what was left open.
#include <fmt/core.h>

#include <algorithm>

#include "core/control/handle.h"
#include "core/model/job_spec_rules.h"
#include "core/schedule/place.h"

namespace takt::control {
namespace {

Isolation default_isolation(const JobSpec& spec) {
  if (!spec.gpus.wants_share()) return Isolation::strict;
  return *spec.tier == Tier::serving || *spec.tier == Tier::training ? Isolation::strict
                                                                     : Isolation::watched;
}

// Every combination of the array's parameters, the last one turning fastest.
std::vector<std::map<std::string, std::string>> combinations(const JobSpec& spec) {
  std::vector<std::map<std::string, std::string>> all = {{}};
  for (const auto& [name, values] : spec.array) {
    std::vector<std::map<std::string, std::string>> next;
    for (const auto& base : all)
      for (const std::string& value : values) {
        next.push_back(base);
        next.back()[name] = value;
      }
    all = std::move(next);
  }
  return all;
}

std::vector<schedule::SeenNode> seen_nodes(const Cluster& cluster) {
  std::vector<schedule::SeenNode> nodes;
  for (const auto& [id, seen] : cluster.nodes) nodes.push_back({seen.report.node, seen.reachable});
  return nodes;
}

Result<void> check_capacity(const JobSpec& spec, const Submit& command, const Cluster& cluster,
                            const Policy& policy) {
  if (cluster.nodes.empty() || spec.wait_for_capacity) return {};
  schedule::Request request;
  request.spec = &spec;
  request.user = command.submitter.user;
  request.tier = *spec.tier;
  request.isolation = *spec.isolation;
  if (const auto never = schedule::never_fits(request, seen_nodes(cluster), policy))
    return fail(ErrorKind::conflict, fmt::format("no machine can meet this: needs {}; {}. {}{}",
                                                 never->needed, never->available, never->action,
                                                 never->kind == BlockerKind::larger_than_cluster
                                                     ? ""
                                                     : "; or submit it with --wait-for-capacity"));
  return {};
}

void cancel(const Job& job, const std::string& by, const Policy& policy, Instant now,
            Accepted& accepted) {
  accepted.jobs.push_back(job.id);
  if (!job.cancel_requested) accepted.facts.push_back(CancelRequested{job.id, by, now});
  if (job.waiting())
    accepted.facts.push_back(JobCancelled{job.id, now});
  else if (!job.attempt->stop)
    accepted.facts.push_back(StopRequested{job.attempt->id, StopReason::cancelled,
                                           "cancelled by " + by, policy.stop_grace, now});
}

void resolve(JobSpec& spec, const Submit& command) {
  if (!spec.tier) spec.tier = command.default_tier;
  if (spec.name.empty()) spec.name = default_name(spec.argv, spec.command_text);
  if (!spec.isolation) spec.isolation = default_isolation(spec);
}

std::vector<std::string> warnings_of(const JobSpec& spec) {
  std::vector<std::string> warnings = spec_warnings(spec);
  if (!spec.gpus.count && !spec.gpus.memory)
    warnings.push_back(
        "no GPU was asked, so none will be visible: add -g 1 or --memory 12GiB to get one");
  return warnings;
}

}  // namespace

Result<Accepted> handle(const State& state, const Cluster& cluster, const Policy& policy,
                        const Submit& command, Instant now) {
  JobSpec spec = command.spec;
  if (const auto ok = validate(spec, policy.limits); !ok) return tl::make_unexpected(ok.error());
  resolve(spec, command);
  const auto tasks = static_cast<std::size_t>(job_count(spec));
  if (tasks == 0 || tasks > policy.limits.array_tasks_max)
    return fail(ErrorKind::invalid,
                fmt::format("array: {} tasks; at least 1 and at most {} are allowed in one "
                            "submission (limits.array_tasks_max of the policy)",
                            tasks, policy.limits.array_tasks_max));
  if (state.waiting.size() + tasks > policy.limits.pending_jobs_max)
    return fail(
        ErrorKind::unavailable,
        fmt::format("the queue holds {} jobs and may hold {} (limits.pending_jobs_max of the "
                    "policy): submit again when some have ended",
                    state.waiting.size(), policy.limits.pending_jobs_max));
  if (const auto ok = check_capacity(spec, command, cluster, policy); !ok)
    return tl::make_unexpected(ok.error());

  Accepted accepted;
  accepted.warnings = warnings_of(spec);
  const auto parameters = combinations(spec);
  const int replicas = std::max(1, spec.replicas);
  const int size = static_cast<int>(tasks);
  const JobId first(state.next_job);
  for (int i = 0; i < size; ++i) {
    JobAccepted fact;
    fact.job = JobId(state.next_job + static_cast<std::uint64_t>(i));
    fact.spec = spec;
    fact.submitter = command.submitter;
    fact.at = now;
    fact.policy_revision = policy.revision;
    if (size > 1) fact.group = first;
    fact.group_index = i;
    fact.group_size = size;
    fact.parameters = parameters[static_cast<std::size_t>(i / replicas)];
    fact.seed = fact.job.value;
    accepted.jobs.push_back(fact.job);
    accepted.facts.push_back(std::move(fact));
  }
  return accepted;
}

Result<Accepted> handle(const State& state, const Policy& policy, const Cancel& command,
                        Instant now) {
  const auto it = state.jobs.find(command.job);
  if (it == state.jobs.end())
    return fail(ErrorKind::not_found, fmt::format("there is no job {}: `takt ps --all` lists all",
                                                  to_string(command.job)));
  const Job& job = it->second;
  if (job.submitter().uid != command.by.uid && !command.admin)
    return fail(ErrorKind::forbidden,
                fmt::format("job {} belongs to {}: only {}, root and members of the policy's "
                            "admin_groups may cancel it",
                            to_string(job.id), job.submitter().user, job.submitter().user));
  if (job.finished)
    return fail(ErrorKind::conflict, fmt::format("job {} has already ended ({})", to_string(job.id),
                                                 to_string(job.state())));
  Accepted accepted;
  cancel(job, command.by.user, policy, now, accepted);
  return accepted;
}

Result<Accepted> handle(const State& state, const Policy& policy, const CancelAll& command,
                        Instant now) {
  Accepted accepted;
  std::set<JobId> unfinished = state.waiting;
  unfinished.insert(state.holding.begin(), state.holding.end());
  for (const JobId id : unfinished) {
    const Job& job = state.jobs.at(id);
    if (job.submitter().uid == command.by.uid && !job.finished)
      cancel(job, command.by.user, policy, now, accepted);
  }
  return accepted;
}

}  // namespace takt::control
