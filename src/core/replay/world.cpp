#include "core/replay/world.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/fingerprint.h"
#include "core/replay/catalogue.h"
#include "core/replay/hardware.h"
#include "core/replay/node_agent.h"
#include "core/replay/placing_engine.h"

namespace takt::replay {
namespace {

constexpr Instant kBeginning{1'700'000'000'000'000};

// As in production, with shorter times and smaller limits, so that all of them are met.
Policy short_policy() {
  Policy p;
  p.stop_grace = seconds(4);
  p.node_silent_max = seconds(10);
  p.node_unreachable_after = seconds(30);
  p.node_lost_after = seconds(60);
  p.kill_proof_max = seconds(20);
  p.finished.live_max = 12;
  p.finished.live_for = minutes(3);
  p.limits.engine_waiting_max = 6;
  p.limits.pending_jobs_max = 60;
  p.limits.pending_jobs_per_user_max = 40;
  return p;
}

control::EngineInfo info_of(const Scenario& scenario) {
  control::EngineInfo info;
  if (scenario.engine == EngineKind::placing) {
    info.name = "cluster";
    info.placement = control::Placement::engine;
    info.remembers = PlacingEngine::kRemembers;
    info.absent_grace = minutes(3);
  }
  if (scenario.engine == EngineKind::leased) {
    info.name = "leased";
    // Shorter and longer than it takes to call a node lost.
    info.lease = scenario.seed % 2 == 0 ? seconds(45) : seconds(150);
    info.absent_grace = minutes(3);  // messages are late by two minutes at most
  }
  return info;
}

std::vector<Actor> actors(const std::vector<Part>& parts, const std::vector<std::string>& names,
                          const Random& random) {
  std::vector<Actor> chosen;
  for (const std::string& name : names)
    if (const Part* part = find(parts, name))
      chosen.push_back({name, part->act, random.fork(name)});
  return chosen;
}

}  // namespace

World::World(Scenario s, FactText text)
    : scenario(std::move(s)),
      policy(short_policy()),
      engine_info(info_of(scenario)),
      now(kBeginning),
      disk(std::move(text), policy.fair_share_half_life, Random(scenario.seed).fork("disk")),
      network(Random(scenario.seed).fork("network")),
      server(policy, engine_info, disk, *this, Random(scenario.seed).fork("server")),
      users(server, Random(scenario.seed).fork("users")),
      head_clock(kBeginning),
      checkers_(all_checkers()),
      workloads_(actors(workloads(), scenario.workloads, Random(scenario.seed))),
      faults_(actors(faults(), scenario.faults, Random(scenario.seed))),
      random_(Random(scenario.seed).fork("world")) {
  Witness& witness = *this;
  if (scenario.engine == EngineKind::placing)
    engines.push_back(
        std::make_unique<PlacingEngine>(simulated_cluster("cluster"), scenario.seed, now, witness));
  for (int i = 0; i < scenario.nodes && scenario.engine != EngineKind::placing; ++i)
    engines.push_back(std::make_unique<NodeAgent>(
        simulated_node("n" + std::to_string(i + 1), static_cast<int>(scenario.seed % 3) + i),
        scenario.seed, now, witness, engine_info.lease));
  for (const auto& engine : engines) {
    const Node node = engine->machine().look(now);
    gpus_max_ = std::max(
        gpus_max_, static_cast<int>(std::count_if(node.gpus.begin(), node.gpus.end(),
                                                  [](const Gpu& g) { return !*g.mig.enabled; })));
  }
}

void World::step() {
  ++steps;
  now = now + random_.between(milliseconds(30), milliseconds(1200));
  for (Actor& fault : faults_) fault.act(*this, fault.random);
  for (Actor& workload : workloads_) workload.act(*this, workload.random);
  work();
}

void World::calm_step() {
  ++steps;
  now = now + random_.between(milliseconds(200), milliseconds(1500));
  if (!calm_since) become_calm();
  // Services end when somebody wants it, held jobs wait until somebody lifts the hold, and what no
  // machine can meet (it came before a node had reported) until somebody takes it back.
  if (server.up() && random_.one_in(8))
    for (const auto& [id, job] : server.loop().state().jobs) {
      if (job.finished) continue;
      if (job.hold) users.release(id, user(-1));
      const JobSpec& spec = job.spec();
      const bool nobody_can = spec.gpus.count.value_or(0) > gpus_max_ || !spec.gpus.types.empty();
      if ((spec.argv.front() == kind::forever || nobody_can) && !job.cancel_requested)
        users.cancel(id, user(-1));
    }
  work();
}

void World::become_calm() {
  calm_since = now;
  network.heal(now);
  disk.full = false;
  disk.failing_percent = 0;
  disk.slow_max = {};
  for (const auto& engine : engines) engine->heal(now);
  server.heal(now);
}

void World::work() {
  for (const auto& engine : engines) engine->advance(now, network);
  for (control::NodeReport& report : network.reports(now)) server.hear(std::move(report));
  users.advance(now);
  const std::uint64_t lives = server.lives();
  const bool was_up = server.up();
  const bool host_up = !local() || engines.front()->machine().up();
  if (host_up)
    server.advance(now, server_clock(),
                   local() ? engines.front()->machine().boot_id() : "head-boot");
  if (was_up && (!server.up() || server.lives() != lives)) {
    ++crashes;
    if (local()) kill_engine(*engines.front(), milliseconds(500));
  }
  for (const auto& checker : checkers_) checker->step(*this);
}

HostClock& World::server_clock() { return local() ? engines.front()->machine().clock : head_clock; }

bool World::all_over() const {
  return server.up() && !users.waits() && server.loop().state().waiting.empty() &&
         server.loop().state().holding.empty();
}

void World::finish() {
  for (const auto& checker : checkers_) checker->end(*this);
}

void World::fail(const char* checker, const std::string& sentence) {
  if (violation) return;
  violation = Violation{
      checker,
      fmt::format("at {:.3f} s: {}", static_cast<double>((now - kBeginning).us) / 1e6, sentence),
      steps};
}

const Execution* World::execution(AttemptId attempt) const {
  const auto it = last_.find(attempt);
  return it == last_.end() ? nullptr : it->second;
}

void World::kill_server(Duration pause) {
  if (!server.up()) return;
  ++crashes;
  server.die(now, pause);
  // Its agent leaves when their connection closes.
  if (local()) kill_engine(*engines.front(), pause);
}

void World::kill_engine(Engine& engine, Duration pause) {
  engine.die(now, pause);
  if (local()) network.drop(engine.machine().id());
}

void World::crash_host(Engine& engine, Duration down) {
  engine.machine().crash(now, down);
  kill_engine(engine, {});
  network.drop(engine.machine().id());
  if (local() && server.up()) {
    ++crashes;
    server.die(now, down);
  }
}

Execution* World::began(Execution execution) {
  ++launches;
  executions.push_back(std::move(execution));
  Execution& kept = executions.back();
  last_[kept.attempt] = &kept;
  print_ = Fingerprint().add(print_).add(kept.attempt).add(kept.began).value();
  for (const auto& checker : checkers_) checker->began(*this, kept);
  return &kept;
}

void World::told_to_stop(const Execution& execution) {
  for (const auto& checker : checkers_) checker->told_to_stop(*this, execution);
}

void World::synced() {
  const auto facts = disk.news();
  if (facts.empty()) return;
  if (trace) trace(now - kBeginning, facts);
  print_ = Fingerprint().add(print_).add(control::fingerprint(disk.synced())).value();
  for (const auto& checker : checkers_) checker->synced(*this, facts);
}

void World::published() {
  for (const auto& checker : checkers_) checker->published(*this);
}

void World::answered(std::uint64_t token, const Result<control::Accepted>& answer) {
  const control::Command* command = users.answered(token, answer);
  if (command == nullptr) return;
  for (const auto& checker : checkers_) checker->answered(*this, *command, answer);
}

void World::told(const NodeId& node, const std::vector<control::Effect>& effects) {
  for (const auto& checker : checkers_) checker->told(*this, node, effects);
  network.to_node(node, effects, now);
}

void World::recovered() {
  for (const auto& checker : checkers_) checker->recovered(*this);
}

void World::passes(Duration time) { now = now + time; }

void World::mistake(const std::string& sentence) { fail("loop", sentence); }

}  // namespace takt::replay
