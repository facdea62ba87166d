// What is on disk folds to what was live, byte for byte: from the snapshot, and from the first fact
// on. The fingerprint that `fold` keeps is that of the state.
#include <fmt/core.h>

#include "core/replay/checkers.h"
#include "core/replay/world.h"

namespace takt::replay {
namespace {

constexpr int kEvery = 400;  // steps

class Replay final : public Checker {
 public:
  const char* name() const override { return "replay"; }

  void recovered(World& world) override {
    compare(world, world.server.loop().state(), "what was recovered");
  }
  void step(World& world) override {
    if (world.steps % kEvery != 0) return;
    all(world);
  }
  void end(World& world) override { all(world); }

 private:
  void all(World& world) {
    for (const bool from_the_first : {false, true}) {
      const auto state = from_the_first ? world.disk.replay() : world.disk.recover();
      if (!state) return world.fail(name(), state.error().message);
      compare(world, *state,
              from_the_first ? "what was replayed from the first fact on"
                             : "what was replayed from the snapshot on");
    }
    const control::State& live = world.disk.synced();
    if (control::fingerprint(live) != control::fingerprint_anew(live))
      world.fail(name(), "the fingerprint that is kept is not that of the state");
  }
  void compare(World& world, const control::State& state, const char* what) {
    const control::State& live = world.disk.synced();
    if (control::fingerprint(state) != control::fingerprint(live))
      return world.fail(name(), fmt::format("{} has another fingerprint than what was live", what));
    if (world.disk.text(state) != world.disk.text(live))
      world.fail(name(), fmt::format("{} is not what was live, byte for byte", what));
  }
};

}  // namespace

std::unique_ptr<Checker> check_replay() { return std::make_unique<Replay>(); }

}  // namespace takt::replay
