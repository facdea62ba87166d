// Reports of nodes, compared with what should be.
#include <fmt/core.h>

#include <algorithm>

#include "core/base/planted.h"
#include "core/control/conclude.h"
#include "core/control/handle.h"
#include "core/schedule/place.h"

namespace takt::control {
namespace {

bool seen_in(const NodeReport& report, AttemptId id) {
  return std::any_of(report.attempts.begin(), report.attempts.end(),
                     [&](const AttemptSeen& s) { return s.attempt == id; });
}

const Attempt* find_attempt(const State& state, AttemptId id) {
  const auto it = state.jobs.find(id.job);
  if (it == state.jobs.end() || !it->second.attempt || it->second.attempt->id != id) return nullptr;
  return &*it->second.attempt;
}

// No granted device that the node has still shows a process of the attempt. One whose processes are
// not told proves nothing; one that is no longer there holds nothing.
bool proven_off(const Node& node, const Attempt& attempt) {
  for (const Gpu& gpu : node.gpus) {
    const bool granted = std::any_of(attempt.grant.devices.begin(), attempt.grant.devices.end(),
                                     [&](const DeviceGrant& d) { return d.gpu == gpu.uuid; });
    if (!gpu.processes) {
      if (granted && gpu.health == GpuHealth::unresponsive) return false;
      continue;
    }
    for (const GpuProcess& p : *gpu.processes)
      if (p.attempt == attempt.id) return false;
  }
  return true;
}

class Comparison {
 public:
  Comparison(const State& state, const Cluster& cluster, const Policy& policy,
             const NodeReport& report, Instant now)
      : state_(state), cluster_(cluster), policy_(policy), report_(report), now_(now) {}

  std::vector<Fact> run() {
    skip_numbers();
    std::set<AttemptId> seen;
    for (const AttemptSeen& s : report_.attempts) {
      if (!seen.insert(s.attempt).second) continue;
      const Attempt* attempt = find_attempt(state_, s.attempt);
      if (attempt != nullptr && attempt->generation == s.generation && !attempt->released)
        compare(*attempt, s);
    }
    for (const JobId id : state_.holding) {
      const Attempt& attempt = *state_.jobs.at(id).attempt;
      if (attempt.grant.node == report_.node.id && seen.count(attempt.id) == 0) vanished(attempt);
    }
    return std::move(facts_);
  }

 private:
  // An attempt of a job that this state never accepted: it was put back to an earlier day (a
  // backup). No number that exists on a machine is given a second time.
  void skip_numbers() {
    CountersCarried skip{state_.next_job, state_.next_generation, state_.next_environment};
    for (const AttemptSeen& s : report_.attempts) {
      if (s.attempt.job.value < state_.next_job) continue;
      skip.next_job = std::max(skip.next_job, s.attempt.job.value + 1);
      skip.next_generation = std::max(skip.next_generation, s.generation + 1);
    }
    if (skip.next_job != state_.next_job) facts_.emplace_back(skip);
  }

  void compare(const Attempt& attempt, const AttemptSeen& s) {
    if (s.placed && *s.placed != attempt.grant)
      facts_.push_back(Placed{attempt.id, *s.placed, now_});
    if (!attempt.started && s.started)
      facts_.push_back(Started{attempt.id, s.pid, here(attempt, *s.started)});
    if (s.phase != AttemptPhase::exited) {
      watch_memory(attempt);
      return;
    }
    if (!attempt.exit && s.exit)
      exited(attempt, *s.exit, here(attempt, s.ended.value_or(report_.made)));
    const bool gone = s.processes_gone && proven_off(report_.node, attempt);
    if ((attempt.exit || s.exit) && (gone || planted(Planted::released_while_alive)))
      facts_.push_back(Released{attempt.id, now_});
  }

  // An instant of the node's clock by the controller's, which may differ by any amount: by how long
  // before the report it was. The time that the report was under way makes it later, never earlier.
  Instant here(const Attempt& attempt, Instant there) const {
    const Instant earliest = attempt.started.value_or(attempt.granted);
    return std::clamp(now_ - (report_.made - there), earliest, std::max(now_, earliest));
  }

  void exited(const Attempt& attempt, const ExitStatus& exit, Instant at) {
    const Job& job = state_.jobs.at(attempt.id.job);
    facts_.push_back(Exited{attempt.id, exit, at});
    facts_.push_back(conclude(job, exit, now_));
  }

  // Reports are complete: an attempt that had started and is not in one is gone with its record.
  // One that had not started may be under way to the agent: reconcile sends Start (or
  // Stop, which the agent answers even for an attempt it never got) until it is seen, unless the
  // host was restarted or the engine may have forgotten it: then it may have run.
  void vanished(const Attempt& attempt) {
    const bool restarted = !attempt.boot_id.empty() && attempt.boot_id != report_.node.boot_id;
    const auto& remembers = cluster_.engine.remembers;
    const bool forgotten = remembers && now_ - attempt.granted > *remembers;
    const bool unseen = !attempt.started && !attempt.exit && !restarted && !forgotten;
    if (unseen && !planted(Planted::unseen_start_is_lost)) return;
    if (absent_for(attempt.id) < cluster_.engine.absent_grace) return;
    if (!attempt.exit) {
      ExitStatus exit;
      exit.cause = ExitCause::lost;
      exit.message = restarted ? "the host was restarted while it ran: its outcome is unknown"
                               : "the node no longer has a record of it: its outcome is unknown";
      exited(attempt, exit, now_);
    }
    if (proven_off(report_.node, attempt)) facts_.push_back(Released{attempt.id, now_});
  }

