// Scenarios by seed: nothing acknowledged is lost, nothing runs twice, nothing is killed. `make
// simulate` plays many more. A failure is looked at with `takt simulate --seed N`.
#include "core/replay/simulate.h"

#include <gmock/gmock.h>

#include <set>

#include "core/replay/catalogue.h"
#include "core/replay/journal_text.h"

namespace takt::replay {
namespace {

constexpr std::uint64_t kSeeds = 300;
constexpr int kSteps = 1000;

// In four parts, so that they run beside each other.
class Seeds : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(Seeds, LoseNothingRunNothingTwiceAndKillNothing) {
  std::uint64_t jobs = 0;
  std::uint64_t crashes = 0;
  for (std::uint64_t seed = GetParam(); seed <= kSeeds; seed += 4) {
    const Outcome outcome = play(scenario_of(seed, kSteps), journal_text());
    ASSERT_FALSE(outcome.violation) << "seed " << seed << ", " << outcome.violation->checker << ": "
                                    << outcome.violation->sentence;
    ASSERT_GE(outcome.steps, kSteps);
    jobs += outcome.jobs;
    crashes += outcome.crashes;
  }
  // That something happened in it.
  EXPECT_GT(jobs, kSeeds / 4 * 50);
  EXPECT_GT(crashes, kSeeds / 4);
}
INSTANTIATE_TEST_SUITE_P(Of300, Seeds, ::testing::Values(1, 2, 3, 4));

TEST(Simulation, IsTheSameRunForTheSameSeedAndAnotherForAnother) {
  std::set<std::uint64_t> prints;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Scenario scenario = scenario_of(seed, 300);
    const Outcome once = play(scenario, journal_text());
    const Outcome again = play(scenario, journal_text());
    EXPECT_EQ(once.print, again.print) << "seed " << seed;
    EXPECT_EQ(once.steps, again.steps) << "seed " << seed;
    prints.insert(once.print);
  }
  EXPECT_EQ(prints.size(), 20u);
}

TEST(Simulation, DrawsEveryWorkloadEveryFaultAndEveryEngine) {
  std::set<std::string> drawn;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Scenario scenario = scenario_of(seed, kSteps);
    EXPECT_EQ(problem_of(scenario), "") << "seed " << seed;
    drawn.insert(scenario.workloads.begin(), scenario.workloads.end());
    drawn.insert(scenario.faults.begin(), scenario.faults.end());
    drawn.insert(to_string(scenario.engine));
  }
  EXPECT_EQ(drawn.size(), workloads().size() + faults().size() + 3);
}

// A disk that gives only so many facts back: accepted jobs are nowhere after a crash.
FactText forgetful_text(std::size_t keeps) {
  FactText text = journal_text();
  text.read = [keeps](const std::string& written) {
    auto facts = codec::facts_from_snapshot(written);
    if (facts && facts->size() > keeps) facts->resize(keeps);
    return facts;
  };
  return text;
}

TEST(Shrinking, LeavesOutWhatIsNotNeededAndFailsInTheSameWay) {
  Scenario scenario;
  scenario.seed = 5;
  scenario.steps = 600;
  scenario.workloads = {"brief-jobs", "gangs", "people-who-hold", "services"};
  scenario.faults = {"controller-is-killed", "gpus-are-hot", "shims-are-slow", "syncs-are-slow"};
  const Outcome failure = play(scenario, forgetful_text(20));
  ASSERT_TRUE(failure.violation);
  EXPECT_EQ(failure.violation->checker, "promises");
  const Outcome small = shrunk(failure, forgetful_text(20), 200);
  ASSERT_TRUE(small.violation);
  EXPECT_EQ(small.violation->checker, "promises");
  EXPECT_LT(small.scenario.steps, scenario.steps);
  EXPECT_LE(small.scenario.faults.size(), 1u);
  EXPECT_EQ(small.scenario.workloads.size(), 1u);
}

TEST(Scenarios, OfUnknownNamesAndImpossibleNumbersAreRefusedWithASentence) {
  Scenario good = scenario_of(1, 100);
  EXPECT_EQ(problem_of(good), "");
  Scenario bad = good;
  bad.steps = 0;
  EXPECT_EQ(problem_of(bad), "steps: 0 is not within 1 and 1000000");
  bad = good;
  bad.faults = {"rain"};
  EXPECT_EQ(problem_of(bad), "faults: there is no 'rain': `takt simulate --list` names all");
  bad = good;
  bad.engine = EngineKind::local;
  bad.nodes = 2;
  EXPECT_EQ(problem_of(bad),
            "nodes: 2 is not within 1 and 1, which is what the engine local may have");
}

}  // namespace
}  // namespace takt::replay
