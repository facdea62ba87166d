// Submit and cancel: checks identity, limits and feasibility, resolves what was left open.
#include <fmt/core.h>

#include <algorithm>

#include "core/base/planted.h"
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
  for (const auto& [id, seen] : cluster.nodes)
    nodes.push_back({seen.report.node, seen.reachable()});
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
  if (planted(Planted::cancel_forgotten)) return;
  if (job.waiting())
    accepted.facts.push_back(JobCancelled{job.id, now});
  else if (!job.attempt->stop)
    accepted.facts.push_back(StopRequested{job.attempt->id, StopReason::cancelled,
                                           "cancelled by " + by, policy.stop_grace, now});
}

// The job, when it is there and `by` may do this to it.
Result<const Job*> owned(const State& state, JobId id, const Identity& by, bool admin,
                         const char* what) {
  const auto it = state.jobs.find(id);
  if (it == state.jobs.end())
    return fail(ErrorKind::not_found,
                fmt::format("there is no job {}: `takt ps --all` lists all", to_string(id)));
  const Job& job = it->second;
  if (job.submitter().uid != by.uid && !admin)
    return fail(ErrorKind::forbidden,
                fmt::format("job {} belongs to {}: only {}, root and members of the policy's "
                            "admin_groups may {} it",
                            to_string(id), job.submitter().user, job.submitter().user, what));
  if (job.finished)
    return fail(ErrorKind::conflict, fmt::format("job {} has already ended ({})", to_string(id),
                                                 to_string(job.state())));
  return &job;
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

Result<void> check_limits(const State& state, const Policy& policy, const Submit& command,
                          std::size_t tasks) {
  const Limits& limits = policy.limits;
  if (tasks == 0 || tasks > limits.array_tasks_max)
    return fail(ErrorKind::invalid,
                fmt::format("array: {} tasks; at least 1 and at most {} are allowed in one "
                            "submission (limits.array_tasks_max of the policy)",
                            tasks, limits.array_tasks_max));
  if (state.waiting.size() + tasks > limits.pending_jobs_max)
    return fail(
        ErrorKind::unavailable,
        fmt::format("the queue holds {} jobs and may hold {} (limits.pending_jobs_max of the "
                    "policy): submit again when some have ended",
                    state.waiting.size(), limits.pending_jobs_max));
  const auto mine = state.waiting_of.find(command.submitter.user);
  const std::size_t waiting = mine == state.waiting_of.end() ? 0 : mine->second;
  if (waiting + tasks > limits.pending_jobs_per_user_max)
    return fail(ErrorKind::unavailable,
                fmt::format("{} of your jobs wait and at most {} may "
                            "(limits.pending_jobs_per_user_max of the policy): submit again when "
                            "some have ended",
                            waiting, limits.pending_jobs_per_user_max));
  return {};
}

// The same request again, because the client did not get the answer: what it made.
std::optional<Accepted> made_before(const State& state, const Submit& command) {
  if (command.request.empty() || planted(Planted::request_made_twice)) return std::nullopt;
  const auto it = state.requests.find(command.submitter.user + "/" + command.request);
  if (it == state.requests.end()) return std::nullopt;
  const auto first = state.jobs.find(it->second);
  Accepted accepted;
  for (auto job = first; job != state.jobs.end(); ++job) {
    if (job->second.submission != first->second.submission) break;
    accepted.jobs.push_back(job->first);
  }
  return accepted;
}

// Takes the environment out of the spec where an equal one is kept, or is to be.
void number_environment(const State& state, Submission& submission, std::vector<Fact>& facts) {
  Environment& env = submission.spec.env;
  if (env.empty()) return;
  const auto known = state.environment_prints.find(fingerprint_of(env));
  if (known != state.environment_prints.end() &&
      *state.environments.at(known->second).variables == env) {
    submission.environment = known->second;
  } else {
    submission.environment = state.next_environment;
    facts.push_back(EnvironmentKept{submission.environment,
                                    std::make_shared<const Environment>(std::move(env))});
  }
  env = {};
}

Result<Accepted> submit(const State& state, const Cluster& cluster, const Policy& policy,
                        const Submit& command, Instant now) {
  if (auto before = made_before(state, command)) return *std::move(before);
  auto submission = std::make_shared<Submission>();
  submission->spec = command.spec;
  JobSpec& spec = submission->spec;
  if (const auto ok = validate(spec, policy.limits); !ok) return tl::make_unexpected(ok.error());
  resolve(spec, command);
  const auto tasks = static_cast<std::size_t>(job_count(spec));
  if (const auto ok = check_limits(state, policy, command, tasks); !ok)
    return tl::make_unexpected(ok.error());
  if (const auto ok = check_capacity(spec, command, cluster, policy); !ok)
    return tl::make_unexpected(ok.error());

  Accepted accepted;
  accepted.warnings = warnings_of(spec);
  JobAccepted fact;
  fact.job = JobId(state.next_job);
  fact.count = static_cast<int>(tasks);
  const auto parameters = combinations(spec);
  const int replicas = std::max(1, spec.replicas);
  for (int i = 0; i < fact.count; ++i) {
    accepted.jobs.emplace_back(state.next_job + static_cast<std::uint64_t>(i));
    if (!spec.array.empty())
      fact.parameters.push_back(parameters[static_cast<std::size_t>(i / replicas)]);
  }
  submission->submitter = command.submitter;
  submission->at = now;
  submission->policy_revision = policy.revision;
  if (tasks > 1) submission->group = fact.job;
  submission->group_size = fact.count;
  submission->request = command.request;
  number_environment(state, *submission, accepted.facts);
  fact.submission = std::move(submission);
  accepted.facts.emplace_back(std::move(fact));
  return accepted;
}

Result<Accepted> cancel_all(const State& state, const Policy& policy, const CancelAll& command,
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

struct Handler {
  const State& state;
  const Cluster& cluster;
  const Policy& policy;
  Instant now;

  Result<Accepted> operator()(const Submit& c) { return submit(state, cluster, policy, c, now); }
  Result<Accepted> operator()(const Cancel& c) {
    const auto job = owned(state, c.job, c.by, c.admin, "cancel");
    if (!job) return tl::make_unexpected(job.error());
    Accepted accepted;
    cancel(**job, c.by.user, policy, now, accepted);
    return accepted;
  }
  Result<Accepted> operator()(const CancelAll& c) { return cancel_all(state, policy, c, now); }
  Result<Accepted> operator()(const HoldJob& c) {
    const auto job = owned(state, c.job, c.by, c.admin, "hold");
    if (!job) return tl::make_unexpected(job.error());
    Accepted accepted;
    accepted.jobs = {c.job};
    if (!(*job)->hold)
      accepted.facts.push_back(JobHeld{c.job, c.by.user, "held by " + c.by.user, now});
    if (!(*job)->waiting())
      accepted.warnings.push_back(fmt::format(
          "job {} runs and goes on: the hold counts when it would start again", to_string(c.job)));
    return accepted;
  }
  Result<Accepted> operator()(const ReleaseJob& c) {
    const auto job = owned(state, c.job, c.by, c.admin, "release");
    if (!job) return tl::make_unexpected(job.error());
    Accepted accepted;
    accepted.jobs = {c.job};
    if ((*job)->hold)
      accepted.facts.push_back(HoldLifted{c.job, c.by.user, now});
    else
      accepted.warnings.push_back(fmt::format("job {} was not held", to_string(c.job)));
    return accepted;
  }
  Result<Accepted> operator()(const Archive& c) {
    Archived fact;
    for (const JobId id : c.jobs) {
      const auto it = state.jobs.find(id);
      if (it != state.jobs.end() && it->second.finished && !it->second.holding())
        fact.jobs.push_back(id);
    }
    Accepted accepted;
    accepted.jobs = fact.jobs;
    if (!fact.jobs.empty()) accepted.facts.emplace_back(std::move(fact));
    return accepted;
  }
};

}  // namespace

Result<Accepted> handle(const State& state, const Cluster& cluster, const Policy& policy,
                        const Command& command, Instant now) {
  return std::visit(Handler{state, cluster, policy, now}, command);
}

}  // namespace takt::control
