// Nobody sees, hears or is told to do anything that is not on disk.
#include "core/replay/checkers.h"
#include "core/replay/world.h"

namespace takt::replay {
namespace {

class Views final : public Checker {
 public:
  const char* name() const override { return "views"; }

  void published(World& world) override {
    look(world, "what is shown differs from what is on disk");
  }
  void answered(World& world, const control::Command& command,
                const Result<control::Accepted>& answer) override {
    look(world, "an answer was given while what is shown differs from what is on disk");
    if (!answer || !std::holds_alternative<control::Submit>(command)) return;
    for (const JobId id : answer->jobs)
      if (world.disk.synced().jobs.count(id) == 0 && world.disk.archive.count(id) == 0)
        world.fail(name(), "job " + to_string(id) + " was acknowledged and is not on disk");
  }
  void told(World& world, const NodeId&, const std::vector<control::Effect>& effects) override {
    for (const control::Effect& effect : effects)
      if (const auto* start = std::get_if<control::Start>(&effect)) {
        const auto& jobs = world.disk.synced().jobs;
        const auto job = jobs.find(start->order.attempt.job);
        if (job == jobs.end() || !job->second.attempt ||
            job->second.attempt->id != start->order.attempt)
          world.fail(name(), "attempt " + to_string(start->order.attempt) +
                                 " is to be started and its grant is not on disk");
      }
  }

 private:
  void look(World& world, const char* sentence) {
    if (control::fingerprint(world.server.loop().state()) !=
        control::fingerprint(world.disk.synced()))
      world.fail(name(), sentence);
  }
};

}  // namespace

std::unique_ptr<Checker> check_views() { return std::make_unique<Views>(); }

}  // namespace takt::replay
