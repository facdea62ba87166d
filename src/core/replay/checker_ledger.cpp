// Who holds what heals by itself: devices of an attempt of which nothing is left come back within
// some rounds of reports, once all works; queue and ledger are what the jobs say.
#include <fmt/core.h>

#include <map>

#include "core/replay/checkers.h"
#include "core/replay/world.h"

namespace takt::replay {
namespace {

// One report says that it ended, one that a later look shows nothing of it. An agent looks every
// two seconds; the rest is what the driver shows for longer, and KILL for what was left behind.
constexpr Duration kHealed = seconds(25);

class Healed final : public Checker {
 public:
  const char* name() const override { return "ledger"; }

  void published(World& world) override {
    const control::State& state = world.server.loop().state();
    if (++looks_ % 16 != 0) return;
    for (const auto& [id, job] : state.jobs) {
      if ((state.waiting.count(id) != 0) != job.waiting())
        world.fail(name(), fmt::format("job {} and the queue disagree", to_string(id)));
      if ((state.holding.count(id) != 0) != job.holding())
        world.fail(name(), fmt::format("job {} and the ledger disagree", to_string(id)));
    }
  }

  void step(World& world) override {
    if (!world.calm_since || !world.server.up()) return;
    const control::State& state = world.server.loop().state();
    std::map<AttemptId, Instant> leaked;
    for (const JobId id : state.holding) {
      const control::Attempt& a = *state.jobs.at(id).attempt;
      const Execution* e = world.execution(a.id);
      const bool never_began = e == nullptr;
      // It waits for its turn at an engine that places by itself; that it comes is `ends`' to see.
      if (never_began && world.scenario.engine == EngineKind::placing) continue;
      if (!never_began && !e->gone) continue;
      const Instant gone = never_began ? world.now : *e->gone + e->program.shown;
      const auto before = leaked_.find(a.id);
      const Instant since =
          before == leaked_.end() ? std::max(gone, *world.calm_since) : before->second;
      leaked[a.id] = since;
      if (world.now - since > kHealed + world.engine_info.absent_grace)
        world.fail(name(), fmt::format("devices of {} are held for attempt {}, of which nothing is "
                                       "left for {} s",
                                       a.grant.node.value, to_string(a.id),
                                       (world.now - since).us / 1'000'000));
    }
    leaked_ = std::move(leaked);
  }

 private:
  std::map<AttemptId, Instant> leaked_;
  int looks_ = 0;
};

}  // namespace

std::unique_ptr<Checker> check_ledger() { return std::make_unique<Healed>(); }

}  // namespace takt::replay
