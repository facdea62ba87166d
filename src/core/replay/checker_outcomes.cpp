// What is told of an attempt is what happened: its exit code, that it ended, that nothing of it is
// left; and nothing is told twice.
#include <fmt/core.h>

#include <map>
#include <set>

#include "core/replay/checkers.h"
#include "core/replay/world.h"

namespace takt::replay {
namespace {

class Outcomes final : public Checker {
 public:
  const char* name() const override { return "outcomes"; }

  void synced(World& world, const std::vector<control::Fact>& facts) override {
    for (const control::Fact& fact : facts) {
      if (const auto* s = std::get_if<control::Started>(&fact)) once(world, started_, s->attempt);
      if (const auto* e = std::get_if<control::Exited>(&fact)) exited(world, *e);
      if (const auto* r = std::get_if<control::Released>(&fact)) released(world, *r);
      if (const auto* f = std::get_if<control::Finished>(&fact)) finished(world, f->job);
      if (const auto* c = std::get_if<control::JobCancelled>(&fact)) finished(world, c->job);
    }
  }

 private:
  void say(World& world, AttemptId id, const std::string& what) {
    world.fail(name(), fmt::format("attempt {} {}", to_string(id), what));
  }
  void once(World& world, std::set<AttemptId>& seen, AttemptId id) {
    if (!seen.insert(id).second) say(world, id, "has the same fact twice");
  }
  void finished(World& world, JobId id) {
    if (!finished_.insert(id).second)
      world.fail(name(), fmt::format("job {} ended twice", to_string(id)));
  }

  void exited(World& world, const control::Exited& fact) {
    once(world, exited_, fact.attempt);
    const Execution* e = world.execution(fact.attempt);
    switch (fact.exit.cause) {
      case ExitCause::exited:
        if (e == nullptr || !e->ended || !e->by_itself)
          say(world, fact.attempt, "is told to have ended by itself and has not");
        else if (e->program.exit_code != fact.exit.code)
          say(world, fact.attempt, "is told to have ended with another exit code than it had");
        break;
      case ExitCause::signalled:
        if (e == nullptr || !e->ended || e->by_itself || !e->told_to_stop)
          say(world, fact.attempt, "is told to have ended by a signal that nobody sent");
        break;
      case ExitCause::start_failed:
        if (e != nullptr) say(world, fact.attempt, "is told not to have started and has");
        break;
      case ExitCause::lost:
        if (e != nullptr && !e->gone)
          say(world, fact.attempt, "is told to be lost and runs: " + fact.exit.message);
        break;
    }
  }

  void released(World& world, const control::Released& fact) {
    once(world, released_, fact.attempt);
    const Execution* e = world.execution(fact.attempt);
    if (e != nullptr && !e->gone)
      say(world, fact.attempt, "has given its devices back and has a process");
  }

  std::set<AttemptId> started_;
  std::set<AttemptId> exited_;
  std::set<AttemptId> released_;
  std::set<JobId> finished_;
};

}  // namespace

std::unique_ptr<Checker> check_outcomes() { return std::make_unique<Outcomes>(); }

}  // namespace takt::replay
