#include "core/control/reconcile.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/planted.h"
#include "core/schedule/decide.h"
#include "core/schedule/ledger.h"
#include "core/schedule/place.h"
#include "core/schedule/queue.h"

namespace takt::control {

namespace {

void add_holdings(const State& state, const Policy& policy, schedule::Snapshot& s) {
  for (const JobId id : state.holding) {
    const Job& job = state.jobs.at(id);
    const Attempt& a = *job.attempt;
    if (a.exit && planted(Planted::ended_holds_nothing)) continue;
    schedule::Holding h{a.id,    job.spec().name, job.submitter().user, *job.spec().tier,
                        a.grant, a.granted,       std::nullopt,         a.exit.has_value()};
    if (const auto time = schedule::estimate(job.spec(), policy))
      h.expected_end = a.started.value_or(a.granted) + *time;
    s.holdings.push_back(std::move(h));
  }
}

// All attempts that are there and have not begun: whether it has placed them already it may not
// have told yet.
schedule::PlacingEngine placing_engine(const State& state, const Cluster& cluster) {
  schedule::PlacingEngine engine;
  engine.name = cluster.engine.name;
  if (!cluster.nodes.empty()) {
    engine.node = cluster.nodes.begin()->first;
    engine.reachable = cluster.nodes.begin()->second.reachable();
  }
  for (const JobId id : state.holding) {
    const Attempt& a = *state.jobs.at(id).attempt;
    engine.waiting += !a.started && !a.exit;
  }
  return engine;
}

}  // namespace

schedule::Snapshot snapshot(const State& state, const Cluster& cluster, const Policy& policy,
                            Instant now) {
  schedule::Snapshot s;
  s.version = state.ledger_version + cluster.version;
  s.waiting.reserve(state.waiting.size());
  auto next = state.jobs.begin();
  for (const JobId id : state.waiting) {
    // Both are by id, and those that wait are mostly neighbours.
    if (next == state.jobs.end() || next->first != id) next = state.jobs.find(id);
    const Job& job = next->second;
    ++next;
    // Its last attempt still holds devices: they are to be proven free before it starts again.
    if (job.holding() || (job.hold && !planted(Planted::hold_ignored))) continue;
    s.waiting.push_back(
        {id, job.shared_spec(), job.submitter().user, job.submission->at, job.not_before});
  }
  add_holdings(state, policy, s);
  if (cluster.engine.placement == Placement::engine) s.engine = placing_engine(state, cluster);
  for (const auto& [id, seen] : cluster.nodes)
    s.nodes.push_back({seen.report.node, seen.reachable() || planted(Planted::silence_ignored)});
  for (const auto& [user, usage] : state.usage)
    s.usage[user] = schedule::decayed(usage.amount, now - usage.at, policy.fair_share_half_life);
  return s;
}

Admission admit(const State& state, const Cluster& cluster, const Policy& policy,
                const schedule::Plan& plan, Instant now) {
  Admission admission;
  if (plan.version != state.ledger_version + cluster.version) {
    admission.dropped = "the plan was made for an older state";
    return admission;
  }
  if (plan.placements.empty()) return admission;
  // Who holds what on which GPUs: the queue has no part in this.
  schedule::Snapshot after;
  add_holdings(state, policy, after);
  for (const auto& [id, seen] : cluster.nodes) after.nodes.push_back({seen.report.node, true});
  std::uint64_t generation = state.next_generation;
  for (const schedule::Placement& placement : plan.placements) {
    const auto it = state.jobs.find(placement.job);
    if (it == state.jobs.end() || !it->second.waiting() || it->second.holding() ||
        (it->second.hold && !planted(Planted::hold_ignored))) {
      admission.dropped = fmt::format("job {} is not waiting", to_string(placement.job));
      return admission;
    }
    const AttemptId attempt{placement.job, it->second.attempts + 1};
    after.holdings.push_back({attempt, it->second.spec().name, it->second.submitter().user,
                              *it->second.spec().tier, placement.grant, now, std::nullopt, false});
    const auto node = cluster.nodes.find(placement.grant.node);
    admission.facts.push_back(
        Granted{attempt, generation++, placement.grant, now,
                node == cluster.nodes.end() ? "" : node->second.report.node.boot_id});
  }
  // Where an engine chooses the devices, who holds them is what it was seen to say.
  if (cluster.engine.placement == Placement::engine) return admission;
  if (auto twice = schedule::overlap(after)) {
    admission.facts.clear();
    admission.dropped = *twice;
  }
  return admission;
}

std::string stdout_path(const Places& places, AttemptId attempt) {
  return fmt::format("{}/{}.out", places.logs, to_string(attempt));
}

std::string stderr_path(const Places& places, AttemptId attempt) {
  return fmt::format("{}/{}.err", places.logs, to_string(attempt));
}

namespace {

void set(std::vector<EnvironmentVariable>& env, const std::string& name, const std::string& value) {
  for (EnvironmentVariable& e : env)
    if (e.name == name) {
      e.value = value;
      e.secret = false;
      return;
    }
  env.push_back({name, value, false});
}

void set_default(std::vector<EnvironmentVariable>& env, const std::string& name,
                 const std::string& value) {
  const bool there = std::any_of(env.begin(), env.end(),
                                 [&](const EnvironmentVariable& e) { return e.name == name; });
  if (!there) env.push_back({name, value, false});
}

// A gang on one node as torchrun expects it. The port is from the job's number, so that two gangs
// on one host do not meet.
void gang_environment(std::vector<EnvironmentVariable>& env, const Job& job) {
  const std::size_t gpus = job.attempt->grant.devices.size();
  if (gpus < 2) return;
  set_default(env, "MASTER_ADDR", "127.0.0.1");
  set_default(env, "MASTER_PORT", std::to_string(20'000 + job.id.value % 10'000));
  set_default(env, "NODE_RANK", "0");
  set_default(env, "RANK", "0");
  set_default(env, "WORLD_SIZE", std::to_string(gpus));
}

std::vector<EnvironmentVariable> environment(const State& state, const Job& job,
                                             const Places& places) {
  std::vector<EnvironmentVariable> env = state.environment_of(job);
  const Attempt& attempt = *job.attempt;
  std::string visible;
  for (const DeviceGrant& d : attempt.grant.devices)
    visible += (visible.empty() ? "" : ",") + d.uuid.value;
  // Where an engine chooses the devices, it says so to the job itself.
  if (!attempt.grant.devices.empty() || !schedule::wants_gpu(job.spec()))
    set(env, "CUDA_VISIBLE_DEVICES", visible);
  set(env, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  set(env, "TAKT_JOB_ID", to_string(job.id));
  set(env, "TAKT_ATTEMPT", std::to_string(attempt.id.number));
  const auto asked = static_cast<std::size_t>(job.spec().gpus.count.value_or(1));
  const bool placed = !attempt.grant.devices.empty() || !schedule::wants_gpu(job.spec());
  set(env, "TAKT_GPUS", std::to_string(placed ? attempt.grant.devices.size() : asked));
  set(env, "TAKT_SOCKET", places.socket);
  if (!attempt.grant.devices.empty())
    set(env, "TAKT_GPU_MEMORY_MIB",
        std::to_string(attempt.grant.devices.front().memory.value >> 20));
  if (job.submission->group_size > 1) {
    set(env, "TAKT_ARRAY_INDEX", std::to_string(job.group_index));
    set(env, "TAKT_ARRAY_SIZE", std::to_string(job.submission->group_size));
  }
  for (const auto& [name, value] : job.parameters) set(env, "TAKT_PARAM_" + name, value);
  gang_environment(env, job);
  const Identity& who = job.submitter();
  set_default(env, "HOME", who.home);
  set_default(env, "USER", who.user);
  set_default(env, "LOGNAME", who.user);
  set_default(env, "SHELL", "/bin/sh");
  set_default(env, "PATH", "/usr/local/bin:/usr/bin:/bin");
  return env;
}

const AttemptSeen* seen_in(const NodeReport& report, AttemptId id) {
  for (const AttemptSeen& s : report.attempts)
    if (s.attempt == id) return &s;
  return nullptr;
}

}  // namespace

LaunchOrder launch_order(const State& state, const Job& job, const Places& places) {
  LaunchOrder order;
  order.attempt = job.attempt->id;
  order.generation = job.attempt->generation;
  order.identity = job.submitter();
  order.argv = job.spec().argv;
  order.env = environment(state, job, places);
  order.workdir = job.spec().workdir;
  order.stdout_path = stdout_path(places, order.attempt);
  order.stderr_path = stderr_path(places, order.attempt);
  order.log_max = places.log_max;
  order.gpus = job.spec().gpus;
  order.grant = job.attempt->grant;
  return order;
}

std::optional<Instant> hand_over_from(const EngineInfo& engine, Instant now) {
  if (!engine.remembers) return std::nullopt;
  return now - Duration{engine.remembers->us / 2};
}

std::vector<Effect> reconcile(const State& state, const NodeReport& report, const Places& places,
                              std::optional<Instant> start_from) {
  std::vector<Effect> effects;
  const Basis basis{report.node.boot_id, report.life, report.sequence};
  for (const JobId id : state.holding) {
    const Job& job = state.jobs.at(id);
    const Attempt& a = *job.attempt;
    if (a.grant.node != report.node.id || a.exit) continue;
    const AttemptSeen* seen = seen_in(report, a.id);
    if (a.stop)
      effects.push_back(Stop{a.id, a.generation, a.stop->grace});
    else if (seen == nullptr && !a.started && (!start_from || a.granted >= *start_from) &&
             (a.boot_id.empty() || a.boot_id == report.node.boot_id ||
              planted(Planted::boot_ignored)))
      effects.push_back(Start{launch_order(state, job, places), basis});
  }
  for (const AttemptSeen& s : report.attempts) {
    const auto it = state.jobs.find(s.attempt.job);
    const bool current = it != state.jobs.end() && it->second.attempt &&
                         it->second.attempt->id == s.attempt &&
                         it->second.attempt->generation == s.generation;
    if (current && !it->second.attempt->released) continue;
    // Also of a job that has left for the archive: its Forget may have been lost with an agent.
    if (s.phase == AttemptPhase::exited && s.processes_gone) effects.push_back(Forget{s.attempt});
    // Only a job that this controller knows is its to end: an attempt of another life of the state
    // folder is shown and left alone.
    if (s.phase != AttemptPhase::exited && it != state.jobs.end())
      effects.push_back(Stop{s.attempt, s.generation, seconds(10)});
  }
  return effects;
}

}  // namespace takt::control
