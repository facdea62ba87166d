// Rule 1: `gpus: N`.
#include <gmock/gmock.h>

#include <chrono>

#include "reading.h"

namespace takt::schedule {
namespace {

using namespace takt::testing;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(WholeGpus, AnEmptyMachineStartsTheJobAtOnce) {
  Snapshot s = snapshot_of_nodes({node_of("n1", 4, h100())});
  const JobId id = submit(s, whole_gpus(2));
  const Plan plan = plan_for(s);
  ASSERT_TRUE(starts(plan, id));
  const Grant& grant = *grant_of(plan, id);
  EXPECT_EQ(grant.node, NodeId("n1"));
  EXPECT_EQ(grant.devices.size(), 2u);
  EXPECT_EQ(grant.devices[0].kind, DeviceKind::whole_gpu);
  EXPECT_EQ(grant.devices[0].memory, gibibytes(80));
  EXPECT_EQ(grant.isolation, Isolation::strict);
  EXPECT_EQ(grant.domain, "");
  EXPECT_THAT(plan.waiting, IsEmpty());
}

TEST(WholeGpus, AGangGetsOneModelOnly) {
  Snapshot s = snapshot_of_nodes({node_of("n1", {h100(), a100(), h100(), a100(), a100()})});
  const JobId id = submit(s, whole_gpus(3));
  EXPECT_THAT(gpus_of(plan_for(s), id), ElementsAre(1, 3, 4));
}

TEST(WholeGpus, TheCheaperModelIsTakenWhenBothWouldDo) {
  Snapshot s = snapshot_of_nodes({node_of("n1", {h100(), a100()})});
  const JobId id = submit(s, whole_gpus(1));
  EXPECT_THAT(gpus_of(plan_for(s), id), ElementsAre(1));
}

TEST(WholeGpus, AGangThatCouldHaveOneModelWaitsForItAndSaysSo) {
  const Node n = node_of("n1", {h100(), h100(), a100(), a100(), a100(), a100()});
  Snapshot s = snapshot_of_nodes({n});
  hold(s, whole_grant(n, {2, 3}), at(600));
  const JobId id = submit(s, whole_gpus(4));
  const Plan plan = plan_for(s);
  ASSERT_FALSE(starts(plan, id));
  EXPECT_THAT(why(plan, id), HasSubstr("4 free of 6, at most 2 of one model"));
  EXPECT_EQ(plan.waiting.find(id)->second->expected_start, at(600));
}

TEST(WholeGpus, AGangLargerThanEveryModelMixesThem) {
  Snapshot s = snapshot_of_nodes({node_of("n1", {h100(), h100(), a100(), a100()})});
  const JobId id = submit(s, whole_gpus(4));
  const Plan plan = plan_for(s);
  ASSERT_TRUE(starts(plan, id));
  EXPECT_THAT(plan.placements[0].decision, ::testing::Contains(HasSubstr("several models")));
}

TEST(WholeGpus, LinksComeBeforeThePriceForAGangAndNotForASingleGpu) {
  Node n = node_of("n1", {a100(), a100(), h100(), h100()});
  link_nvlink(n, 2, 3, 18);
  Snapshot s = snapshot_of_nodes({n});
  const JobId gang = submit(s, whole_gpus(2));
  EXPECT_THAT(gpus_of(plan_for(s), gang), ElementsAre(2, 3));

  Node cheap_is_linked = node_of("n1", {a100(), a100(), h100()});
  link_nvlink(cheap_is_linked, 0, 1, 12);
  Snapshot t = snapshot_of_nodes({cheap_is_linked});
  const JobId single = submit(t, whole_gpus(1));
  EXPECT_EQ(gpus_of(plan_for(t), single).count(2), 0u);
}

TEST(WholeGpus, TheNvlinkPairIsChosenAndNoOtherPairTorn) {
  // 0-2 and 1-3 are pairs.
  Node n = node_of("n1", 4, a100());
  link_nvlink(n, 0, 2, 12);
  link_nvlink(n, 1, 3, 12);
  Snapshot s = snapshot_of_nodes({n});
  const JobId pair = submit(s, whole_gpus(2));
  EXPECT_THAT(gpus_of(plan_for(s), pair), AnyOf(ElementsAre(0, 2), ElementsAre(1, 3)));
}

TEST(WholeGpus, ASingleGpuTakesTheOneWithoutAPartner) {
  Node n = node_of("n1", 3, a100());
  link_nvlink(n, 0, 1, 12);
  Snapshot s = snapshot_of_nodes({n});
  const JobId id = submit(s, whole_gpus(1));
  EXPECT_THAT(gpus_of(plan_for(s), id), ElementsAre(2));
}

TEST(WholeGpus, AskedForNvlinkTheyAreConnectedOrItSaysSo) {
  Node n = node_of("n1", 4, a100());
  link_nvlink(n, 0, 2, 12);
  link_nvlink(n, 1, 3, 12);
  JobSpec two = whole_gpus(2);
  two.gpus.link = LinkNeed::nvlink;
  JobSpec three = whole_gpus(3);
  three.gpus.link = LinkNeed::nvlink;
  Snapshot s = snapshot_of_nodes({n});
  hold(s, whole_grant(n, {1}), at(60));
  const JobId fits = submit(s, two);
  EXPECT_THAT(gpus_of(plan_for(s), fits), ElementsAre(0, 2));

  // Three are free, but no three of these four are connected with each other.
  Snapshot other = snapshot_of_nodes({n});
  const JobId never = submit(other, three);
  const Plan plan = plan_for(other);
  ASSERT_FALSE(starts(plan, never));
  EXPECT_THAT(why(plan, never), HasSubstr("NVLink"));
}

TEST(WholeGpus, AHotPairIsNotTakenForNvlinkWhileACoolOneIsFree) {
  Node n = node_of("n1", 4, a100());
  link_nvlink(n, 0, 1, 12);
  link_nvlink(n, 2, 3, 12);
  n.gpus[0].throttle_reasons = std::vector<std::string>{"hw_thermal_slowdown"};
  n.gpus[2].throttle_reasons = std::vector<std::string>{"gpu_idle"};
  JobSpec two = whole_gpus(2);
  two.gpus.link = LinkNeed::nvlink;
  Snapshot s = snapshot_of_nodes({n});
  const JobId id = submit(s, two);
  EXPECT_THAT(gpus_of(plan_for(s), id), ElementsAre(2, 3));
}

TEST(WholeGpus, OneHotGpuOfEightIsAvoidedByAGangOfFour) {  // B6 64
  Node n = node_of("n1", 8, h100());
  n.gpus[1].throttle_reasons = std::vector<std::string>{"sw_thermal_slowdown"};
  Snapshot s = snapshot_of_nodes({n});
  const JobId id = submit(s, whole_gpus(4));
  const auto got = gpus_of(plan_for(s), id);
  EXPECT_EQ(got.size(), 4u);
  EXPECT_EQ(got.count(1), 0u);
}

TEST(WholeGpus, AHotGpuIsStillTakenWhenThereIsNoOther) {
  Node n = node_of("n1", 1, h100());
  n.gpus[0].throttle_reasons = std::vector<std::string>{"sw_thermal_slowdown"};
  Snapshot s = snapshot_of_nodes({n});
  const JobId id = submit(s, whole_gpus(1));
  EXPECT_TRUE(starts(plan_for(s), id));
}

TEST(WholeGpus, AGpuInMigModeIsNotAWholeGpu) {  // B1 4
  const std::vector<MigInstance> small = {mig("1g.5gb", mebibytes(4864), 0, 1, 1)};
  Snapshot s = snapshot_of_nodes(
      {node_of("n1", {with_mig(a100(), small), a100(), a100(), with_mig(a100(), small)})});
  const JobId whole = submit(s, whole_gpus(2));
  const JobId slice = submit(s, strict_memory(gibibytes(4)));
  const Plan plan = plan_for(s);
  EXPECT_THAT(gpus_of(plan, whole), ElementsAre(1, 2));
  ASSERT_TRUE(starts(plan, slice));
  EXPECT_EQ(grant_of(plan, slice)->devices[0].kind, DeviceKind::mig_instance);

  Snapshot three = snapshot_of_nodes(
      {node_of("n1", {with_mig(a100(), small), a100(), a100(), with_mig(a100(), small)})});
  const JobId too_many = submit(three, whole_gpus(3));
  EXPECT_THAT(why(plan_for(three), too_many), HasSubstr("2 of them in MIG mode"));
}

TEST(WholeGpus, WaitingForThemNamesWhoHoldsThem) {
  const Node n = node_of("n1", 2, h100());
  Snapshot s = snapshot_of_nodes({n});
  hold(s, whole_grant(n, {1}), at(600), Tier::training, "bob");
  const JobId id = submit(s, whole_gpus(2));
  const Plan plan = plan_for(s);
  ASSERT_FALSE(starts(plan, id));
  EXPECT_THAT(why(plan, id), HasSubstr("needs 2 GPUs; 1 free of 2"));
  EXPECT_THAT(why(plan, id), HasSubstr("gpu1 is held by job 1000 (bob, held)"));
}

TEST(WholeGpus, TheCountWithMemoryTakesOnlyGpusThatLarge) {
  Snapshot s = snapshot_of_nodes({node_of("n1", {a100(), h100()})});
  JobSpec spec = whole_gpus(1);
  spec.gpus.memory = gibibytes(60);
  const JobId id = submit(s, spec);
  EXPECT_THAT(gpus_of(plan_for(s), id), ElementsAre(1));
}

TEST(WholeGpus, TooSmallGpusAreCalledTooSmallAndNotBusy) {
  Snapshot s = snapshot_of_nodes({node_of("n1", 2, a100())});
  const JobId id = submit(s, strict_memory(gibibytes(60)));
  const Plan plan = plan_for(s);
  ASSERT_FALSE(starts(plan, id));
  EXPECT_TRUE(blocked_by(plan, id, BlockerKind::memory_short)) << why(plan, id);
  EXPECT_THAT(why(plan, id), HasSubstr("60.0 GiB"));
  EXPECT_THAT(why(plan, id), HasSubstr("40.0 GiB"));
  EXPECT_THAT(why(plan, id), Not(HasSubstr("0 free of 2")));
}

TEST(WholeGpus, OfSeveralNodesTheReasonNamesEach) {
  const Node n1 = node_of("n1", 2, h100());
  const Node n2 = node_of("n2", 2, h100());
  Snapshot s = snapshot_of_nodes({n1, n2});
  hold(s, whole_grant(n1, {0}), at(60));
  hold(s, whole_grant(n2, {1}), at(60));
  const JobId id = submit(s, whole_gpus(2));
  const Plan plan = plan_for(s);
  ASSERT_FALSE(starts(plan, id)) << "a gang on one node is not spread over two";
  EXPECT_THAT(why(plan, id), HasSubstr("n1:gpu0"));
  EXPECT_THAT(why(plan, id), HasSubstr("n2:gpu1"));
}

TEST(WholeGpus, ASilentNodeIsNotUsedAndNamed) {
  Snapshot s = snapshot_of_nodes({node_of("n1", 2, h100())});
  s.nodes[0].reachable = false;
  const JobId id = submit(s, whole_gpus(1));
  const Plan plan = plan_for(s);
  ASSERT_FALSE(starts(plan, id));
  EXPECT_TRUE(blocked_by(plan, id, BlockerKind::no_agent));
  EXPECT_THAT(why(plan, id), HasSubstr("n1 has not reported lately"));
}

TEST(WholeGpus, SixteenLinkedGpusAreChosenFromWithinAFewMilliseconds) {
  Node n = node_of("n1", 16, h100());
  for (unsigned a = 0; a < 16; ++a)
    for (unsigned b = 0; b < a; ++b) link_nvlink(n, a, b, 18);
  Snapshot s = snapshot_of_nodes({n});
  const JobId id = submit(s, whole_gpus(8));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(gpus_of(plan_for(s), id).size(), 8u);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  // 12,870 sets. Unoptimised builds on a busy machine included; it took seconds when it compared
  // UUIDs.
  EXPECT_LT(took.count(), 1.0);
}

TEST(WholeGpus, TwentyGpusOfOneNodeKeepTheHotOnesForLast) {
  Node n = node_of("n1", 20, h100());
  n.gpus[0].throttle_reasons = std::vector<std::string>{"hw_power_brake_slowdown"};
  Snapshot s = snapshot_of_nodes({n});
  const JobId id = submit(s, whole_gpus(19));
  EXPECT_EQ(gpus_of(plan_for(s), id).count(0), 0u);
}

}  // namespace
}  // namespace takt::schedule
