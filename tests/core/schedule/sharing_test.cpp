// Rules 2 and 3: memory requests, as a share, a MIG instance or a whole GPU.
#include <gmock/gmock.h>

#include <map>

#include "reading.h"

namespace takt::schedule {
namespace {

using namespace takt::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Bytes kCard = gibibytes(40);
constexpr Bytes kFifth{kCard.value / 5};

int started(const Plan& plan) { return static_cast<int>(plan.placements.size()); }

TEST(Shares, OfEightJobsOfAFifthEachFiveStartAtOnce) {  // B4 47
  Snapshot s = snapshot_of_nodes({node_of("n1", 1, a100())});
  for (int i = 0; i < 8; ++i) submit(s, share_of(kFifth));
  const Plan plan = plan_for(s);
  EXPECT_EQ(started(plan), 5);
  EXPECT_EQ(plan.waiting.size(), 3u);
  EXPECT_EQ(overlap(applied(s, plan)), std::nullopt);
}

TEST(Shares, AFifthOfTheComputeCountsLikeAFifthOfTheMemory) {
  Snapshot s = snapshot_of_nodes({node_of("n1", 1, a100())});
  for (int i = 0; i < 8; ++i) {
    JobSpec spec = share_of(gibibytes(1));
    spec.gpus.compute_percent = 20;
    submit(s, spec);
  }
  EXPECT_EQ(started(plan_for(s)), 5);
}

TEST(Shares, OfThirtyTwoHalvesSixteenStartOnEightGpusAndNoneHoldsMoreThanItself) {  // B4 49
  Snapshot s = snapshot_of_nodes({node_of("n1", 8, a100())});
  for (int i = 0; i < 32; ++i) submit(s, share_of(Bytes{kCard.value / 2}));
  const Plan plan = plan_for(s);
  EXPECT_EQ(started(plan), 16);
  std::map<DeviceUuid, Bytes> on;
  for (const Placement& p : plan.placements)
    for (const DeviceGrant& d : p.grant.devices) on[d.uuid] += d.memory;
  EXPECT_EQ(on.size(), 8u);
  for (const auto& [uuid, memory] : on) EXPECT_LE(memory, kCard) << uuid.value;
  // The ledger is made of what is held: a second look finds the same and starts none more.
  EXPECT_EQ(started(plan_for(applied(s, plan))), 0);
}

TEST(Shares, TheSecondOfTwoThatEachNearlyFillACardGoesToTheOtherCard) {  // B4 44
  const Gpu card = gpu("NVIDIA T4", mebibytes(16'384));
  Snapshot two = snapshot_of_nodes({node_of("n1", 2, card)});
  const JobId a = submit(two, share_of(mebibytes(16'000)));
  const JobId b = submit(two, share_of(mebibytes(16'000)));
  const Plan plan = plan_for(two);
  ASSERT_EQ(started(plan), 2);
  EXPECT_NE(gpus_of(plan, a), gpus_of(plan, b));

  Snapshot one = snapshot_of_nodes({node_of("n1", 1, card)});
  submit(one, share_of(mebibytes(16'000)));
  const JobId second = submit(one, share_of(mebibytes(16'000)));
  const Plan waits = plan_for(one);
  EXPECT_EQ(started(waits), 1);
  EXPECT_THAT(why(waits, second), HasSubstr("16000 MiB on one device"));
  EXPECT_THAT(why(waits, second), HasSubstr("384 of 16384 MiB free"));
}

TEST(Shares, AnAlreadySharedGpuIsFilledFirstSoThatWholeOnesStayWhole) {
  const Node n = node_of("n1", 3, a100());
  Snapshot s = snapshot_of_nodes({n});
  hold(s, share_grant(n, 2, gibibytes(10)), at(60));
  const JobId id = submit(s, share_of(gibibytes(10)));
  EXPECT_THAT(gpus_of(plan_for(s), id), ElementsAre(2));
}

TEST(Shares, NoneIsPutBesideServing) {
  const Node n = node_of("n1", 1, a100());
  Snapshot s = snapshot_of_nodes({n});
  hold(s, share_grant(n, 0, gibibytes(10)), std::nullopt, Tier::serving);
  const JobId id = submit(s, share_of(gibibytes(5)));
  const Plan plan = plan_for(s);
  EXPECT_FALSE(starts(plan, id));
  EXPECT_THAT(why(plan, id), HasSubstr("gpu0 is held by job 1000"));

  Snapshot reverse = snapshot_of_nodes({n});
  hold(reverse, share_grant(n, 0, gibibytes(10)), at(60), Tier::batch);
  const JobId serving = submit(reverse, share_of(gibibytes(5), Tier::serving));
  EXPECT_FALSE(starts(plan_for(reverse), serving));
}

TEST(Shares, ANeighbourThatUsesMoreThanItWasGrantedCountsWithWhatItUses) {
  Node n = node_of("n1", 1, a100());
  Snapshot s = snapshot_of_nodes({n});
  const AttemptId greedy = hold(s, share_grant(n, 0, gibibytes(10)), at(60));
  GpuProcess p = process(77, "carol", "python3", gibibytes(30));
  p.attempt = greedy;
  s.nodes[0].node.gpus[0] = occupied(s.nodes[0].node.gpus[0], p);
  const JobId id = submit(s, share_of(gibibytes(20)));
  EXPECT_FALSE(starts(plan_for(s), id));
}

TEST(Shares, ADisplayServersMemoryIsNotPromisedToAnybody) {
  Snapshot s = snapshot_of_nodes({node_of(
      "n1", {occupied(a100(), process(1, "root", "/usr/lib/xorg/Xorg", mebibytes(900)))})});
  submit(s, share_of(gibibytes(20)));
  submit(s, share_of(gibibytes(20)));
  const Plan plan = plan_for(s);
  EXPECT_EQ(started(plan), 1) << "20 + 20 GiB beside a display server's 900 MiB do not fit in 40";
}

TEST(Shares, MemoryThatTheDriverKeepsIsNotHandedOut) {
  Gpu card = a100();
  card.memory_reserved = mebibytes(600);
  Snapshot s = snapshot_of_nodes({node_of("n1", 1, card)});
  const JobId all = submit(s, share_of(gibibytes(40)));
  EXPECT_FALSE(starts(plan_for(s), all));
  Snapshot t = snapshot_of_nodes({node_of("n1", 1, card)});
  const JobId rest = submit(t, share_of(gibibytes(40) - mebibytes(600)));
  EXPECT_TRUE(starts(plan_for(t), rest));
}

TEST(Shares, ACardWhoseMemoryIsNotToldGetsNoShareAndSaysSo) {
  Gpu card = a100();
  card.memory_total = missing(MissingKind::timed_out);
  Snapshot s = snapshot_of_nodes({node_of("n1", 1, card)});
  const JobId id = submit(s, share_of(gibibytes(1)));
  const Plan plan = plan_for(s);
  EXPECT_FALSE(starts(plan, id));
  EXPECT_THAT(why(plan, id), HasSubstr("did not answer in time"));
}

TEST(Shares, OnAMachineOfMigInstancesOnlyAShareBecomesAnInstanceWhichIsMoreIsolationNotLess) {
  Snapshot s = snapshot_of_nodes(
      {node_of("n1", {with_mig(a100(), {mig("1g.5gb", mebibytes(4864), 0, 1, 1),
                                        mig("3g.20gb", mebibytes(20'096), 4, 4, 3)})})});
  const JobId id = submit(s, share_of(gibibytes(4)));
  const Plan plan = plan_for(s);
  ASSERT_TRUE(starts(plan, id)) << why(plan, id);
  EXPECT_EQ(grant_of(plan, id)->devices[0].uuid, DeviceUuid("MIG-n1-0-0"));
  EXPECT_EQ(grant_of(plan, id)->isolation, Isolation::strict);
}

TEST(Mig, TheSmallestInstanceWhoseRealMemoryCoversItIsTaken) {
  Snapshot s = snapshot_of_nodes(
      {node_of("n1", {with_mig(a100(), {mig("3g.20gb", mebibytes(20'096), 0, 4, 3),
                                        mig("2g.10gb", mebibytes(9856), 4, 2, 2),
                                        mig("1g.5gb", mebibytes(4864), 6, 1, 1)})})});
  const JobId nine = submit(s, strict_memory(mebibytes(9000)));
  // 10 GiB by its name, but 9,856 MiB in truth.
  const JobId ten = submit(s, strict_memory(gibibytes(10)));
  const Plan plan = plan_for(s);
  ASSERT_TRUE(starts(plan, nine) && starts(plan, ten)) << why(plan, nine) << why(plan, ten);
  EXPECT_EQ(grant_of(plan, nine)->devices[0].uuid, DeviceUuid("MIG-n1-0-1"));
  EXPECT_EQ(grant_of(plan, ten)->devices[0].uuid, DeviceUuid("MIG-n1-0-0"));
  EXPECT_EQ(grant_of(plan, ten)->devices[0].memory, mebibytes(20'096));
  EXPECT_EQ(grant_of(plan, ten)->devices[0].gpu, uuid_of("n1", 0));
}

TEST(Mig, TwentyGibibytesOnInstancesOf20096MebibytesWaitWithBothNumbers) {  // B1 14
  Snapshot s = snapshot_of_nodes(
      {node_of("n1", {with_mig(a100(), {mig("3g.20gb", mebibytes(20'096), 0, 4, 3),
                                        mig("3g.20gb", mebibytes(20'096), 4, 4, 3)})})});
  const JobId a = submit(s, strict_memory(mebibytes(20'480)));
  const JobId b = submit(s, strict_memory(mebibytes(20'480)));
  const Plan plan = plan_for(s);
  EXPECT_EQ(started(plan), 0);
  for (const JobId id : {a, b}) {
    EXPECT_THAT(why(plan, id), HasSubstr("20480 MiB"));
    EXPECT_THAT(why(plan, id), HasSubstr("20096 MiB"));
  }
}

TEST(Mig, WithAWholeGpuBesideThemOneOfTwoGetsItAndTheOtherWaits) {
  Snapshot s = snapshot_of_nodes(
      {node_of("n1", {with_mig(a100(), {mig("3g.20gb", mebibytes(20'096), 0, 4, 3)}), a100()})});
  const JobId a = submit(s, strict_memory(mebibytes(20'480)));
  const JobId b = submit(s, strict_memory(mebibytes(20'480)));
  const Plan plan = plan_for(s);
  EXPECT_THAT(gpus_of(plan, a), ElementsAre(1));
  EXPECT_EQ(grant_of(plan, a)->devices[0].kind, DeviceKind::whole_gpu);
  EXPECT_FALSE(starts(plan, b));
}

TEST(Mig, AnInstanceIsGivenOnceAndItsNeighbourStaysFree) {
  const Node n = node_of("n1", {with_mig(a100(), {mig("1g.5gb", mebibytes(4864), 0, 1, 1),
                                                  mig("1g.5gb", mebibytes(4864), 1, 1, 1)})});
  Snapshot s = snapshot_of_nodes({n});
  for (int i = 0; i < 3; ++i) submit(s, strict_memory(gibibytes(4)));
  const Plan plan = plan_for(s);
  EXPECT_EQ(started(plan), 2);
  EXPECT_EQ(overlap(applied(s, plan)), std::nullopt);
  EXPECT_THAT(why(plan, JobId(3)), HasSubstr("2 instances would do, all in use"));
}

TEST(Mig, ComputeOfASliceCountsToo) {
  Snapshot s = snapshot_of_nodes(
      {node_of("n1", {with_mig(a100(), {mig("1g.10gb", mebibytes(9856), 0, 2, 1),
                                        mig("3g.20gb", mebibytes(20'096), 4, 4, 3)})})});
  JobSpec spec = strict_memory(gibibytes(4));
  spec.gpus.compute_percent = 30;  // 1 of 7 slices is 14 %
  const JobId id = submit(s, spec);
  const Plan plan = plan_for(s);
  ASSERT_TRUE(starts(plan, id));
  EXPECT_EQ(grant_of(plan, id)->devices[0].uuid, DeviceUuid("MIG-n1-0-1"));
}

TEST(StrictMemory, WithoutMigItIsAWholeGpuTheSmallestThatCoversIt) {
  Snapshot s = snapshot_of_nodes({node_of("n1", {h100(), a100()})});
  const JobId id = submit(s, strict_memory(gibibytes(30), Tier::training));
  EXPECT_THAT(gpus_of(plan_for(s), id), ElementsAre(1));
}

TEST(NoGpu, AJobThatAsksForNoneRunsOnTheCpusWithNoDevice) {
  Snapshot s = snapshot_of_nodes({node_of("n1", 1, h100())});
  const JobId id = submit(s, job());
  const Plan plan = plan_for(s);
  ASSERT_TRUE(starts(plan, id));
  EXPECT_TRUE(grant_of(plan, id)->devices.empty());
  EXPECT_EQ(grant_of(plan, id)->cpus, 1);
}

TEST(NoGpu, CpusAndHostMemoryAreCountedWithinThePass) {
  Snapshot s = snapshot_of_nodes({node_of("n1", std::vector<Gpu>{}, 4, gibibytes(16))});
  JobSpec spec = job();
  spec.cpus = 3;
  const JobId first = submit(s, spec);
  const JobId second = submit(s, spec);
  JobSpec large = job();
  large.memory = gibibytes(32);
  const JobId third = submit(s, large);
  const Plan plan = plan_for(s);
  EXPECT_TRUE(starts(plan, first));
  EXPECT_FALSE(starts(plan, second));
  EXPECT_THAT(why(plan, second), HasSubstr("needs 3 CPUs; 1 free of 4 on n1"));
  EXPECT_THAT(why(plan, third), HasSubstr("needs 32.0 GiB of host memory; 16.0 GiB free of 16.0"));
}

}  // namespace
}  // namespace takt::schedule
