#include "core/insight/right_size.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "core/insight/workload.h"
#include "fixtures.h"

namespace takt::insight {
namespace {

using namespace testing;  // NOLINT

using Attempts = std::vector<AttemptMeasurement>;

WorkloadSummary sized(const Attempts& attempts) { return summarise("w", attempts, Policy{}); }

Attempts repeated(int n, Bytes peak) {
  Attempts out;
  for (int i = 1; i <= n; ++i) out.push_back(measured(i, std::vector<double>(30, 0.5), peak));
  return out;
}

// By hand: 11.2 GiB x 1.25 = 14.0 GiB, 0.175 of 80 GiB; up to the next GiB: 14.
TEST(RightSize, GoldenOfAWholeGpuOnWhichAShareWouldDo) {
  const WorkloadSummary s = sized(repeated(40, mebibytes(11469)));  // 11.2 GiB, rounded up
  ASSERT_EQ(s.advice.size(), 1u);
  const SizeAdvice& a = s.advice[0];
  EXPECT_EQ(a.what, "memory");
  EXPECT_EQ(a.from, "80.0 GiB (whole GPU)");
  EXPECT_EQ(a.to, "--memory 15GiB");  // 11469 MiB x 1.25 = 14336.25 MiB, a little over 14 GiB
  EXPECT_EQ(a.evidence,
            "peak 11.2 GiB in 40 of 40 attempts, 1200 samples, coverage 100 %, margin 25 %");
  EXPECT_EQ(a.confidence, "medium");
  EXPECT_EQ(a.undo, "ask for a whole GPU again: -g 1");
}

TEST(RightSize, AdviceForASharesUndoNamesTheOldSize) {
  Attempts attempts = repeated(1, gibibytes(2));
  attempts[0].device_kind = DeviceKind::share;
  attempts[0].granted_memory = gibibytes(12);
  const WorkloadSummary s = sized(attempts);
  ASSERT_EQ(s.advice.size(), 1u);
  EXPECT_EQ(s.advice[0].from, "12.0 GiB (share)");
  EXPECT_EQ(s.advice[0].to, "--memory 3GiB");
  EXPECT_EQ(s.advice[0].confidence, "low");
  EXPECT_EQ(s.advice[0].undo, "ask for as much as before: --memory 12GiB");
}

TEST(RightSize, SaysNothingWhenThePeakWithMarginIsNotFarUnder) {
  EXPECT_TRUE(sized(repeated(10, gibibytes(39))).advice.empty());       // 48.75 > 0.6 x 80
  EXPECT_FALSE(sized(repeated(10, mebibytes(39'000))).advice.empty());  // 47.6 GiB
}

TEST(RightSize, OneLargeAttemptOfManyDecides) {
  Attempts attempts = repeated(50, gibibytes(5));
  attempts[20].memory_peak = gibibytes(70);
  EXPECT_TRUE(sized(attempts).advice.empty());
}

TEST(RightSize, NeverAdvisesFromMissingNumbersAndSaysWhy) {
  Attempts attempts = repeated(1, gibibytes(5));
  attempts[0].memory_peak = missing(MissingKind::not_permitted);
  attempts[0].memory_mean = missing(MissingKind::not_permitted);
  attempts[0].memory_samples = 0;
  attempts[0].memory_coverage = 0;
  const WorkloadSummary s = sized(attempts);
  EXPECT_TRUE(s.advice.empty());
  EXPECT_TRUE(contains(s.notes, "its memory peak is not known (not permitted)"));
  EXPECT_FALSE(s.memory_needed.has_value());
}

TEST(RightSize, NeedsHalfOfTheRunTimeCovered) {
  Attempts attempts = repeated(1, gibibytes(5));
  attempts[0].memory_coverage = 0.49;
  const WorkloadSummary s = sized(attempts);
  EXPECT_TRUE(s.advice.empty());
  EXPECT_TRUE(contains(s.notes, "cover 49 % of the run time; at least 50 % is needed"));
}

TEST(RightSize, MemoryThatWasNeverUsedIsNoReasonToGiveNone) {
  const WorkloadSummary s = sized(repeated(3, Bytes{0}));
  EXPECT_TRUE(s.advice.empty());
  EXPECT_TRUE(contains(s.notes, "no memory in use was ever seen"));
}

TEST(RightSize, NothingHasRunYet) {
  const WorkloadSummary s = sized({});
  EXPECT_TRUE(s.advice.empty());
  EXPECT_TRUE(contains(s.notes, "nothing has run yet"));
}

TEST(RightSize, NumbersOfTheDeviceInsteadOfTheProcessesAreOfLowConfidence) {
  Attempts attempts = repeated(20, gibibytes(5));
  for (auto& a : attempts) a.memory_of_device = true;
  const WorkloadSummary s = sized(attempts);
  ASSERT_EQ(s.advice.size(), 1u);
  EXPECT_EQ(s.advice[0].confidence, "low");
  EXPECT_NE(s.advice[0].evidence.find("the device's memory"), std::string::npos);
}

TEST(RightSize, TheNewestGrantCountsAndNotTheOldOnes) {
  Attempts attempts = repeated(10, gibibytes(10));
  attempts.back().granted_memory = gibibytes(14);
  EXPECT_TRUE(sized(attempts).advice.empty());
}

Attempts gang(int devices, int unused, int attempts) {
  Attempts out = repeated(attempts, gibibytes(60));
  for (auto& a : out) {
    a.devices = devices;
    a.devices_unused = unused;
    a.gpu_seconds = 100 * devices;
  }
  return out;
}

TEST(RightSize, MoreThanHalfOfAGangUnusedIsSaid) {
  const WorkloadSummary s = sized(gang(4, 3, 2));
  ASSERT_EQ(s.advice.size(), 1u);
  EXPECT_EQ(s.advice[0].what, "gpus");
  EXPECT_EQ(s.advice[0].from, "4 GPUs");
  EXPECT_EQ(s.advice[0].to, "-g 1");
  EXPECT_EQ(s.advice[0].confidence, "low");
  EXPECT_NE(s.advice[0].evidence.find("at most 1 of 4 GPUs ever computed in 2 attempts"),
            std::string::npos);
}

TEST(RightSize, ExactlyHalfOfAGangUnusedIsNotEnough) {
  EXPECT_TRUE(sized(gang(4, 2, 2)).advice.empty());
}

TEST(RightSize, OneAttemptThatUsedTheWholeGangSilencesTheAdvice) {
  Attempts attempts = gang(4, 3, 5);
  attempts[2].devices_unused = 0;
  EXPECT_TRUE(sized(attempts).advice.empty());
}

TEST(RightSize, AnAttemptWithoutUtilisationNumbersSilencesTheGangAdvice) {
  Attempts attempts = gang(4, 3, 5);
  attempts[2].coverage = 0.2;
  EXPECT_TRUE(sized(attempts).advice.empty());
}

TEST(RightSize, AGangOfLargelyEmptyGpusIsToldOfSmallerOnesAndNotOfAShare) {
  Attempts attempts = gang(2, 0, 5);
  for (auto& a : attempts) a.memory_peak = gibibytes(10);
  const WorkloadSummary s = sized(attempts);
  EXPECT_TRUE(s.advice.empty());
  EXPECT_TRUE(contains(s.notes, "each of its 2 GPUs could be of a smaller type: 13.0 GiB of 80.0"));
}

TEST(RightSize, SensibleSizesGrowInSteps) {
  EXPECT_EQ(sensible_size(Bytes{1}), gibibytes(1));
  EXPECT_EQ(sensible_size(gibibytes(14)), gibibytes(14));
  EXPECT_EQ(sensible_size(gibibytes(14) + Bytes{1}), gibibytes(15));
  EXPECT_EQ(sensible_size(gibibytes(17)), gibibytes(18));
  EXPECT_EQ(sensible_size(gibibytes(65)), gibibytes(68));
}

TEST(RightSize, TheMarginIsRoundedUp) {
  EXPECT_EQ(with_margin(Bytes{100}, 25), Bytes{125});
  EXPECT_EQ(with_margin(Bytes{1}, 25), Bytes{2});
  EXPECT_EQ(with_margin(gibibytes(100'000), 25), gibibytes(125'000));
}

TEST(RightSize, NeverAdvisesLessThanThePeakWithItsMargin) {
  EXPECT_TRUE(rc::check([] {
    const Bytes peak = mebibytes(*rc::gen::inRange(1, 80 * 1024));
    const WorkloadSummary s = sized(repeated(*rc::gen::inRange(1, 8), peak));
    for (const SizeAdvice& a : s.advice) {
      const std::string digits = a.to.substr(std::string("--memory ").size());
      const Bytes to = gibibytes(std::stoll(digits));
      RC_ASSERT(to >= with_margin(peak, 25));
      RC_ASSERT(to < gibibytes(80));
    }
  }));
}

}  // namespace
}  // namespace takt::insight
