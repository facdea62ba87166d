#include "core/schedule/decide.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "core/base/planted.h"
#include "core/schedule/explain.h"
#include "core/schedule/queue.h"
#include "core/schedule/release.h"
#include "core/schedule/reservation.h"

namespace takt::schedule {
namespace {

// Within a pass devices only fill up, so a shape that did not fit once is not tried again.
class Pass {
 public:
  Pass(const Snapshot& snapshot, const Policy& policy, Instant now)
      : snapshot_(snapshot),
        policy_(policy),
        now_(now),
        queue_(snapshot, now),
        ledger_(snapshot, policy),
        bare_(ledger_) {
    plan_.version = snapshot.version;
  }

  Plan run() {
    plan_.waiting.reserve(snapshot_.waiting.size());
    while (const WaitingJob* job = queue_.next()) look_at(*job);
    for (const WaitingJob& job : snapshot_.waiting)
      if (job.not_before > now_)
        plan_.waiting.add(job.id, std::make_shared<Explanation>(backing_off(job, now_)));
    plan_.waiting.settle();
    return std::move(plan_);
  }

 private:
  // Why a job of this shape cannot start, once one could not; null before.
  using Blocked = std::shared_ptr<const Explanation>;

  // Tasks of an array share one spec, so that most shapes are worked out once a pass.
  Blocked& blocked(const WaitingJob& job) {
    Blocked*& of_spec = shapes_[job.spec.get()];
    if (of_spec == nullptr) of_spec = &blocked_[shape_of(job)];
    return *of_spec;
  }

  Request request_of(const WaitingJob& job) const {
    Request request;
    request.spec = job.spec.get();
    request.user = job.user;
    request.tier = *job.spec->tier;
    request.isolation = job.spec->isolation.value_or(Isolation::strict);
    if (const auto time = estimate(*job.spec, policy_)) request.would_end = now_ + *time;
    return request;
  }

  void look_at(const WaitingJob& job) {
    Blocked& shape = blocked(job);
    if (shape) {
      if (!planted(Planted::reason_forgotten)) plan_.waiting.add(job.id, shape);
      return;
    }
    const Request request = request_of(job);
    Verdict verdict = place(request, ledger_, policy_);
    if (auto* placed = std::get_if<Placed>(&verdict)) {
      book(job, std::move(*placed));
      return;
    }
    if (auto* never = std::get_if<Infeasible>(&verdict)) {
      auto why = std::make_shared<Explanation>();
      why->blockers = std::move(never->blockers);
      why->decision = std::move(never->decision);
      why->expected_start_unknown = "no machine that is here can meet it";
      plan_.waiting.add(job.id, shape = why);
      return;
    }
    explain(job, request, std::get<Unavailable>(std::move(verdict)), shape);
  }

  void book(const WaitingJob& job, Placed placed) {
    Holding holding;
    holding.attempt = AttemptId{job.id, 1};
    holding.job_name = job.spec->name;
    holding.user = job.user;
    holding.tier = *job.spec->tier;
    holding.grant = placed.grant;
    holding.since = now_;
    if (const auto time = estimate(*job.spec, policy_)) holding.expected_end = now_ + *time;
    ledger_.hold(holding);
    bare_.hold(holding);
    queue_.charge(job.user, milli_gpus(placed.grant, snapshot_.nodes) * kFreshUseSeconds);
    plan_.placements.push_back({job.id, std::move(placed.grant), std::move(placed.decision)});
  }

  void explain(const WaitingJob& job, const Request& request, Unavailable verdict, Blocked& shape) {
    auto why = std::make_shared<Explanation>();
    why->decision = std::move(verdict.decision);
    const Verdict without = place(request, bare_, policy_);
    const bool behind = std::holds_alternative<Placed>(without);
    if (behind)
      why->blockers.push_back(behind_reservation(request));
    else
      why->blockers = std::move(verdict.blockers);
    why->expected_start_unknown = "only the first job in line of each pool has an expected start";
    auto shared = why;
    shape = shared;
    const std::string pool = pool_of(*job.spec);
    // Who only waits for another's reservation keeps nothing: it goes when that job has gone.
    if (!behind && reservations_.count(pool) == 0) {
      // The estimate is this job's alone: others of its shape share only the blockers.
      auto first = std::make_shared<Explanation>(*why);
      if (auto r = reserve_for(job.id, request, ledger_, now_)) {
        first->expected_start = r->start;
        first->expected_start_unknown = r->unknown;
        if (r->start) keep(pool, std::move(*r), *first);
      } else {
        first->expected_start_unknown = "nobody can tell when a machine will be able to hold it";
      }
      shared = first;
    }
    plan_.waiting.add(job.id, shared);
  }

  void keep(const std::string& pool, Reservation r, Explanation& why) {
    why.decision.push_back("first in line of its pool: what it needs is kept for it");
    ledger_.reserve(r.job, r.node, r.devices, r.cpus, r.memory, *r.start);
    reservations_.emplace(pool, std::move(r));
  }

  Blocker behind_reservation(const Request& request) const {
    std::string who;
    for (const auto& [pool, r] : reservations_)
      who += (who.empty() ? "job " : ", job ") + to_string(r.job);
    const std::string action =
        request.would_end
            ? "wait, or give it a shorter estimate (time: ...) so that it may end before"
            : "wait until the jobs before it have started";
    return {BlockerKind::behind_reservation, describe_request(*request.spec),
            "it would fit now, but would delay " + who + ", first in line", action};
  }

  const Snapshot& snapshot_;
  const Policy& policy_;
  Instant now_;
  Queue queue_;
  Ledger ledger_;
  Ledger bare_;  // the same without reservations
  Plan plan_;
  std::unordered_map<const JobSpec*, Blocked*> shapes_;  // looked up, never walked
  std::map<std::string, Blocked> blocked_;               // by shape
  std::map<std::string, Reservation> reservations_;
};

}  // namespace

std::optional<Duration> estimate(const JobSpec& spec, const Policy& policy) {
  if (spec.time) return spec.time;
  const auto it = policy.time_estimate.find(*spec.tier);
  if (it == policy.time_estimate.end()) return std::nullopt;
  return it->second;
}

Plan decide(const Snapshot& snapshot, const Policy& policy, Instant now) {
  if (snapshot.engine) return release(snapshot, policy, now);
  return Pass(snapshot, policy, now).run();
}

}  // namespace takt::schedule
