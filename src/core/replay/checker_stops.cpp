// Nothing that runs is ended without a reason: somebody asked for it, its own hard stop came, it
// outgrew its share. No limit strikes early.
#include <fmt/core.h>

#include <map>
#include <set>

#include "core/replay/checkers.h"
#include "core/replay/world.h"

namespace takt::replay {
namespace {

// What clocks that drift by 200 ppm, or that were set by less than is followed at once
// (control::kClockSetMin), may make of a limit of some minutes.
constexpr Duration kTolerance = seconds(2);

class Stops final : public Checker {
 public:
  const char* name() const override { return "stops"; }

  void synced(World& world, const std::vector<control::Fact>& facts) override {
    for (const control::Fact& fact : facts) {
      if (const auto* a = std::get_if<control::JobAccepted>(&fact))
        for (int i = 0; i < a->count; ++i)
          jobs_[JobId(a->job.value + static_cast<std::uint64_t>(i))] = a->submission;
      if (const auto* g = std::get_if<control::Granted>(&fact)) granted_[g->attempt] = world.now;
      if (const auto* e = std::get_if<control::Exited>(&fact)) over_.insert(e->attempt);
      if (const auto* c = std::get_if<control::CancelRequested>(&fact)) cancelled(world, c->job);
      if (const auto* s = std::get_if<control::StopRequested>(&fact)) {
        over_.insert(s->attempt);
        stop(world, *s);
      }
    }
  }

  void told_to_stop(World& world, const Execution& execution) override {
    if (over_.count(execution.attempt) == 0)
      world.fail(name(), fmt::format("attempt {} is told to stop, and no fact says that it should",
                                     to_string(execution.attempt)));
  }

 private:
  void cancelled(World& world, JobId id) {
    const Promises& promises = world.users.promises();
    const bool asked = promises.asked_to_cancel.count(id) != 0 ||
                       promises.cancelled_all.count(jobs_.at(id)->submitter.uid) != 0;
    if (!asked)
      world.fail(name(), fmt::format("job {} is cancelled and nobody asked for it", to_string(id)));
  }

  void stop(World& world, const control::StopRequested& s) {
    const Execution* execution = world.execution(s.attempt);
    const auto say = [&](const std::string& what) {
      world.fail(name(), fmt::format("attempt {} is to be stopped {}", to_string(s.attempt), what));
    };
    switch (s.reason) {
      case control::StopReason::cancelled: break;  // looked at when it was asked for
      case control::StopReason::memory_watchdog:
        if (execution == nullptr || execution->program.memory_percent <= 100)
          say("for its memory, and takes no more than it was granted");
        break;
      case control::StopReason::kill_after: {
        const Duration limit = *jobs_.at(s.attempt.job)->spec.kill_after;
        if (execution == nullptr) return say("after kill_after and never began");
        // Where a clock was set between its start and the report of it, its start is not known
        // better than its grant.
        const Duration ran = world.now - granted_.at(s.attempt);
        if (ran + kTolerance < limit)
          say(fmt::format("after kill_after of {} s, {:.3f} s after it was granted",
                          limit.us / 1'000'000, static_cast<double>(ran.us) / 1e6));
        break;
      }
    }
  }

  std::map<JobId, std::shared_ptr<const control::Submission>> jobs_;
  std::map<AttemptId, Instant> granted_;
  std::set<AttemptId> over_;
};

}  // namespace

std::unique_ptr<Checker> check_stops() { return std::make_unique<Stops>(); }

}  // namespace takt::replay
