// An attempt begins once; a job has one program at a time, as many attempts as it may have, and
// none that nobody granted.
#include <fmt/core.h>

#include <map>
#include <set>

#include "core/replay/checkers.h"
#include "core/replay/world.h"

namespace takt::replay {
namespace {

class Launches final : public Checker {
 public:
  const char* name() const override { return "launches"; }

  void synced(World&, const std::vector<control::Fact>& facts) override {
    for (const control::Fact& fact : facts) {
      if (const auto* g = std::get_if<control::Granted>(&fact)) granted_.insert(g->attempt);
      if (const auto* a = std::get_if<control::JobAccepted>(&fact))
        for (int i = 0; i < a->count; ++i)
          retries_[JobId(a->job.value + static_cast<std::uint64_t>(i))] =
              a->submission->spec.retry.max;
    }
  }

  void began(World& world, const Execution& execution) override {
    const AttemptId id = execution.attempt;
    auto& earlier = of_job_[id.job];
    for (const Execution* e : earlier)
      if (e->attempt == id)
        world.fail(name(), fmt::format("attempt {} was launched twice", to_string(id)));
    if (granted_.count(id) == 0)
      world.fail(name(), fmt::format("attempt {} was launched and its grant is not on disk",
                                     to_string(id)));
    if (static_cast<int>(earlier.size()) > retries_[id.job])
      world.fail(name(), fmt::format("job {} ran {} times and may be tried again {} times",
                                     to_string(id.job), earlier.size() + 1, retries_[id.job]));
    earlier.push_back(&execution);
    if (earlier.size() > 1) again_.insert(id.job);
  }

  // At the end of a step all machines have come as far as each other.
  void step(World& world) override {
    for (const JobId id : again_) {
      const auto& all = of_job_[id];
      const Execution& last = *all.back();
      for (const Execution* e : all)
        if (e != &last && (!e->gone || *e->gone > last.began))
          world.fail(name(), fmt::format("attempt {} began while attempt {} of the same job ran",
                                         to_string(last.attempt), to_string(e->attempt)));
    }
    again_.clear();
  }

 private:
  std::set<AttemptId> granted_;
  std::map<JobId, int> retries_;
  std::map<JobId, std::vector<const Execution*>> of_job_;
  std::set<JobId> again_;
};

}  // namespace

std::unique_ptr<Checker> check_launches() { return std::make_unique<Launches>(); }

}  // namespace takt::replay