  Duration absent_for(AttemptId id) const {
    const auto node = cluster_.nodes.find(report_.node.id);
    if (node == cluster_.nodes.end()) return {};
    const auto since = node->second.absent.find(id);
    return since == node->second.absent.end() ? Duration{} : now_ - since->second;
  }

  // `watched` isolation: a process that outgrows its share is stopped before it hurts its
  // neighbours.
  void watch_memory(const Attempt& attempt) {
    if (attempt.stop || attempt.grant.isolation != Isolation::watched) return;
    for (const DeviceGrant& device : attempt.grant.devices) {
      Bytes used;
      for (const Gpu& gpu : report_.node.gpus)
        if (gpu.uuid == device.gpu && gpu.processes)
          for (const GpuProcess& p : *gpu.processes)
            if (p.attempt == attempt.id && p.memory) used += *p.memory;
      if (used <= device.memory) continue;
      facts_.push_back(StopRequested{
          attempt.id, StopReason::memory_watchdog,
          fmt::format("OOM: asked {}, used {}: try --memory {}GiB", schedule::gib(device.memory),
                      schedule::gib(used), (used.value * 5 / 4 >> 30) + 1),
          policy_.stop_grace, now_});
      return;
    }
  }

  const State& state_;
  const Cluster& cluster_;
  const Policy& policy_;
  const NodeReport& report_;
  Instant now_;
  std::vector<Fact> facts_;
};

// What a placement depends on: changes of it make another pass worth while.
bool same_for_placement(const Node& a, const Node& b) {
  if (a.cpus != b.cpus || a.memory != b.memory || a.gpus.size() != b.gpus.size()) return false;
  // Who is on it: each foreign process, and the attempts (not their single processes).
  auto foreign = [](const Gpu& gpu) {
    std::pair<std::set<std::int64_t>, std::set<AttemptId>> who;
    if (gpu.processes)
      for (const GpuProcess& p : *gpu.processes) {
        if (p.attempt)
          who.second.insert(*p.attempt);
        else
          who.first.insert(p.pid);
      }
    return who;
  };
  auto instances = [](const Gpu& gpu) {
    std::vector<std::pair<DeviceUuid, Measured<Bytes>>> all;
    for (const MigInstance& m : gpu.mig.instances) all.emplace_back(m.uuid, m.memory_total);
    return all;
  };
  for (std::size_t i = 0; i < a.gpus.size(); ++i) {
    const Gpu& x = a.gpus[i];
    const Gpu& y = b.gpus[i];
    if (x.uuid != y.uuid || x.health != y.health || x.memory_total != y.memory_total ||
        x.mig.enabled != y.mig.enabled || instances(x) != instances(y) ||
        x.processes.has_value() != y.processes.has_value() || foreign(x) != foreign(y) ||
        x.throttle_reasons != y.throttle_reasons)
      return false;
    // Memory in use decides about shares; half a GiB is worth another look.
    if (x.memory_used.has_value() != y.memory_used.has_value()) return false;
    if (x.memory_used && (x.memory_used->value >> 29) != (y.memory_used->value >> 29)) return false;
  }
  return true;
}

}  // namespace

std::vector<Fact> handle(const State& state, const Cluster& cluster, const Policy& policy,
                         const NodeReport& report, Instant now) {
  return Comparison(state, cluster, policy, report, now).run();
}

bool observe(Cluster& cluster, const State& state, const NodeReport& report, Instant now) {
  auto [it, first] = cluster.nodes.try_emplace(report.node.id);
  SeenReport& seen = it->second;
  if (!first && !planted(Planted::late_report_believed)) {
    const NodeReport& before = seen.report;
    // A boot that is over falls silent, the other one goes on: a controller that begins anew may
    // have met them in the wrong order.
    const bool over = seen.former_boots.count(report.node.boot_id) != 0;
    if (over && seen.reachable()) return false;
    if (before.node.boot_id == report.node.boot_id &&
        std::pair(report.life, report.sequence) <= std::pair(before.life, before.sequence))
      return false;
    if (before.node.boot_id != report.node.boot_id) {
      seen.former_boots.erase(report.node.boot_id);
      seen.former_boots.insert(before.node.boot_id);
    }
  }
  if (first || !seen.reachable() || !same_for_placement(seen.report.node, report.node))
    ++cluster.version;
  seen.report = report;
  seen.received = now;
  seen.contact = Contact::fresh;
  std::map<AttemptId, Instant> absent;
  for (const JobId id : state.holding) {
    const Attempt& attempt = *state.jobs.at(id).attempt;
    if (attempt.grant.node != report.node.id || seen_in(report, attempt.id)) continue;
    const auto before = seen.absent.find(attempt.id);
    absent[attempt.id] = before == seen.absent.end() ? now : before->second;
  }
  seen.absent = std::move(absent);
  return true;
}

}  // namespace takt::control
