#include "core/insight/classify.h"

#include <gtest/gtest.h>

#include "core/insight/workload.h"
#include "fixtures.h"

namespace takt::insight {
namespace {

using namespace testing;  // NOLINT

using Attempts = std::vector<AttemptMeasurement>;

WorkloadSummary judged(Attempts attempts, Tier tier) {
  for (auto& a : attempts) a.declared_tier = tier;
  return summarise("w", attempts, Policy{});
}

std::vector<double> steady(int n) { return std::vector<double>(n, 0.85); }

// One busy second in ten.
std::vector<double> bursty(int n) {
  std::vector<double> out;
  for (int i = 0; i < n; ++i) out.push_back(i % 10 == 5 ? 0.6 : 0.0);
  return out;
}

AttemptMeasurement gang_attempt(std::uint64_t job) {
  AttemptMeasurement m = measured(job, steady(60));
  m.devices = 2;
  m.gpu_seconds = 200;
  return m;
}

TEST(Classify, AGangThatIsSteadilyBusyIsTraining) {
  const auto s = judged({gang_attempt(1)}, Tier::training);
  EXPECT_EQ(s.category, Category::training);
  EXPECT_EQ(s.confidence, "provisional");
  EXPECT_TRUE(contains(s.evidence, "steadily busy: p75 8"));
  EXPECT_TRUE(contains(s.evidence, "one program on 2 GPUs together"));
  EXPECT_TRUE(contains(s.evidence, "the longest run of 1m40s is short of 10m"));
  EXPECT_FALSE(contains(s.evidence, "declared"));
}

TEST(Classify, OneGpuNeedsTensorActivityToLookLikeTraining) {
  AttemptMeasurement m = measured(1, steady(60));
  EXPECT_EQ(judged({m}, Tier::training).category, Category::unknown);
  EXPECT_TRUE(contains(judged({m}, Tier::training).evidence, "no tensor activity is measured"));
  add_metric(m, "tensor_active", 0.5, 60);
  const auto s = judged({m}, Tier::training);
  EXPECT_EQ(s.category, Category::training);
  EXPECT_TRUE(contains(s.evidence, "tensor cores active: p75 50 %"));
}

TEST(Classify, BurstsWithMemoryHeldAreServing) {
  const auto s = judged({measured(1, bursty(100)), measured(2, bursty(100))}, Tier::serving);
  EXPECT_EQ(s.category, Category::serving);
  EXPECT_TRUE(contains(s.evidence, "busy 6 % in the mean, 10 bursts an attempt"));
  EXPECT_TRUE(contains(s.evidence, "the mean is 100 % of the peak"));
}

TEST(Classify, ManyShortAlikeAttemptsAreBatch) {
  Attempts attempts;
  for (int i = 1; i <= 40; ++i) attempts.push_back(measured(i, steady(3)));
  const auto s = judged(attempts, Tier::batch);
  EXPECT_EQ(s.category, Category::batch);
  EXPECT_TRUE(contains(s.evidence, "40 attempts on one device each, 40 ended after 1m40s"));
}

TEST(Classify, AttemptsOfVeryDifferentLengthAreNotBatch) {
  Attempts attempts;
  for (int i = 1; i <= 10; ++i) attempts.push_back(measured(i, steady(6)));
  attempts[3].ran = seconds(3000);
  EXPECT_NE(judged(attempts, Tier::batch).category, Category::batch);
}

TEST(Classify, MostlyIdleWithMemoryHeldIsExperimental) {
  std::vector<double> busy(40, 0.0);
  busy[10] = busy[11] = busy[30] = 0.9;
  const auto s = judged({measured(1, busy)}, Tier::experimental);
  EXPECT_EQ(s.category, Category::experimental);
  EXPECT_TRUE(contains(s.evidence, "idle with memory held in 92 % of 40 samples"));
}

TEST(Classify, TooFewSamplesAreUnknownAndSayHowManyAreMissing) {
  const auto s = judged({measured(1, steady(19))}, Tier::training);
  EXPECT_EQ(s.category, Category::unknown);
  EXPECT_TRUE(contains(s.evidence, "19 valid utilisation samples; at least 20 are needed"));
}

TEST(Classify, TooLittleCoverageIsUnknown) {
  AttemptMeasurement m = gang_attempt(1);
  m.coverage = 0.3;
  const auto s = judged({m}, Tier::training);
  EXPECT_EQ(s.category, Category::unknown);
  EXPECT_TRUE(contains(s.evidence, "cover 30 % of the run time; at least 50 % is needed"));
}

TEST(Classify, NotAttributableIsUnknownAndNotIdle) {
  AttemptMeasurement m = measured(1, {});
  m.attributable = false;
  const auto s = judged({m}, Tier::experimental);
  EXPECT_EQ(s.category, Category::unknown);
  EXPECT_TRUE(contains(s.evidence, "shared, not attributable"));
  EXPECT_FALSE(s.attributable);
}

TEST(Classify, WithoutAGpuThereIsNothingToGoBy) {
  AttemptMeasurement m;
  m.attempt = attempt_id(1);
  m.ran = seconds(10);
  const auto s = judged({m}, Tier::batch);
  EXPECT_EQ(s.category, Category::unknown);
  EXPECT_TRUE(contains(s.evidence, "no GPU"));
}

TEST(Classify, AContradictionIsSaidAndTheDeclaredTierStays) {
  const auto s = judged({gang_attempt(1)}, Tier::serving);
  EXPECT_EQ(s.category, Category::training);
  EXPECT_EQ(s.declared_tier, Tier::serving);
  EXPECT_TRUE(contains(
      s.evidence, "declared serving, measured like training: the declared tier stays in force"));
}

TEST(Classify, LowRungsAreNamedAsSuch) {
  AttemptMeasurement m = gang_attempt(1);
  m.busy_source = BusySource::gpu_util;
  EXPECT_TRUE(contains(judged({m}, Tier::training).evidence, "only GPU_UTIL tells how busy"));
  EXPECT_FALSE(contains(judged({gang_attempt(1)}, Tier::training).evidence, "only "));
}

TEST(Classify, ThresholdsAreTheCallersToSet) {
  ClassifyThresholds strict;
  strict.high_busy = 0.95;
  const Attempts attempts{gang_attempt(1)};
  const auto s = summarise("w", attempts, Policy{}, strict);
  EXPECT_EQ(s.category, Category::unknown);
  EXPECT_TRUE(contains(s.evidence, "no rule matches"));
}

}  // namespace
}  // namespace takt::insight
