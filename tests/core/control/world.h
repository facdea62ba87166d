#pragma once
// A controller's state with one node beside it, driven call by call: what the live loop does,
// without clock, disk and thread.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/control/handle.h"
#include "core/control/reconcile.h"
#include "core/control/views.h"
#include "core/schedule/decide.h"
#include "core/schedule/ledger.h"
#include "edge/codec/snapshot_text.h"
#include "support/cluster_builder.h"

namespace takt::control {

using namespace takt::testing;

inline JobSpec asked(JobSpec spec) {  // as a user sends it: not resolved
  spec.tier.reset();
  spec.isolation.reset();
  return spec;
}

inline std::string text_of(const std::vector<Fact>& facts) { return codec::snapshot_of(facts); }
inline std::string text_of(const State& state) { return text_of(facts_of(state)); }

template <class T>
std::vector<T> only(const std::vector<Fact>& facts) {
  std::vector<T> found;
  for (const Fact& f : facts)
    if (const T* t = std::get_if<T>(&f)) found.push_back(*t);
  return found;
}
template <class T>
std::vector<T> only(const std::vector<Effect>& effects) {
  std::vector<T> found;
  for (const Effect& e : effects)
    if (const T* t = std::get_if<T>(&e)) found.push_back(*t);
  return found;
}

struct World {
  explicit World(Node n) : node(std::move(n)) { see({}); }

  Policy policy;
  Node node;
  State state;
  Cluster cluster;
  Instant now = t0;
  Places places{"/var/lib/takt/logs", "/run/takt/takt.sock"};
  std::vector<Fact> journal;

  void apply(const std::vector<Fact>& facts) {
    for (const Fact& f : facts) {
      fold(state, f, policy.fair_share_half_life);
      journal.push_back(f);
    }
  }
  Result<Accepted> submit(const JobSpec& spec, const Identity& who = alice(),
                          Tier default_tier = Tier::batch) {
    auto accepted = handle(state, cluster, policy, Submit{spec, who, default_tier, ""}, now);
    if (accepted) apply(accepted->facts);
    return accepted;
  }
  JobId submitted(const JobSpec& spec, const Identity& who = alice()) {
    return submit(spec, who).value().jobs.front();
  }
  Result<Accepted> cancel(JobId job, const Identity& who = alice(), bool admin = false) {
    auto accepted = handle(state, cluster, policy, Cancel{job, who, admin}, now);
    if (accepted) apply(accepted->facts);
    return accepted;
  }
  // A report with these attempts; the facts that came of it.
  std::vector<Fact> see(std::vector<AttemptSeen> attempts) {
    const NodeReport report = report_of(node, now, std::move(attempts));
    EXPECT_TRUE(observe(cluster, state, report, now));
    std::vector<Fact> facts = handle(state, cluster, policy, report, now);
    apply(facts);
    return facts;
  }
  Admission pass() {
    const auto plan = schedule::decide(snapshot(state, cluster, policy, now), policy, now);
    Admission admission = admit(state, cluster, policy, plan, now);
    apply(admission.facts);
    return admission;
  }
  const Job& job(JobId id) const { return state.jobs.at(id); }
  const Attempt& attempt(JobId id) const { return *state.jobs.at(id).attempt; }
  std::vector<Effect> effects(std::vector<AttemptSeen> attempts = {}) const {
    return reconcile(state, report_of(node, now, std::move(attempts)), places);
  }
  void later(Duration d) { now = now + d; }

  AttemptSeen seen_running(JobId id) const {
    return running(attempt(id).id, attempt(id).generation, now);
  }
  AttemptSeen seen_exited(JobId id, ExitStatus exit, bool gone = true) const {
    return exited(attempt(id).id, attempt(id).generation, attempt(id).started.value_or(now), now,
                  std::move(exit), gone);
  }
  // From waiting to running, in one line.
  void start(JobId id) {
    pass();
    see({seen_running(id)});
  }
  JobView view(JobId id) const {
    const schedule::Plan plan =
        schedule::decide(snapshot(state, cluster, policy, now), policy, now);
    return job_view({state, cluster, plan, policy, places, now}, job(id));
  }
};

inline ExitStatus killed(int signal) {
  ExitStatus e;
  e.cause = ExitCause::signalled;
  e.signal = signal;
  return e;
}
inline ExitStatus lost() {
  ExitStatus e;
  e.cause = ExitCause::lost;
  e.message = "stopped before it started";
  return e;
}

}  // namespace takt::control
