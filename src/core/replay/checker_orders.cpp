// Who was told that a job is cancelled or held need not fear that it starts.
#include <fmt/core.h>

#include <map>
#include <set>

#include "core/replay/checkers.h"
#include "core/replay/world.h"

namespace takt::replay {
namespace {

class Orders final : public Checker {
 public:
  const char* name() const override { return "orders"; }

  void synced(World& world, const std::vector<control::Fact>& facts) override {
    for (const control::Fact& fact : facts) {
      if (const auto* l = std::get_if<control::HoldLifted>(&fact)) held_.erase(l->job);
      const auto* g = std::get_if<control::Granted>(&fact);
      if (g == nullptr) continue;
      const JobId id = g->attempt.job;
      if (cancelled_.count(id) != 0)
        world.fail(name(),
                   fmt::format("job {} was cancelled and is granted devices again", to_string(id)));
      if (held_.count(id) != 0)
        world.fail(name(), fmt::format("job {} is held and is granted devices", to_string(id)));
    }
  }

  void answered(World& world, const control::Command& command,
                const Result<control::Accepted>& answer) override {
    if (!answer) return;
    if (std::holds_alternative<control::Cancel>(command) ||
        std::holds_alternative<control::CancelAll>(command))
      cancelled_.insert(answer->jobs.begin(), answer->jobs.end());
    // It may have been lifted since: what is on disk counts.
    if (const auto* hold = std::get_if<control::HoldJob>(&command)) {
      const auto it = world.disk.synced().jobs.find(hold->job);
      if (it != world.disk.synced().jobs.end() && it->second.hold) held_.insert(hold->job);
    }
  }

 private:
  std::set<JobId> cancelled_;
  std::set<JobId> held_;
};

}  // namespace

std::unique_ptr<Checker> check_orders() { return std::make_unique<Orders>(); }

}  // namespace takt::replay
