// What somebody was told is there: a job that was accepted is in the state or in the archive, and
// one request made its jobs once.
#include <fmt/core.h>

#include <map>

#include "core/replay/checkers.h"
#include "core/replay/world.h"

namespace takt::replay {
namespace {

class Kept final : public Checker {
 public:
  const char* name() const override { return "promises"; }

  void synced(World& world, const std::vector<control::Fact>& facts) override {
    for (const control::Fact& fact : facts)
      if (const auto* a = std::get_if<control::JobAccepted>(&fact)) accepted(world, *a);
  }
  void answered(World& world, const control::Command& command,
                const Result<control::Accepted>& answer) override {
    if (answer && std::holds_alternative<control::Submit>(command))
      for (const JobId id : answer->jobs) look(world, id);
  }
  void recovered(World& world) override { look_at_all(world); }
  void end(World& world) override { look_at_all(world); }

 private:
  void accepted(World& world, const control::JobAccepted& a) {
    if (a.submission->request.empty()) return;
    const std::string key = a.submission->submitter.user + "/" + a.submission->request;
    const auto [it, first] = made_.try_emplace(key, a.job);
    if (!first)
      world.fail(name(), fmt::format("request {} made job {} and then job {}", key,
                                     to_string(it->second), to_string(a.job)));
  }
  void look_at_all(World& world) {
    for (const JobId id : world.users.promises().jobs) look(world, id);
  }
  void look(World& world, JobId id) {
    if (world.server.loop().state().jobs.count(id) != 0 || world.disk.archive.count(id) != 0)
      return;
    world.fail(name(), fmt::format("job {} was accepted and is nowhere", to_string(id)));
  }

  std::map<std::string, JobId> made_;
};

}  // namespace

std::unique_ptr<Checker> check_promises() { return std::make_unique<Kept>(); }

}  // namespace takt::replay
