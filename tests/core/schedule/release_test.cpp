// What is handed to an engine that chooses the devices itself, in which order, and why others wait.
#include "core/schedule/release.h"

#include <gmock/gmock.h>

#include "core/schedule/decide.h"
#include "support/cluster_builder.h"

namespace takt::schedule {
namespace {

using namespace takt::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Snapshot cluster(std::size_t waiting_there = 0) {
  Snapshot s = snapshot_of_nodes({node_of("slurm", 4, a100())});
  s.engine = PlacingEngine{"slurm", NodeId("slurm"), true, waiting_there};
  return s;
}

std::vector<JobId> released(const Plan& plan) {
  std::vector<JobId> ids;
  for (const Placement& p : plan.placements) ids.push_back(p.job);
  return ids;
}

const Blocker& reason(const Plan& plan, JobId job) {
  return plan.waiting.find(job)->second->blockers.front();
}

TEST(Release, GoesByTierAndThenBySubmissionAndChoosesNoDevice) {
  Snapshot s = cluster();
  const JobId batch = submit(s, whole_gpus(1, Tier::batch));
  const JobId training = submit(s, whole_gpus(4, Tier::training));
  const JobId later = submit(s, whole_gpus(1, Tier::training));
  const Plan plan = decide(s, Policy{}, t0);
  EXPECT_THAT(released(plan), ElementsAre(training, later, batch));
  for (const Placement& p : plan.placements) {
    EXPECT_THAT(p.grant.devices, IsEmpty());
    EXPECT_EQ(p.grant.node, NodeId("slurm"));
  }
  EXPECT_THAT(plan.waiting, IsEmpty());
}

TEST(Release, HandsOverMoreThanTheMachinesHoldButNoMoreThanMayWaitThere) {
  Policy policy;
  policy.limits.engine_waiting_max = 6;
  Snapshot s = cluster(4);
  for (int i = 0; i < 5; ++i) submit(s, whole_gpus(4));
  const Plan plan = decide(s, policy, t0);
  EXPECT_THAT(plan.placements, SizeIs(2));
  ASSERT_THAT(plan.waiting, SizeIs(3));
  const Blocker& why = reason(plan, JobId(3));
  EXPECT_EQ(why.kind, BlockerKind::engine_queue_full);
  EXPECT_THAT(why.available, HasSubstr("6 jobs wait at slurm and as many may"));
  EXPECT_EQ(decide(cluster(7), policy, t0).placements.size(), 0u);
}

TEST(Release, SharesTheTurnsBetweenUsers) {
  Policy policy;
  policy.limits.engine_waiting_max = 2;
  Snapshot s = cluster();
  submit(s, whole_gpus(2), "alice");
  submit(s, whole_gpus(2), "alice");
  const JobId bobs = submit(s, whole_gpus(2), "bob");
  EXPECT_THAT(released(decide(s, policy, t0)), ElementsAre(JobId(1), bobs));
}

TEST(Release, KeepsWhatNoMachineCanMeetAndSaysSo) {
  Snapshot s = cluster();
  const JobId large = submit(s, whole_gpus(99));
  const JobId odd = submit(s, of_type(whole_gpus(1), {"h100"}));
  const Plan plan = decide(s, Policy{}, t0);
  EXPECT_THAT(plan.placements, IsEmpty());
  EXPECT_EQ(reason(plan, large).kind, BlockerKind::larger_than_cluster);
  EXPECT_EQ(reason(plan, odd).kind, BlockerKind::no_such_type);
}

TEST(Release, HandsNothingToAnEngineThatIsNotHeardOf) {
  Snapshot s = cluster();
  s.engine->reachable = false;
  const JobId id = submit(s, whole_gpus(1));
  const Plan plan = decide(s, Policy{}, t0);
  EXPECT_THAT(plan.placements, IsEmpty());
  EXPECT_EQ(reason(plan, id).kind, BlockerKind::no_agent);
}

TEST(Release, WaitsForARetryThatIsNotDue) {
  Snapshot s = cluster();
  const JobId id = submit(s, whole_gpus(1));
  s.waiting[0].not_before = t0 + seconds(8);
  EXPECT_EQ(reason(decide(s, Policy{}, t0), id).kind, BlockerKind::backing_off);
  EXPECT_THAT(released(decide(s, Policy{}, t0 + seconds(8))), ElementsAre(id));
}

}  // namespace
}  // namespace takt::schedule
