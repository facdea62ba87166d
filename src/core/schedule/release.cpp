#include "core/schedule/release.h"

#include <fmt/core.h>

#include <map>

#include "core/schedule/explain.h"
#include "core/schedule/place.h"
#include "core/schedule/queue.h"

namespace takt::schedule {
namespace {

// What it asks for in thousandths of a GPU; a part of one counts half (as in control's charge).
std::int64_t asked_milli(const JobSpec& spec) {
  if (spec.gpus.count) return std::int64_t{1000} * *spec.gpus.count;
  return spec.gpus.memory ? 500 : 0;
}

class Round {
 public:
  Round(const Snapshot& snapshot, const Policy& policy, Instant now)
      : snapshot_(snapshot), policy_(policy), now_(now), queue_(snapshot, now) {
    plan_.version = snapshot.version;
    room_ = snapshot.engine->waiting >= policy.limits.engine_waiting_max
                ? 0
                : policy.limits.engine_waiting_max - snapshot.engine->waiting;
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
  using Reason = std::shared_ptr<const Explanation>;

  void look_at(const WaitingJob& job) {
    if (const Reason never = infeasible(job)) return plan_.waiting.add(job.id, never);
    if (!snapshot_.engine->reachable) return plan_.waiting.add(job.id, silent());
    if (room_ == 0) return plan_.waiting.add(job.id, full());
    --room_;
    Grant grant;
    grant.node = snapshot_.engine->node;
    grant.cpus = cpus_needed(*job.spec);
    grant.memory = job.spec->memory.value_or(Bytes{});
    grant.isolation = job.spec->isolation.value_or(Isolation::strict);
    queue_.charge(job.user, asked_milli(*job.spec) * kFreshUseSeconds);
    plan_.placements.push_back(
        {job.id,
         std::move(grant),
         {"asked: " + describe_request(*job.spec), "next in takt's order",
          fmt::format("handed to {}, which chooses the devices", snapshot_.engine->name)}});
  }

  // By shape: null while it could be met.
  Reason infeasible(const WaitingJob& job) {
    auto [it, added] = never_.try_emplace(shape_of(job));
    if (!added || snapshot_.nodes.empty()) return it->second;
    Request request;
    request.spec = job.spec.get();
    request.user = job.user;
    request.tier = *job.spec->tier;
    request.isolation = job.spec->isolation.value_or(Isolation::strict);
    const auto never = never_fits(request, snapshot_.nodes, policy_);
    if (!never) return nullptr;
    auto why = std::make_shared<Explanation>();
    why->blockers.push_back(*never);
    why->expected_start_unknown = "no machine that is here can meet it";
    return it->second = why;
  }

  Reason silent() {
    if (silent_) return silent_;
    auto why = std::make_shared<Explanation>();
    why->blockers.push_back({BlockerKind::no_agent, "an answer of " + snapshot_.engine->name,
                             snapshot_.engine->name + " has not been heard of",
                             "see whether it runs; takt goes on by itself when it answers"});
    why->expected_start_unknown = "nobody knows when it will answer";
    return silent_ = why;
  }

  Reason full() {
    if (full_) return full_;
    auto why = std::make_shared<Explanation>();
    const std::string& name = snapshot_.engine->name;
    why->blockers.push_back(
        {BlockerKind::engine_queue_full, "its turn to be handed to " + name,
         fmt::format("{} jobs wait at {} and as many may (limits.engine_waiting_max of the policy)",
                     policy_.limits.engine_waiting_max, name),
         "wait until it has started some of them"});
    why->expected_start_unknown = name + " places by itself and does not say when";
    return full_ = why;
  }

  const Snapshot& snapshot_;
  const Policy& policy_;
  Instant now_;
  Queue queue_;
  Plan plan_;
  std::size_t room_ = 0;
  std::map<std::string, Reason> never_;
  Reason silent_;
  Reason full_;
};

}  // namespace

Plan release(const Snapshot& snapshot, const Policy& policy, Instant now) {
  return Round(snapshot, policy, now).run();
}

}  // namespace takt::schedule
