#include "core/insight/workload.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "fixtures.h"

namespace takt::insight {
namespace {

using namespace testing;  // NOLINT

using Attempts = std::vector<AttemptMeasurement>;

// By hand: a runs 100 s covered fully with mean 10 GiB, b 300 s covered half with mean 20 GiB:
// weights 100 and 150, mean 16 GiB; coverage (100 + 150) / 400 = 0.625.
TEST(Workload, GoldenOfTwoAttempts) {
  AttemptMeasurement a = measured(1, {0.2, 0.4}, gibibytes(10));
  AttemptMeasurement b = measured(2, {0.6, 0.8}, gibibytes(20));
  b.user = "bob";
  b.ran = seconds(300);
  b.gpu_seconds = 300;
  b.memory_coverage = b.coverage = 0.5;
  b.waited = seconds(15);
  b.declared_tier = Tier::batch;
  const WorkloadSummary s = summarise("w", {b, a}, Policy{});
  EXPECT_EQ(s.workload, "w");
  EXPECT_EQ(s.attempts, 2);
  EXPECT_EQ(s.running, 0);
  EXPECT_EQ(s.users, (std::map<std::string, int>{{"alice", 1}, {"bob", 1}}));
  EXPECT_EQ(s.declared_tier, Tier::batch);  // the newest attempt's
  EXPECT_EQ(s.waited_mean, seconds(10));
  EXPECT_EQ(s.waited_max, seconds(15));
  EXPECT_EQ(s.ran_mean, seconds(200));
  EXPECT_EQ(s.gpu_seconds, 400);
  EXPECT_EQ(s.memory_peak.value(), gibibytes(20));
  EXPECT_EQ(s.memory_mean.value(), gibibytes(16));
  EXPECT_EQ(s.memory_needed.value(), gibibytes(25));
  EXPECT_DOUBLE_EQ(s.memory_coverage, 0.625);
  EXPECT_DOUBLE_EQ(s.coverage, 0.625);
  EXPECT_NEAR(s.quantiles.at("busy").mean, 0.5, 1e-12);
  EXPECT_EQ(s.samples, 4);
  EXPECT_EQ(s.quantiles.at("busy").max, 0.8);
}

TEST(Workload, MeanRunTimeIsThatOfTheEndedOnes) {
  AttemptMeasurement a = measured(1, {0.5});
  AttemptMeasurement running = measured(2, {0.5});
  running.ended = false;
  running.ran = seconds(1000);
  const WorkloadSummary s = summarise("w", {a, running}, Policy{});
  EXPECT_EQ(s.running, 1);
  EXPECT_EQ(s.ran_mean, seconds(100));
}

// FACTS C6 70: all of the workload's history counts.
TEST(Workload, AnAttemptWithoutMemoryNumbersHidesNobodysPeak) {
  AttemptMeasurement a = measured(1, {0.5}, gibibytes(10));
  AttemptMeasurement b = measured(2, {0.5});
  b.memory_peak = missing(MissingKind::timed_out);
  b.memory_mean = missing(MissingKind::timed_out);
  b.memory_coverage = 0;
  b.memory_samples = 0;
  const WorkloadSummary s = summarise("w", {a, b}, Policy{});
  EXPECT_EQ(s.memory_peak.value(), gibibytes(10));
  EXPECT_DOUBLE_EQ(s.memory_coverage, 0.5);
}

TEST(Workload, DoesNotMixTheNumbersOfTwoSources) {
  AttemptMeasurement gpm = measured(1, std::vector<double>(10, 0.4));
  AttemptMeasurement util = measured(2, std::vector<double>(12, 1.0));
  util.busy_source = BusySource::gpu_util;
  const WorkloadSummary s = summarise("w", {gpm, util}, Policy{});
  EXPECT_EQ(s.busy_source, BusySource::gpm);
  EXPECT_EQ(s.quantiles.at("busy").max, 0.4);
  EXPECT_EQ(s.samples, 10);
  EXPECT_DOUBLE_EQ(s.coverage, 0.5);
  EXPECT_TRUE(contains(s.notes, "leaves out 1 attempts"));
}

TEST(Workload, TakesTheLowerSourceWhereTheBetterOneIsRare) {
  AttemptMeasurement gpm = measured(1, std::vector<double>(3, 0.4));
  AttemptMeasurement util = measured(2, std::vector<double>(50, 1.0));
  util.busy_source = BusySource::gpu_util;
  const WorkloadSummary s = summarise("w", {gpm, util}, Policy{});
  EXPECT_EQ(s.busy_source, BusySource::gpu_util);
  EXPECT_EQ(s.samples, 50);
}

TEST(Workload, WithoutAttemptsHasNoNumbersAtAll) {
  const WorkloadSummary s = summarise("w", {}, Policy{});
  EXPECT_EQ(s.attempts, 0);
  EXPECT_FALSE(s.memory_peak.has_value());
  EXPECT_TRUE(s.quantiles.empty());
  EXPECT_EQ(s.category, Category::unknown);
}

TEST(Workload, GroupsAttemptsByTheirWorkload) {
  AttemptMeasurement a = measured(1, {0.5});
  AttemptMeasurement b = measured(2, {0.5});
  b.workload = "b";
  const auto all = summarise_all({a, b, measured(3, {0.1})}, Policy{});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].workload, "b");
  EXPECT_EQ(all[1].workload, "w");
  EXPECT_EQ(all[1].attempts, 2);
}

TEST(Workload, TheOrderOfTheAttemptsDoesNotMatter) {
  EXPECT_TRUE(rc::check([] {
    Attempts attempts;
    const int n = *rc::gen::inRange(1, 12);
    for (int i = 1; i <= n; ++i) {
      std::vector<double> busy;
      for (int k = *rc::gen::inRange(0, 10); k > 0; --k)
        busy.push_back(*rc::gen::inRange(0, 101) / 100.0);
      attempts.push_back(measured(i, busy, mebibytes(*rc::gen::inRange(1, 80'000))));
      attempts.back().memory_coverage = *rc::gen::inRange(0, 101) / 100.0;
    }
    Attempts reversed(attempts.rbegin(), attempts.rend());
    const WorkloadSummary a = summarise("w", attempts, Policy{});
    const WorkloadSummary b = summarise("w", reversed, Policy{});
    RC_ASSERT((a.memory_peak == b.memory_peak));
    RC_ASSERT((a.memory_mean == b.memory_mean));
    RC_ASSERT(a.coverage == b.coverage && a.memory_coverage == b.memory_coverage);
    RC_ASSERT(a.coverage >= 0 && a.coverage <= 1);
    RC_ASSERT(a.samples == b.samples && a.evidence == b.evidence && a.notes == b.notes);
    RC_ASSERT(a.category == b.category && a.advice.size() == b.advice.size());
    if (a.samples > 0) RC_ASSERT(a.quantiles.at("busy").mean == b.quantiles.at("busy").mean);
  }));
}

}  // namespace
}  // namespace takt::insight
