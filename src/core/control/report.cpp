// Reports of nodes and the passing of time, compared with what should be.
#include <fmt/core.h>

#include <algorithm>

#include "core/control/handle.h"

namespace takt::control {
namespace {

const Attempt* find_attempt(const State& state, AttemptId id) {
  const auto it = state.jobs.find(id.job);
  if (it == state.jobs.end() || !it->second.attempt || it->second.attempt->id != id) return nullptr;
  return &*it->second.attempt;
}

// A process of the attempt that the driver still shows.
bool on_devices(const Node& node, AttemptId id) {
  for (const Gpu& gpu : node.gpus)
    if (gpu.processes)
      for (const GpuProcess& p : *gpu.processes)
        if (p.attempt == id) return true;
  return false;
}

std::string gib(Bytes b) {
  return fmt::format("{:.1f} GiB", static_cast<double>(b.value) / (1 << 30));
}

RetryCause cause_of(const ExitStatus& exit) {
  if (exit.cause == ExitCause::lost) return RetryCause::node_lost;
  return exit.oom ? RetryCause::oom : RetryCause::failed;
}

std::string failure_text(const Job& job, const ExitStatus& exit) {
  if (exit.oom) {
    std::string text = "OOM: the host's memory ran out";
    if (job.spec().memory) text += fmt::format(", asked {}", gib(*job.spec().memory));
    if (exit.memory_peak) text += fmt::format(", peak {}", gib(*exit.memory_peak));
    return text + ": ask for more with --host-memory";
  }
  if (exit.cause == ExitCause::exited)
    return fmt::format("{}: `takt logs {}` shows what it said", describe(exit), to_string(job.id));
  return describe(exit);
}

// What follows an exit: another attempt or the end of the job.
Fact conclude(const Job& job, const ExitStatus& exit, Instant now) {
  using Outcome = Finished::Outcome;
  const std::optional<StopRequested>& stop = job.attempt->stop;
  // Who outgrew its share ran out of memory, and may have asked for another attempt then.
  const bool outgrown =
      stop && stop->reason == StopReason::memory_watchdog && !job.cancel_requested;
  if (stop && !outgrown) {
    const bool cancelled = stop->reason == StopReason::cancelled;
    return Finished{job.id, cancelled ? Outcome::cancelled : Outcome::failed, stop->detail, now};
  }
  if (!outgrown && exit.cause == ExitCause::exited && exit.code == 0)
    return Finished{job.id, Outcome::done, "", now};
  const RetrySpec& retry = job.spec().retry;
  const RetryCause cause = outgrown ? RetryCause::oom : cause_of(exit);
  const bool listed = std::find(retry.on.begin(), retry.on.end(), cause) != retry.on.end();
  const int retries_done = static_cast<int>(job.attempts) - 1;
  if (listed && retries_done < retry.max && exit.cause != ExitCause::start_failed) {
    // 2, 4, 8 ... 64 seconds, so that a job that fails at once does not spin.
    const Duration pause = seconds(std::int64_t{2} << std::min(retries_done, 5));
    return Requeued{job.id, cause, now, now + pause};
  }
  return Finished{job.id, Outcome::failed, outgrown ? stop->detail : failure_text(job, exit), now};
}

class Comparison {
 public:
  Comparison(const State& state, const Policy& policy, const NodeReport& report, Instant now)
      : state_(state), policy_(policy), report_(report), now_(now) {}

  std::vector<Fact> run() {
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
  void compare(const Attempt& attempt, const AttemptSeen& s) {
    if (!attempt.started && s.started) facts_.push_back(Started{attempt.id, s.pid, *s.started});
    if (s.phase != AttemptPhase::exited) {
      watch_memory(attempt);
      return;
    }
    if (!attempt.exit && s.exit) exited(attempt, *s.exit, s.ended.value_or(now_));
    if ((attempt.exit || s.exit) && s.processes_gone && !on_devices(report_.node, attempt.id))
      facts_.push_back(Released{attempt.id, now_});
  }

  void exited(const Attempt& attempt, const ExitStatus& exit, Instant at) {
    const Job& job = state_.jobs.at(attempt.id.job);
    facts_.push_back(Exited{attempt.id, exit, at});
    facts_.push_back(conclude(job, exit, now_));
  }

  // Reports are complete: an attempt that had started and is not in one is gone with its record.
  // One that had not started may be under way to the agent: reconcile sends Start (or
  // Stop, which the agent answers even for an attempt it never got) until it is seen.
  void vanished(const Attempt& attempt) {
    if (!attempt.started && !attempt.exit) return;
    if (!attempt.exit) {
      ExitStatus exit;
      exit.cause = ExitCause::lost;
      exit.message =
          "the node no longer has a record of it, as after a restart of the host: its "
          "outcome is unknown";
      exited(attempt, exit, now_);
    }
    if (!on_devices(report_.node, attempt.id)) facts_.push_back(Released{attempt.id, now_});
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
      facts_.push_back(
          StopRequested{attempt.id, StopReason::memory_watchdog,
                        fmt::format("OOM: asked {}, used {}: try --memory {}GiB",
                                    gib(device.memory), gib(used), (used.value * 5 / 4 >> 30) + 1),
                        policy_.stop_grace, now_});
      return;
    }
  }

  const State& state_;
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

std::vector<Fact> handle(const State& state, const Policy& policy, const NodeReport& report,
                         Instant now) {
  return Comparison(state, policy, report, now).run();
}

std::vector<Fact> tick(const State& state, const Policy& policy, Instant now) {
  std::vector<Fact> facts;
  for (const JobId id : state.holding) {
    const Job& job = state.jobs.at(id);
    const Attempt& a = *job.attempt;
    if (!job.spec().kill_after || !a.started || a.exit || a.stop) continue;
    if (now - *a.started < *job.spec().kill_after) continue;
    facts.push_back(StopRequested{
        a.id, StopReason::kill_after,
        fmt::format("stopped after kill_after: {} s", job.spec().kill_after->us / 1'000'000),
        policy.stop_grace, now});
  }
  return facts;
}

bool observe(Cluster& cluster, const NodeReport& report, Instant now) {
  const auto it = cluster.nodes.find(report.node.id);
  if (it == cluster.nodes.end()) {
    cluster.nodes[report.node.id] = {report, now, true};
    ++cluster.version;
    return true;
  }
  SeenReport& seen = it->second;
  const bool changed = !seen.reachable || !same_for_placement(seen.report.node, report.node);
  seen = {report, now, true};
  if (changed) ++cluster.version;
  return changed;
}

bool observe_silence(Cluster& cluster, const Policy& policy, Instant now) {
  bool changed = false;
  for (auto& [id, seen] : cluster.nodes) {
    if (!seen.reachable || now - seen.received <= policy.node_silent_max) continue;
    seen.reachable = false;
    ++cluster.version;
    changed = true;
  }
  return changed;
}

std::string to_string(StopReason reason) {
  switch (reason) {
    case StopReason::cancelled: return "cancelled";
    case StopReason::kill_after: return "kill-after";
    case StopReason::memory_watchdog: break;
  }
  return "memory-watchdog";
}

}  // namespace takt::control
