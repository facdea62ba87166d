// The order in which jobs are looked at, and the reservation of those that cannot start.
#include <gmock/gmock.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "core/schedule/queue.h"
#include "reading.h"

namespace takt::schedule {
namespace {

using namespace takt::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::uint64_t> order(const Snapshot& s) {
  Queue queue(s, t0);
  std::vector<std::uint64_t> ids;
  while (const WaitingJob* job = queue.next()) ids.push_back(job->id.value);
  return ids;
}

TEST(Order, TiersGoBeforeEverythingElse) {
  Snapshot s = snapshot_of_nodes({});
  submit(s, whole_gpus(1, Tier::experimental));
  submit(s, whole_gpus(1, Tier::batch));
  submit(s, whole_gpus(1, Tier::training), "heavy");
  submit(s, whole_gpus(1, Tier::serving), "heavy");
  s.usage["heavy"] = 1'000'000'000;
  EXPECT_THAT(order(s), ElementsAre(4, 3, 2, 1));
}

TEST(Order, WithinATierWhoeverUsedLessGoesFirst) {
  Snapshot s = snapshot_of_nodes({});
  submit(s, whole_gpus(1), "alice");
  submit(s, whole_gpus(1), "bob");
  s.usage["alice"] = 5000;
  s.usage["bob"] = 10;
  EXPECT_THAT(order(s), ElementsAre(2, 1));
}

TEST(Order, WithEqualUseTheOlderSubmissionGoesFirstWhateverTheNames) {
  Snapshot s = snapshot_of_nodes({});
  submit(s, whole_gpus(1), "zoe");
  submit(s, whole_gpus(1), "adam");
  submit(s, whole_gpus(1), "zoe");
  EXPECT_THAT(order(s), ElementsAre(1, 2, 3));
}

TEST(Order, OneUsersJobsGoByTheTimeOfTheirSubmissionThenByNumber) {
  Snapshot s = snapshot_of_nodes({});
  for (int i = 0; i < 4; ++i) submit(s, whole_gpus(1));
  s.waiting[0].submitted = at(30);
  s.waiting[1].submitted = at(10);
  s.waiting[2].submitted = at(20);
  s.waiting[3].submitted = at(10);
  EXPECT_THAT(order(s), ElementsAre(2, 4, 3, 1));
}

TEST(Order, WhatIsHeldCountsAsUse) {
  const Node n = node_of("n1", 2, h100());
  Snapshot s = snapshot_of_nodes({n});
  hold(s, whole_grant(n, {0}), at(60), Tier::batch, "alice");
  submit(s, whole_gpus(1), "alice");
  submit(s, whole_gpus(1), "bob");
  EXPECT_THAT(order(s), ElementsAre(2, 1));
}

TEST(Order, ARetryThatBacksOffIsNotLookedAtBeforeItsTime) {
  Snapshot s = snapshot_of_nodes({node_of("n1", 1, h100())});
  const JobId id = submit(s, whole_gpus(1));
  s.waiting[0].not_before = at(8);
  const Plan plan = plan_for(s);
  EXPECT_FALSE(starts(plan, id));
  EXPECT_TRUE(blocked_by(plan, id, BlockerKind::backing_off));
  EXPECT_THAT(why(plan, id), HasSubstr("in 8 s"));
  EXPECT_EQ(plan.waiting.find(id)->second->expected_start, at(8));
  EXPECT_TRUE(starts(decide(s, Policy{}, at(8)), id));
}

TEST(FairShare, OneUsersBurstDoesNotTakeEverythingInTheSamePass) {
  Snapshot s = snapshot_of_nodes({node_of("n1", 4, h100())});
  for (int i = 0; i < 6; ++i) submit(s, whole_gpus(1), "alice");
  for (int i = 0; i < 6; ++i) submit(s, whole_gpus(1), "bob");
  const Plan plan = plan_for(s);
  int alices = 0;
  for (const Placement& p : plan.placements) alices += p.job.value <= 6 ? 1 : 0;
  EXPECT_EQ(plan.placements.size(), 4u);
  EXPECT_EQ(alices, 2);
}

TEST(FairShare, AShareCountsWithItsPartOfTheCard) {
  const Node n = node_of("n1", 1, a100());
  const std::vector<SeenNode> nodes = {{n, true}};
  EXPECT_EQ(milli_gpus(whole_grant(n, {0}), nodes), 1000);
  EXPECT_EQ(milli_gpus(share_grant(n, 0, gibibytes(10)), nodes), 250);
  Grant compute = share_grant(n, 0, gibibytes(10));
  compute.devices[0].compute_percent = 40;
  EXPECT_EQ(milli_gpus(compute, nodes), 400) << "the larger of memory and compute";
  EXPECT_EQ(milli_gpus(Grant{}, nodes), 0);
}

RC_GTEST_PROP(Decay, NeverGrowsWithTimeAndNeverFallsBelowHalfBeforeItsHalfLife, ()) {
  const auto usage = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 50);
  const Duration half_life{*rc::gen::inRange<std::int64_t>(1, hours(24 * 30).us)};
  const Duration age{*rc::gen::inRange<std::int64_t>(0, half_life.us * 3)};
  const Duration older{age.us + *rc::gen::inRange<std::int64_t>(0, half_life.us)};
  const std::int64_t young = decayed(usage, age, half_life);
  RC_ASSERT(young >= 0 && young <= usage);
  RC_ASSERT(decayed(usage, older, half_life) <= young);
  if (age < half_life) RC_ASSERT(young >= usage / 2);
}

TEST(Decay, HalvesEveryHalfLife) {
  const Duration week = hours(24 * 7);
  EXPECT_EQ(decayed(8000, week, week), 4000);
  EXPECT_EQ(decayed(8000, week + week, week), 2000);
  EXPECT_EQ(decayed(8000, Duration{}, week), 8000);
  EXPECT_EQ(decayed(8000, Duration{-5}, week), 8000) << "a clock that was set back adds nothing";
  EXPECT_EQ(decayed(std::int64_t{1} << 60, Duration{week.us * 100}, week), 0);
}

RC_GTEST_PROP(Decay, OrdersUsersAsBeforeWhenAllOfThemAgeTogether, ()) {
  const auto a = *rc::gen::inRange<std::int64_t>(0, 1'000'000'000);
  const auto b = *rc::gen::inRange<std::int64_t>(0, 1'000'000'000);
  const Duration age{*rc::gen::inRange<std::int64_t>(0, hours(24 * 60).us)};
  const auto later = [&](std::int64_t usage) { return decayed(usage, age, hours(24 * 7)); };
  if (a <= b) RC_ASSERT(later(a) <= later(b));
}

// ---- reservation --------------------------------------------------------------------------------

TEST(Reservation, ABlockedGangIsToldWhenItsDevicesAreExpectedToBeFree) {
  const Node n = node_of("n1", 2, h100());
  Snapshot s = snapshot_of_nodes({n});
  hold(s, whole_grant(n, {0}), at(500));
  hold(s, whole_grant(n, {1}), at(900));
  const JobId gang = submit(s, whole_gpus(2));
  const JobId next = submit(s, whole_gpus(2));
  const Plan plan = plan_for(s);
  EXPECT_EQ(plan.waiting.find(gang)->second->expected_start, at(900));
  EXPECT_EQ(plan.waiting.find(next)->second->expected_start, std::nullopt);
  EXPECT_NE(plan.waiting.find(next)->second->expected_start_unknown, "");
}

TEST(Reservation, AStreamOfSmallJobsDoesNotStarveAGang) {
  const Node n = node_of("n1", 2, h100());
  Snapshot s = snapshot_of_nodes({n});
  hold(s, whole_grant(n, {0}), at(3600));
  const JobId gang = submit(s, lasting(whole_gpus(2), hours(1)), "alice");
  s.usage["alice"] = 0;
  std::vector<JobId> small;
  for (int i = 0; i < 5; ++i) small.push_back(submit(s, lasting(whole_gpus(1), hours(2)), "bob"));
  s.usage["bob"] = 1000;
  const Plan plan = plan_for(s);
  EXPECT_TRUE(plan.placements.empty());
  for (const JobId id : small) {
    EXPECT_TRUE(blocked_by(plan, id, BlockerKind::behind_reservation)) << why(plan, id);
    EXPECT_THAT(why(plan, id), HasSubstr("would delay job 1, first in line"));
  }
  // When the other device is free, the gang starts and not one of the small ones.
  Snapshot later = s;
  later.holdings.clear();
  EXPECT_TRUE(starts(plan_for(later), gang));
}

TEST(Reservation, OnlyWhatEndsBeforeRunsAroundIt) {
  const Node n = node_of("n1", 2, h100());
  Snapshot s = snapshot_of_nodes({n});
  hold(s, whole_grant(n, {0}), at(3600));
  submit(s, whole_gpus(2));
  const JobId too_long = submit(s, lasting(whole_gpus(1), seconds(3601)));
  const JobId fits = submit(s, lasting(whole_gpus(1), seconds(3600)));
  const Plan plan = plan_for(s);
  EXPECT_FALSE(starts(plan, too_long));
  EXPECT_THAT(gpus_of(plan, fits), ElementsAre(1));
}

TEST(Reservation, AShareRunsAroundItToo) {
  const Node n = node_of("n1", 2, h100());
  Snapshot s = snapshot_of_nodes({n});
  hold(s, whole_grant(n, {0}), at(3600));
  submit(s, whole_gpus(2));
  const JobId too_long = submit(s, lasting(share_of(gibibytes(4)), hours(2)));
  const JobId fits = submit(s, lasting(share_of(gibibytes(4)), minutes(30)));
  const Plan plan = plan_for(s);
  EXPECT_FALSE(starts(plan, too_long));
  EXPECT_TRUE(starts(plan, fits));
}

TEST(Reservation, AnH100HeadDoesNotHoldUpAnA100JobBehindIt) {  // B3 29
  const Node n = node_of("n1", {h100(), h100(), a100(), a100()});
  Snapshot s = snapshot_of_nodes({n});
  hold(s, whole_grant(n, {0}), at(3600));
  const JobId head = submit(s, of_type(whole_gpus(2), {"h100"}));
  const JobId other_pool = submit(s, of_type(whole_gpus(1), {"a100"}));
  const JobId any = submit(s, lasting(whole_gpus(1), hours(9)));
  const JobId same_pool = submit(s, lasting(of_type(whole_gpus(1), {"h100"}), hours(9)));
  const Plan plan = plan_for(s);
  EXPECT_FALSE(starts(plan, head));
  EXPECT_TRUE(starts(plan, other_pool));
  EXPECT_TRUE(starts(plan, any));
  EXPECT_FALSE(starts(plan, same_pool)) << "it would delay the head";
}

TEST(Reservation, AGangThatNoNodeCouldEverHoldReservesNothingAndTheOneBehindStarts) {  // B2 17
  Snapshot s = snapshot_of_nodes({node_of("n1", 8, h100())});
  JobSpec twenty = whole_gpus(20);
  twenty.wait_for_capacity = true;
  const JobId large = submit(s, twenty);
  const JobId five = submit(s, whole_gpus(5));
  const Plan plan = plan_for(s);
  EXPECT_FALSE(starts(plan, large));
  EXPECT_EQ(gpus_of(plan, five).size(), 5u);
  EXPECT_THAT(why(plan, large), HasSubstr("needs 20 GPUs; 8 free of 8"));
}

TEST(Reservation, DevicesAreNotKeptIdleForAJobWhoseStartNobodyCanTell) {  // B3 25
  const Node n = node_of("n1", 8, h100());
  Snapshot s = snapshot_of_nodes({n});
  hold(s, whole_grant(n, {0, 1}), std::nullopt, Tier::serving);
  const JobId all = submit(s, whole_gpus(8));
  const JobId two = submit(s, whole_gpus(2));
  const Plan plan = plan_for(s);
  EXPECT_FALSE(starts(plan, all));
  EXPECT_THAT(plan.waiting.find(all)->second->expected_start_unknown, HasSubstr("no time limit"));
  EXPECT_TRUE(starts(plan, two)) << "serving never ends by itself: six GPUs would idle for ever";
}

TEST(Reservation, TheNextInThePoolHasOneWhenTheFirstCannotHaveAny) {
  const Node n = node_of("n1", 4, h100());
  Snapshot s = snapshot_of_nodes({n});
  hold(s, whole_grant(n, {0}), std::nullopt, Tier::serving);
  hold(s, whole_grant(n, {1}), at(600));
  submit(s, whole_gpus(4));
  const JobId three = submit(s, whole_gpus(3));
  const JobId small = submit(s, lasting(whole_gpus(1), hours(1)));
  const Plan plan = plan_for(s);
  EXPECT_EQ(plan.waiting.find(three)->second->expected_start, at(600));
  EXPECT_FALSE(starts(plan, small));
}

TEST(Reservation, AJobThatOnlyLacksCpusIsNotToldThatItStartsNow) {
  const Node n = node_of("n1", 2, h100(), 8);
  Snapshot s = snapshot_of_nodes({n});
  Grant cpus;
  cpus.node = n.id;
  cpus.cpus = 6;
  hold(s, cpus, at(600));
  JobSpec spec = whole_gpus(1);
  spec.cpus = 4;
  const JobId id = submit(s, spec);
  const Plan plan = plan_for(s);
  ASSERT_FALSE(starts(plan, id));
  EXPECT_EQ(plan.waiting.find(id)->second->expected_start, at(600));
}

TEST(Reservation, AStreamOfSmallCpuJobsDoesNotStarveAJobThatNeedsManyCpus) {
  const Node n = node_of("n1", 1, h100(), 8);
  Snapshot s = snapshot_of_nodes({n});
  Grant cpus;
  cpus.node = n.id;
  cpus.cpus = 4;
  hold(s, cpus, at(600));
  JobSpec large = whole_gpus(1);
  large.cpus = 8;
  submit(s, large);
  JobSpec small = job();
  small.cpus = 4;
  const JobId too_long = submit(s, lasting(small, hours(1)));
  const JobId fits = submit(s, lasting(small, minutes(5)));
  const Plan plan = plan_for(s);
  EXPECT_FALSE(starts(plan, too_long));
  EXPECT_TRUE(blocked_by(plan, too_long, BlockerKind::behind_reservation)) << why(plan, too_long);
  EXPECT_TRUE(starts(plan, fits));
}

TEST(Reservation, AnOverdueHolderIsExpectedSoonAndNotInThePast) {
  const Node n = node_of("n1", 1, h100());
  Snapshot s = snapshot_of_nodes({n});
  hold(s, whole_grant(n, {0}), at(-600));
  const JobId id = submit(s, whole_gpus(1));
  const Plan plan = plan_for(s);
  ASSERT_TRUE(plan.waiting.find(id)->second->expected_start.has_value());
  EXPECT_GT(*plan.waiting.find(id)->second->expected_start, t0);
}

}  // namespace
}  // namespace takt::schedule
