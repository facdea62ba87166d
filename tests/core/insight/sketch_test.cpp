#include "core/insight/sketch.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace takt::insight {
namespace {

Sketch sketch_of(const std::vector<double>& values) {
  Sketch s;
  for (double v : values) s.add(v);
  return s;
}

// Non-negative values over many magnitudes, zeros among them.
rc::Gen<double> value() {
  return rc::gen::map(
      rc::gen::pair(rc::gen::inRange(0, 1000), rc::gen::inRange(-6, 7)),
      [](const std::pair<int, int>& p) { return p.first * std::pow(10, p.second); });
}

void hold(bool ok) { EXPECT_TRUE(ok); }

TEST(Sketch, WithoutSamplesHasNoQuantile) {
  const Sketch s;
  EXPECT_EQ(s.count(), 0);
  EXPECT_FALSE(s.quantile(0.5).has_value());
  EXPECT_EQ(s.quantiles().samples, 0);
  EXPECT_EQ(s.share_up_to(1), 0);
}

// By hand: gamma = 1.01/0.99 = 1.0202020; ceil(ln 0.5 / ln gamma) = ceil(-34.656) = -34,
// representative 2 * gamma^-34 / (gamma + 1) = 2 * 0.506604 / 2.0202020 = 0.501538.
TEST(Sketch, GoldenBinOfOneHalf) {
  const Sketch s = sketch_of({0.5, 0.5, 1.0});
  ASSERT_EQ(s.data().bins.size(), 2u);
  EXPECT_EQ(s.data().bins.begin()->first, -34);
  EXPECT_EQ(s.data().bins.begin()->second, 2);
  EXPECT_NEAR(*s.quantile(0.5), 0.501538, 1e-5);
  EXPECT_EQ(s.max(), 1.0);
  EXPECT_DOUBLE_EQ(s.mean(), 2.0 / 3);
}

TEST(Sketch, ZerosAreCountedApart) {
  const Sketch s = sketch_of({0, 0, 0, 1});
  EXPECT_EQ(s.data().zeros, 3);
  EXPECT_EQ(*s.quantile(0.5), 0);
  EXPECT_EQ(s.share_up_to(0.05), 0.75);
}

TEST(Sketch, RefusesWhatIsNoMeasurement) {
  Sketch s;
  EXPECT_FALSE(s.add(-0.1));
  EXPECT_FALSE(s.add(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(s.add(std::numeric_limits<double>::infinity()));
  EXPECT_EQ(s.count(), 0);
}

// FACTS C6 71: no rounding of the percentile asked for.
TEST(Sketch, The99Point9thOf1000IsNotTheMaximum) {
  std::vector<double> values(999, 0.1);
  values.push_back(1.0);
  const Sketch s = sketch_of(values);
  EXPECT_NEAR(*s.quantile(0.999), 0.1, 0.002);
  EXPECT_EQ(s.max(), 1.0);
  EXPECT_EQ(*s.quantile(1.0), 1.0);
}

TEST(Sketch, ShareUpToCountsWholeBinsOnly) {
  const Sketch s = sketch_of({0.01, 0.04, 0.2, 0.9});
  EXPECT_EQ(s.share_up_to(0.05), 0.5);
  EXPECT_EQ(s.share_up_to(1.0), 1.0);
  EXPECT_EQ(s.share_up_to(0), 0);
}

TEST(Sketch, QuantilesAreWithinOnePercentOfTheExactOnes) {
  hold(rc::check([] {
    auto values = *rc::gen::nonEmpty(rc::gen::container<std::vector<double>>(value()));
    const double q = *rc::gen::inRange(0, 101) / 100.0;
    const Sketch s = sketch_of(values);
    std::sort(values.begin(), values.end());
    const double rank = q * static_cast<double>(values.size() - 1);
    const double exact = values[static_cast<std::size_t>(std::floor(rank + 1e-9))];
    const double got = *s.quantile(q);
    // The rank may fall a rounding below: the neighbour is right as well.
    const double lower = values[static_cast<std::size_t>(std::max(0.0, std::floor(rank - 1e-9)))];
    RC_ASSERT(std::abs(got - exact) <= 0.0101 * exact || std::abs(got - lower) <= 0.0101 * lower);
  }));
}

TEST(Sketch, MergingIsTheSameAsAddingEverythingInAnyOrder) {
  hold(rc::check([](int seed) {
    const auto a = *rc::gen::container<std::vector<double>>(value());
    const auto b = *rc::gen::container<std::vector<double>>(value());
    std::vector<double> both = a;
    both.insert(both.end(), b.begin(), b.end());
    if (seed % 2 != 0) std::reverse(both.begin(), both.end());
    Sketch ab = sketch_of(a), ba = sketch_of(b);
    ab.merge(sketch_of(b));
    ba.merge(sketch_of(a));
    const Sketch all = sketch_of(both);
    RC_ASSERT(ab.data().bins == all.data().bins && ba.data().bins == all.data().bins);
    RC_ASSERT(ab.data().zeros == all.data().zeros && ab.count() == all.count());
    RC_ASSERT(ab.max() == all.max() && ba.max() == all.max());
  }));
}

TEST(Sketch, BinsAreBoundedAndStillMergeTheSameInAnyOrder) {
  std::vector<double> wide;
  for (int e = -9; e <= 40; ++e) wide.push_back(std::pow(10.0, e));
  Sketch up, down;
  for (double v : wide) up.add(v);
  for (auto it = wide.rbegin(); it != wide.rend(); ++it) down.add(*it);
  EXPECT_EQ(up.data().bins, down.data().bins);
  const int range = up.data().bins.rbegin()->first - up.data().bins.begin()->first;
  EXPECT_LT(range, Sketch::bins_max);
  EXPECT_EQ(up.count(), 50);
  EXPECT_EQ(up.max(), 1e40);
}

TEST(Sketch, SurvivesBeingStoredAsPlainValues) {
  Sketch s = sketch_of({0, 0.25, 0.5, 0.5, 1});
  const Sketch back(s.data());
  EXPECT_EQ(back.count(), 5);
  EXPECT_EQ(back.data(), s.data());
  EXPECT_EQ(back.quantile(0.5), s.quantile(0.5));
}

}  // namespace
}  // namespace takt::insight
