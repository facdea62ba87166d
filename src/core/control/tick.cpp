// What the passing of time brings.
#include <fmt/core.h>

#include <algorithm>

#include "core/base/planted.h"
#include "core/control/conclude.h"
#include "core/control/handle.h"

namespace takt::control {
namespace {

// Only where the node is heard of: a stop reaches no other, and after a restart of the controller's
// host it is not known whether the attempt is still there, nor what the clock did meanwhile.
void hard_stop(const Job& job, const Cluster& cluster, const Policy& policy, Instant now,
               std::vector<Fact>& facts) {
  const Attempt& a = *job.attempt;
  if (!job.spec().kill_after || !a.started || a.exit || a.stop) return;
  const auto node = cluster.nodes.find(a.grant.node);
  if (node == cluster.nodes.end() || !node->second.reachable()) return;
  const Instant from = planted(Planted::limit_from_submission) ? job.submission->at : *a.started;
  if (now - from < *job.spec().kill_after) return;
  facts.push_back(StopRequested{
      a.id, StopReason::kill_after,
      fmt::format("stopped after kill_after: {} s", job.spec().kill_after->us / 1'000'000),
      policy.stop_grace, now});
}

// It has ended, and something of it is still there. Its devices stay held; a job to which this
// happens again and again is not sent to the next devices.
void outlived_kill(const Job& job, const Policy& policy, Instant now, std::vector<Fact>& facts) {
  const Attempt& a = *job.attempt;
  if (!a.exit || !a.kill_failed.empty() || now - *a.ended < policy.kill_proof_max) return;
  facts.push_back(KillFailed{
      a.id,
      fmt::format("attempt {} ended {} s ago and something of it is still on {}: a process that "
                  "KILL does not end, or one that the driver shows. Its devices stay held; look at "
                  "`takt gpus` and the kernel's log, and restart the host if it does not go away",
                  to_string(a.id), (now - *a.ended).us / 1'000'000, a.grant.node.value),
      now});
  const int failures = static_cast<int>(job.kill_failures) + 1;
  if (job.finished || job.hold || failures < policy.kill_failures_max) return;
  facts.push_back(JobHeld{
      job.id, "takt",
      fmt::format("{} of its attempts could not be ended and hold devices: it is held, so that it "
                  "does not go on to others. `takt release {}` lets it start again",
                  failures, to_string(job.id)),
      now});
}

void lost_with_node(const Job& job, const Cluster& cluster, Instant now, std::vector<Fact>& facts) {
  const Attempt& a = *job.attempt;
  if (!cluster.engine.lease || a.exit) return;
  const auto node = cluster.nodes.find(a.grant.node);
  if (node == cluster.nodes.end() || node->second.contact != Contact::lost) return;
  const Instant lease_ends =
      node->second.lease_ends.value_or(lease_end(*cluster.engine.lease, cluster.began));
  if (now <= lease_ends && !planted(Planted::lease_ignored)) return;
  ExitStatus exit;
  exit.cause = ExitCause::lost;
  exit.message = fmt::format(
      "node {} has not been heard of for {} s: it has ended what ran there, the outcome is unknown",
      a.grant.node.value, (now - node->second.received).us / 1'000'000);
  facts.push_back(Exited{a.id, exit, now});
  facts.push_back(conclude(job, exit, now));
  facts.push_back(Released{a.id, now});
}

Contact contact_of(const SeenReport& seen, const Policy& policy, Instant now) {
  const Duration silent = now - seen.received;
  if (silent > policy.node_lost_after) return Contact::lost;
  if (silent > policy.node_unreachable_after) return Contact::unreachable;
  return silent > policy.node_silent_max ? Contact::suspect : Contact::fresh;
}

}  // namespace

Instant lease_end(Duration lease, Instant from) { return from + lease + Duration{lease.us / 20}; }

std::vector<Fact> tick(const State& state, const Cluster& cluster, const Policy& policy,
                       Instant now) {
  std::vector<Fact> facts;
  for (const JobId id : state.holding) {
    const Job& job = state.jobs.at(id);
    hard_stop(job, cluster, policy, now, facts);
    outlived_kill(job, policy, now, facts);
    lost_with_node(job, cluster, now, facts);
  }
  return facts;
}

std::vector<JobId> due_for_archive(const State& state, const FinishedRules& rules, Instant now,
                                   std::size_t at_most) {
  std::vector<JobId> due;
  std::size_t surplus =
      state.finished.size() > rules.live_max ? state.finished.size() - rules.live_max : 0;
  for (const auto& [end, id] : state.finished) {
    if (due.size() == at_most || (surplus == 0 && now - end < rules.live_for)) break;
    if (surplus > 0) --surplus;
    if (!state.jobs.at(id).holding()) due.push_back(id);
  }
  return due;
}

void observe_silence(Cluster& cluster, const Policy& policy, Instant now) {
  for (auto& [id, seen] : cluster.nodes) {
    const Contact contact = std::max(seen.contact, contact_of(seen, policy, now));
    if (contact == seen.contact) continue;
    seen.contact = contact;
    ++cluster.version;
  }
}

}  // namespace takt::control
