// Once all works again, everything comes to an end.
#include <fmt/core.h>

#include "core/replay/checkers.h"
#include "core/replay/world.h"

namespace takt::replay {
namespace {

class Ends final : public Checker {
 public:
  const char* name() const override { return "ends"; }

  void end(World& world) override {
    if (world.all_over()) return;
    if (!world.server.up()) return world.fail(name(), "the controller does not come back");
    const control::State& state = world.server.loop().state();
    for (const JobId id : state.waiting)
      world.fail(name(), fmt::format("job {} waits for good", to_string(id)));
    for (const JobId id : state.holding)
      world.fail(name(), fmt::format("job {} does not end", to_string(id)));
    world.fail(name(), "somebody waits for an answer");
  }
};

}  // namespace

std::unique_ptr<Checker> check_ends() { return std::make_unique<Ends>(); }

}  // namespace takt::replay
