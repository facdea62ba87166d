// No device is given to two at once: not by the facts, and not on any machine.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/replay/checkers.h"
#include "core/replay/world.h"

namespace takt::replay {
namespace {

bool clash(const DeviceGrant& a, const DeviceGrant& b) {
  if (a.gpu != b.gpu) return false;
  if (a.kind == DeviceKind::share && b.kind == DeviceKind::share) return false;
  if (a.kind == DeviceKind::mig_instance && b.kind == DeviceKind::mig_instance)
    return a.uuid == b.uuid;
  return true;
}

bool clash(const Grant& a, const Grant& b) {
  if (a.node != b.node) return false;
  for (const DeviceGrant& x : a.devices)
    for (const DeviceGrant& y : b.devices)
      if (clash(x, y)) return true;
  return false;
}

class Devices final : public Checker {
 public:
  const char* name() const override { return "devices"; }

  void synced(World& world, const std::vector<control::Fact>& facts) override {
    for (const control::Fact& fact : facts) {
      if (const auto* g = std::get_if<control::Granted>(&fact))
        grant(world, g->attempt, g->grant);
      else if (const auto* p = std::get_if<control::Placed>(&fact))
        grant(world, p->attempt, p->grant);
      else if (const auto* r = std::get_if<control::Released>(&fact))
        held_.erase(r->attempt);
    }
  }

  void step(World& world) override {
    for (const auto& engine : world.engines) look(world, engine->machine().id());
  }

  void began(World&, const Execution& execution) override {
    alive_[execution.node].push_back(&execution);
  }

 private:
  // Facts: a ledger of our own.
  void grant(World& world, AttemptId attempt, const Grant& grant) {
    // Where an engine chooses the devices, facts are what was seen, and may be seen late.
    if (world.scenario.engine == EngineKind::placing) return;
    held_.erase(attempt);
    std::map<DeviceUuid, Bytes> shared;
    for (const auto& [other, theirs] : held_) {
      if (clash(grant, theirs))
        world.fail(name(), fmt::format("attempt {} is granted a device that attempt {} holds",
                                       to_string(attempt), to_string(other)));
      for (const DeviceGrant& d : theirs.devices)
        if (d.kind == DeviceKind::share) shared[d.gpu] += d.memory;
    }
    for (const DeviceGrant& d : grant.devices)
      if (d.kind == DeviceKind::share && shared[d.gpu] + d.memory > gibibytes(80))
        world.fail(name(), fmt::format("the shares on {} are larger than it is", d.gpu.value));
    held_[attempt] = grant;
  }

  // Machines: what lives at the same time.
  void look(World& world, const NodeId& node) {
    auto& all = alive_[node];
    for (const Execution* a : all)
      for (const Execution* b : all) {
        if (a >= b || !clash(a->grant, b->grant)) continue;
        const bool apart = (a->gone && *a->gone <= b->began) || (b->gone && *b->gone <= a->began);
        if (!apart)
          world.fail(name(), fmt::format("programs of attempts {} and {} are on one device of {}",
                                         to_string(a->attempt), to_string(b->attempt), node.value));
      }
    // Those that are gone can meet nobody who begins later than a step ago.
    std::erase_if(all,
                  [&](const Execution* e) { return e->gone && world.now - *e->gone > minutes(1); });
  }

  std::map<AttemptId, Grant> held_;
  std::map<NodeId, std::vector<const Execution*>> alive_;
};

}  // namespace

std::unique_ptr<Checker> check_devices() { return std::make_unique<Devices>(); }

}  // namespace takt::replay
