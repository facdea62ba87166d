// Nobody waits without a reason that can be read, and an action that helps.
#include <fmt/core.h>

#include "core/control/views.h"
#include "core/replay/checkers.h"
#include "core/replay/world.h"

namespace takt::replay {
namespace {

constexpr int kEvery = 16;  // steps: views cost more than the rest

class Reasons final : public Checker {
 public:
  const char* name() const override { return "reasons"; }

  void step(World& world) override {
    if (world.steps % kEvery != 0 || !world.server.up()) return;
    const Instant now = world.server_clock().wall(world.now);
    const control::Sight sight = world.server.loop().sight(now);
    for (const JobId id : sight.state.waiting) {
      const control::JobView view = control::job_view(sight, sight.state.jobs.at(id));
      const bool told = !view.waiting_for.empty() && !view.waiting_for.front().available.empty() &&
                        !view.waiting_for.front().action.empty();
      if (!told)
        world.fail(name(), fmt::format("job {} waits and nobody is told why", to_string(id)));
    }
  }
};

}  // namespace

std::unique_ptr<Checker> check_reasons() { return std::make_unique<Reasons>(); }

}  // namespace takt::replay
