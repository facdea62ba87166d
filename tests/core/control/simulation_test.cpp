// Random histories with a bad agent: what must hold in all of them. A failure prints its seed and
// happens again with it.
#include <gtest/gtest.h>

#include "fake_agent.h"
#include "world.h"

namespace takt::control {
namespace {

constexpr int kSeeds = 300;
constexpr int kSteps = 200;

Node mixed_node() {
  return node_of("n1", {a100(), a100(), h100(),
                        with_mig(a100(), {mig("3g.20gb", mebibytes(20'096), 0, 4, 3),
                                          mig("1g.5gb", mebibytes(4864), 6, 1, 1)})});
}

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed)
      : random_(seed), world_(mixed_node()), agent_(world_.node, seed + 1) {}

  void run() {
    for (int i = 0; i < kSteps && problem_.empty(); ++i) step(true);
    agent_.faults = false;
    for (int i = 0; i < 600 && problem_.empty() && !all_over(); ++i) step(false);
    if (problem_.empty()) check_end();
  }
  const std::string& problem() const { return problem_; }
  std::size_t jobs() const { return acknowledged_.size(); }
  std::size_t retried() const { return retried_; }

 private:
  int pick(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

  void step(bool faults) {
    world_.later(milliseconds(500 + pick(2000)));
    if (faults) people();
    agent_.step(world_.now);
    if (faults && pick(40) == 0) agent_.restart();
    if (faults && pick(150) == 0) agent_.reboot();
    if (faults && pick(30) == 0) controller_restarts();
    if (!faults || pick(4) != 0) hear();
    world_.apply(tick(world_.state, world_.cluster, world_.policy, world_.now));
    observe_silence(world_.cluster, world_.policy, world_.now);
    const std::uint64_t version = world_.state.ledger_version + world_.cluster.version;
    if (version != planned_ || pick(3) == 0) pass();  // at times for the retries that are due
    check();
  }

  void pass() {
    const Admission admission = world_.pass();
    planned_ = world_.state.ledger_version + world_.cluster.version;
    if (!admission.dropped.empty()) fail("a plan was dropped: " + admission.dropped);
    if (admission.facts.empty()) return;
    act();
    if (const auto twice =
            schedule::overlap(snapshot(world_.state, world_.cluster, world_.policy, world_.now)))
      fail("granted twice: " + *twice);
  }

  void hear() {
    last_ = agent_.report(world_.now);
    heard_ = true;
    observe(world_.cluster, world_.state, last_, world_.now);
    world_.apply(handle(world_.state, world_.cluster, world_.policy, last_, world_.now));
    if (!handle(world_.state, world_.cluster, world_.policy, last_, world_.now).empty())
      fail("the same report twice told something new");
    act();
  }
  // From the last report, however old: as the loop does after a grant.
  void act() {
    if (heard_) agent_.take(reconcile(world_.state, last_, world_.places));
  }

  void people() {
    const int what = pick(30);
    const Identity who = pick(2) == 0 ? alice() : bob();
    if (what < 5) {
      auto accepted = world_.submit(random_job(), who);
      if (!accepted) return fail("refused: " + accepted.error().message);
      acknowledged_.insert(accepted->jobs.begin(), accepted->jobs.end());
    } else if (what <= 7 && !acknowledged_.empty()) {
      auto it = acknowledged_.begin();
      std::advance(it, pick(static_cast<int>(acknowledged_.size())));
      (void)world_.cancel(*it, who, pick(2) == 0);
    } else if (what == 8 && pick(10) == 0) {
      auto accepted =
          handle(world_.state, world_.cluster, world_.policy, CancelAll{who}, world_.now);
      world_.apply(accepted->facts);
    }
  }

  JobSpec random_job() {
    const Tier tier = static_cast<Tier>(pick(4));
    JobSpec spec = job(tier);
    switch (pick(4)) {
      case 0: spec = whole_gpus(1 + pick(2), tier); break;
      case 1: spec = share_of(gibibytes(1 + pick(30)), tier); break;
      case 2: spec = strict_memory(gibibytes(1 + pick(30)), tier); break;
      default: break;
    }
    if (pick(3) == 0) spec.retry = {{RetryCause::failed, RetryCause::node_lost}, 1 + pick(3)};
    if (pick(4) == 0) spec.kill_after = seconds(5 + pick(20));
    if (pick(6) == 0) spec.array = {{"seed", {"0", "1", "2"}}};
    if (!spec.kill_after) spec.time = minutes(1 + pick(100));
    if (tier == Tier::serving) spec.isolation = Isolation::strict;
    return spec;
  }

  // All that it knows comes from the journal, or from a snapshot.
  void controller_restarts() {
    State again;
    const auto facts = pick(2) == 0 ? world_.journal : facts_of(world_.state);
    for (const Fact& f : facts) fold(again, f, world_.policy.fair_share_half_life);
    if (text_of(again) != text_of(world_.state)) fail("what was replayed is not what was there");
    if (fingerprint(again) != fingerprint(world_.state)) fail("equal states, other fingerprints");
    world_.state = std::move(again);
    world_.cluster = Cluster{};
    heard_ = false;
  }

  void check() {
    if (!agent_.violation.empty()) fail(agent_.violation);
    if (fingerprint(world_.state) != fingerprint_anew(world_.state))
      fail("the fingerprint that fold keeps is not that of the state");
    for (const auto& [id, job] : world_.state.jobs) {
      const bool waits = world_.state.waiting.count(id) != 0;
      const bool holds = world_.state.holding.count(id) != 0;
      if (waits != job.waiting()) fail("job " + to_string(id) + ": the queue and it disagree");
      if (holds != job.holding()) fail("job " + to_string(id) + ": the ledger and it disagree");
    }
  }

  bool all_over() const { return world_.state.waiting.empty() && world_.state.holding.empty(); }

  void check_end() {
    if (!all_over()) return fail("not all jobs ended once the faults had stopped");
    std::map<JobId, int> ends;
    std::map<AttemptId, int> starts, exits, releases;
    for (const Fact& f : world_.journal) {
      if (const auto* x = std::get_if<Finished>(&f)) ++ends[x->job];
      if (const auto* x = std::get_if<JobCancelled>(&f)) ++ends[x->job];
      if (const auto* x = std::get_if<Started>(&f)) ++starts[x->attempt];
      if (const auto* x = std::get_if<Exited>(&f)) ++exits[x->attempt];
      if (const auto* x = std::get_if<Released>(&f)) ++releases[x->attempt];
      if (std::holds_alternative<Requeued>(f)) ++retried_;
    }
    for (const JobId id : acknowledged_)
      if (ends[id] != 1)
        fail("job " + to_string(id) + " ended " + std::to_string(ends[id]) + " times");
    for (const auto* counts : {&starts, &exits, &releases})
      for (const auto& [id, n] : *counts)
        if (n > 1) fail("attempt " + to_string(id) + ": the same fact " + std::to_string(n) + "x");
    for (const Fact& f : world_.journal)
      if (const auto* x = std::get_if<Exited>(&f))
        if (const auto it = agent_.outcomes.find(x->attempt); it != agent_.outcomes.end() &&
                                                              x->exit.cause == ExitCause::exited &&
                                                              x->exit != it->second)
          fail("attempt " + to_string(x->attempt) + ": another exit status than it had");
  }

  void fail(const std::string& what) {
    if (problem_.empty()) problem_ = what;
  }

  std::mt19937_64 random_;
  World world_;
  FakeAgent agent_;
  NodeReport last_;
  bool heard_ = false;
  std::uint64_t planned_ = 0;
  std::set<JobId> acknowledged_;
  std::size_t retried_ = 0;
  std::string problem_;
};

TEST(Simulation, NoDeviceTwiceNoAttemptTwiceAndEveryAcknowledgedJobEndsOnce) {
  std::size_t jobs = 0;
  std::size_t retried = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Simulation simulation(seed);
    simulation.run();
    ASSERT_EQ(simulation.problem(), "") << "seed " << seed;
    jobs += simulation.jobs();
    retried += simulation.retried();
  }
  // That something happened in it.
  EXPECT_GT(jobs, kSeeds * 20u);
  EXPECT_GT(retried, kSeeds * 2u);
}

}  // namespace
}  // namespace takt::control
