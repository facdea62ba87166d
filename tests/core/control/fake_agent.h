#pragma once
// A node agent in memory that behaves like the real one (app/agent, edge/launch) and has bad days:
// effects are lost, doubled, delayed, and overtake those of other attempts; it restarts; its host
// reboots.
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/control/engine_contract.h"
#include "support/cluster_builder.h"

namespace takt::control {

class FakeAgent {
 public:
  FakeAgent(Node node, std::uint64_t seed) : node_(std::move(node)), random_(seed) {}

  bool faults = true;
  // What the test looks at.
  std::map<AttemptId, int> launches;         // since the host's last boot
  std::map<AttemptId, ExitStatus> outcomes;  // of programs that ended by themselves
  std::string violation;                     // the first thing that must never happen

  void take(const std::vector<Effect>& effects) {
    for (const Effect& e : effects) {
      if (chance(15) || std::holds_alternative<Renew>(e)) continue;
      under_way_.push_back(e);
      if (chance(15)) under_way_.push_back(e);
    }
  }

  // One moment passes: some effects arrive, programs go on and end.
  void step(Instant now) {
    // In any order; some stay on their way for long.
    std::shuffle(under_way_.begin(), under_way_.end(), random_);
    std::vector<Effect> late;
    for (const Effect& effect : under_way_)
      if (chance(30))
        late.push_back(effect);
      else
        std::visit([&](const auto& e) { obey(e, now); }, effect);
    under_way_ = std::move(late);
    for (auto& [id, record] : records_) go_on(id, record, now);
  }

  void restart() {  // the process; records and programs outlive it
    unstarted_.clear();
    ++life_;
    sequence_ = 0;
    forgotten_at_ = 0;
  }
  void reboot() {
    restart();
    records_.clear();
    launches.clear();
    node_.boot_id += "'";
  }

  NodeReport report(Instant now) {
    NodeReport r;
    r.life = life_;
    r.sequence = ++sequence_;
    r.at = now;
    r.made = now;
    r.node = node_;
    for (const auto& [id, record] : records_) {
      if (record.listed) r.attempts.push_back(record.seen);
      if (record.gone()) continue;
      for (const DeviceGrant& d : record.grant.devices)
        for (Gpu& g : r.node.gpus)
          if (g.uuid == d.gpu) {
            GpuProcess p =
                testing::process(record.seen.pid, "user", "program", Bytes{d.memory.value / 2});
            p.attempt = id;
            g = testing::occupied(g, p);
          }
    }
    for (const auto& [id, seen] : unstarted_) r.attempts.push_back(seen);
    return r;
  }

 private:
  struct Record {
    AttemptSeen seen;
    Grant grant;
    bool listed = true;  // a launch under way is not in the first report
    bool stopping = false;
    bool gone() const { return seen.processes_gone; }
  };

  bool chance(int percent) {
    return faults && std::uniform_int_distribution<int>(0, 99)(random_) < percent;
  }
  int pick(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

  void obey(const Start& e, Instant now) {
    const AttemptId id = e.order.attempt;
    if (unstarted_.count(id) != 0) return;
    if (e.basis.boot_id != node_.boot_id || e.basis.life != life_ ||
        e.basis.sequence < forgotten_at_)
      return;
    if (const auto it = records_.find(id); it != records_.end()) {
      if (it->second.seen.generation != e.order.generation)
        note(id, "known with another generation");
      return;
    }
    if (++launches[id] > 1) note(id, "launched twice");
    for (const auto& [other, record] : records_)
      if (!record.gone() && clash(record.grant, e.order.grant))
        note(id, "launched on a device of attempt " + to_string(other) + ", which is still there");
    Record record;
    record.seen = testing::running(id, e.order.generation, now);
    record.grant = e.order.grant;
    record.listed = !chance(30);
    records_[id] = record;
  }
  void obey(const Stop& e, Instant now) {
    if (const auto it = records_.find(e.attempt); it != records_.end()) {
      it->second.stopping = true;
      return;
    }
    if (unstarted_.count(e.attempt) != 0) return;
    AttemptSeen seen = testing::exited(e.attempt, e.generation, now, now, {}, true);
    seen.started.reset();
    seen.exit->cause = ExitCause::lost;
    seen.exit->message = "stopped before it started";
    unstarted_[e.attempt] = seen;
  }
  void obey(const Renew&, Instant) {}
  void obey(const Forget& e, Instant) {
    forgotten_at_ = sequence_ + 1;
    unstarted_.erase(e.attempt);
    const auto it = records_.find(e.attempt);
    if (it == records_.end()) return;
    if (!it->second.gone()) note(e.attempt, "forgotten while its processes live");
    records_.erase(it);
  }

  void go_on(AttemptId id, Record& record, Instant now) {
    record.listed = true;
    AttemptSeen& seen = record.seen;
    if (seen.phase == AttemptPhase::exited) {
      if (!seen.processes_gone && pick(2) == 0) seen.processes_gone = true;
      return;
    }
    if (!record.stopping && pick(8) != 0) return;
    if (record.stopping && pick(2) == 0) return;
    seen.phase = AttemptPhase::exited;
    seen.ended = now;
    seen.exit.emplace();
    if (record.stopping) {
      seen.exit->cause = ExitCause::signalled;
      seen.exit->signal = 15;
    } else {
      seen.exit->code = pick(3) == 0 ? 1 : 0;
      outcomes[id] = *seen.exit;
    }
  }

  static bool clash(const Grant& a, const Grant& b) {
    for (const DeviceGrant& x : a.devices)
      for (const DeviceGrant& y : b.devices)
        if (x.gpu == y.gpu && !(x.kind == DeviceKind::share && y.kind == DeviceKind::share) &&
            !(x.kind == DeviceKind::mig_instance && y.kind == DeviceKind::mig_instance &&
              x.uuid != y.uuid))
          return true;
    return false;
  }
  void note(AttemptId id, const std::string& what) {
    if (violation.empty()) violation = "attempt " + to_string(id) + ": " + what;
  }

  Node node_;
  std::mt19937_64 random_;
  std::uint64_t life_ = 1;
  std::uint64_t sequence_ = 0;
  std::uint64_t forgotten_at_ = 0;
  std::vector<Effect> under_way_;               // outlives the agent: it arrives in any order
  std::map<AttemptId, Record> records_;         // on the host's tmpfs
  std::map<AttemptId, AttemptSeen> unstarted_;  // in the agent's memory
};

}  // namespace takt::control
