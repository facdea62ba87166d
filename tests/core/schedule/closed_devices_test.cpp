// Devices that nothing may start on, and the sentences that say so.
#include <gmock/gmock.h>

#include "reading.h"

namespace takt::schedule {
namespace {

using namespace takt::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ForeignProcess, IsNamedWithPidOwnerProgramAndWhatIsLeft) {  // B4 46
  Snapshot s = snapshot_of_nodes(
      {node_of("n1", {occupied(l40s(), process(1, "root", "dcgm", gibibytes(48))),
                      occupied(l40s(), process(4242, "bob", "vllm", gibibytes(18)))})});
  const JobId id = submit(s, share_of(gibibytes(40)));
  const Plan plan = plan_for(s);
  ASSERT_FALSE(starts(plan, id));
  const std::string text = why(plan, id);
  EXPECT_THAT(text, HasSubstr("40960 MiB on one device"));
  EXPECT_THAT(text, HasSubstr("gpu1: 30.0 GiB of 48.0 GiB free; 18.0 GiB held by pid 4242 (bob, "
                              "vllm): not started by takt"));
  EXPECT_THAT(text, HasSubstr("ask bob to end pid 4242"));
  EXPECT_TRUE(blocked_by(plan, id, BlockerKind::foreign_process));
}

TEST(ForeignProcess, ClosesItsOwnGpuAndNoOther) {
  Snapshot s = snapshot_of_nodes(
      {node_of("n1", {occupied(l40s(), process(9, "bob", "python3", gibibytes(2))), l40s()})});
  const JobId share = submit(s, share_of(gibibytes(4)));
  const JobId whole = submit(s, whole_gpus(1));
  const Plan plan = plan_for(s);
  EXPECT_THAT(gpus_of(plan, share), ElementsAre(1));
  EXPECT_FALSE(starts(plan, whole));
  EXPECT_THAT(why(plan, whole), HasSubstr("pid 9"));
}

TEST(ForeignProcess, AllOfThemAreNamedNotOnlyTheFirst) {
  Gpu g = occupied(l40s(), process(11, "bob", "python3", gibibytes(2)));
  g = occupied(g, process(12, "eve", "blender", gibibytes(3)));
  Snapshot s = snapshot_of_nodes({node_of("n1", {g})});
  const JobId id = submit(s, whole_gpus(1));
  const std::string text = why(plan_for(s), id);
  EXPECT_THAT(text, HasSubstr("pid 11 (bob, python3)"));
  EXPECT_THAT(text, HasSubstr("pid 12 (eve, blender)"));
}

TEST(ForeignProcess, WhoseOwnerAndMemoryAreHiddenStillClosesTheGpu) {
  GpuProcess hidden;
  hidden.pid = 5;
  Gpu g = l40s();
  g.processes->push_back(hidden);
  Snapshot s = snapshot_of_nodes({node_of("n1", {g})});
  const JobId id = submit(s, whole_gpus(1));
  const Plan plan = plan_for(s);
  EXPECT_FALSE(starts(plan, id));
  EXPECT_THAT(why(plan, id), HasSubstr("pid 5 (owner unknown, program unknown)"));
}

TEST(ForeignProcess, ADisplayServerBelowOneGibibyteDoesNotBlock) {  // B8 80
  for (const char* program : {"Xorg", "/usr/lib/xorg/Xorg", "gnome-shell"}) {
    Snapshot s = snapshot_of_nodes(
        {node_of("n1", {occupied(l40s(), process(1, "root", program, mebibytes(150)))})});
    const JobId id = submit(s, whole_gpus(1));
    EXPECT_TRUE(starts(plan_for(s), id)) << program;
  }
  Snapshot s = snapshot_of_nodes(
      {node_of("n1", {occupied(l40s(), process(1, "root", "Xorg", gibibytes(2)))})});
  const JobId id = submit(s, whole_gpus(1));
  EXPECT_FALSE(starts(plan_for(s), id)) << "2 GiB are more than a desktop";
  Snapshot t = snapshot_of_nodes(
      {node_of("n1", {occupied(l40s(), process(1, "eve", "NotXorg", mebibytes(150)))})});
  const JobId other = submit(t, whole_gpus(1));
  EXPECT_FALSE(starts(plan_for(t), other)) << "the name must match as a whole";
}

TEST(UnseenMemory, InUseByNoVisibleProcessClosesTheGpu) {
  Gpu g = l40s();
  g.memory_used = gibibytes(12);
  Snapshot s = snapshot_of_nodes({node_of("n1", {g})});
  const JobId id = submit(s, share_of(gibibytes(4)));
  const Plan plan = plan_for(s);
  EXPECT_FALSE(starts(plan, id));
  EXPECT_THAT(why(plan, id), HasSubstr("12.0 GiB in use by no process that this host shows"));
}

TEST(UnseenMemory, OfAFewMebibytesIsTheDriversOwn) {
  Gpu g = l40s();
  g.memory_used = mebibytes(4);
  Snapshot s = snapshot_of_nodes({node_of("n1", {g})});
  const JobId id = submit(s, whole_gpus(1));
  EXPECT_TRUE(starts(plan_for(s), id));
}

TEST(UnseenMemory, OnADeviceThatIsHeldIsItsHoldersBusiness) {
  Node n = node_of("n1", 1, l40s());
  n.gpus[0].memory_used = gibibytes(12);
  Snapshot s = snapshot_of_nodes({n});
  hold(s, share_grant(n, 0, gibibytes(20)), at(60));
  const JobId id = submit(s, share_of(gibibytes(20)));
  EXPECT_TRUE(starts(plan_for(s), id)) << why(plan_for(s), id);
}

TEST(Leftovers, ProcessesOfAnAttemptThatHoldsNothingCloseTheGpuTheyAreOn) {
  GpuProcess left = process(31, "carol", "python3", gibibytes(3));
  left.attempt = AttemptId{JobId(7), 1};
  Snapshot s = snapshot_of_nodes({node_of("n1", {occupied(l40s(), left), l40s()})});
  const JobId both = submit(s, whole_gpus(2));
  const Plan plan = plan_for(s);
  EXPECT_FALSE(starts(plan, both)) << "the device is not proven free";
  EXPECT_THAT(why(plan, both), HasSubstr("pid 31"));
  EXPECT_THAT(why(plan, both), HasSubstr("attempt 7.1"));
}

TEST(Leftovers, AHoldersProcessOnAGpuItWasNotGivenClosesThatGpu) {
  const Node n = node_of("n1", 2, l40s());
  Snapshot s = snapshot_of_nodes({n});
  const AttemptId id = hold(s, whole_grant(n, {0}), at(60));
  GpuProcess stray = process(32, "carol", "python3", gibibytes(3));
  stray.attempt = id;
  s.nodes[0].node.gpus[1] = occupied(s.nodes[0].node.gpus[1], stray);
  const JobId other = submit(s, whole_gpus(1));
  EXPECT_FALSE(starts(plan_for(s), other));
}

TEST(Health, ALostGpuRemovesOnlyItself) {  // B6 62
  Snapshot s = snapshot_of_nodes({node_of(
      "n1", {h100(), h100(), h100(), sick(h100(), GpuHealth::lost, "fell off the bus (XID 79)")})});
  const JobId three = submit(s, whole_gpus(3));
  const JobId fourth = submit(s, whole_gpus(1));
  const Plan plan = plan_for(s);
  EXPECT_THAT(gpus_of(plan, three), ElementsAre(0, 1, 2));
  EXPECT_FALSE(starts(plan, fourth));
  EXPECT_THAT(why(plan, fourth), HasSubstr("gpu3 is lost: fell off the bus (XID 79)"));
}

TEST(Health, EverySickStateIsClosed) {
  for (const GpuHealth health : {GpuHealth::lost, GpuHealth::unresponsive, GpuHealth::failing}) {
    Snapshot s = snapshot_of_nodes({node_of("n1", {sick(h100(), health, "because")})});
    const JobId id = submit(s, whole_gpus(1));
    const Plan plan = plan_for(s);
    EXPECT_FALSE(starts(plan, id));
    EXPECT_TRUE(blocked_by(plan, id, BlockerKind::device_unhealthy));
  }
}

TEST(Health, AGpuWhoseProcessesCannotBeListedIsNotProvenFree) {
  Gpu g = h100();
  g.processes = missing(MissingKind::not_permitted);
  Snapshot s = snapshot_of_nodes({node_of("n1", {g})});
  const JobId id = submit(s, whole_gpus(1));
  const Plan plan = plan_for(s);
  EXPECT_FALSE(starts(plan, id));
  EXPECT_THAT(why(plan, id), HasSubstr("its processes cannot be listed (not permitted)"));
}

TEST(Explanation, AnUnknownTypeIsSaidFirstWithTheTypesThatAreHere) {  // B7/B3 35
  Snapshot s = snapshot_of_nodes({node_of("n1", 8, l40s())});
  const JobId id = submit(s, of_type(whole_gpus(1), {"H20"}));
  const Plan plan = plan_for(s);
  ASSERT_FALSE(blockers_of(plan, id).empty());
  EXPECT_EQ(blockers_of(plan, id)[0].kind, BlockerKind::no_such_type);
  EXPECT_EQ(blockers_of(plan, id)[0].available,
            "no node has type H20 (types here: NVIDIA L40S x8)");
}

TEST(Explanation, AllBlockersAreShownNotOnlyTheFirst) {  // B8 73
  Node n = node_of("n1",
                   {sick(h100(), GpuHealth::lost, "fell off the bus"),
                    occupied(h100(), process(8, "bob", "vllm", gibibytes(5))), h100()},
                   8);
  Snapshot s = snapshot_of_nodes({n});
  hold(s, whole_grant(n, {2}), at(60), Tier::training, "eve");
  JobSpec spec = whole_gpus(2);
  spec.cpus = 16;
  spec.memory = gibibytes(1024);
  const JobId id = submit(s, spec);
  const Plan plan = plan_for(s);
  for (const BlockerKind kind : {BlockerKind::gpus_busy, BlockerKind::device_unhealthy,
                                 BlockerKind::foreign_process, BlockerKind::cpus_short})
    EXPECT_TRUE(blocked_by(plan, id, kind)) << to_string(kind) << "\n" << why(plan, id);
  EXPECT_THAT(why(plan, id), HasSubstr("16 CPUs"));
  EXPECT_THAT(why(plan, id), HasSubstr("of host memory"));
}

TEST(Explanation, AWrongTypeAndTooManyCpusAreBothSaid) {
  Snapshot s = snapshot_of_nodes({node_of("n1", 1, l40s(), 8)});
  JobSpec spec = of_type(whole_gpus(1), {"h20"});
  spec.cpus = 100;
  const JobId id = submit(s, spec);
  const Plan plan = plan_for(s);
  EXPECT_TRUE(blocked_by(plan, id, BlockerKind::no_such_type));
  EXPECT_TRUE(blocked_by(plan, id, BlockerKind::cpus_short));
}

TEST(Explanation, WithoutAnyNodeOrGpuItSaysWhatIsMissing) {
  Snapshot none = snapshot_of_nodes({});
  const JobId id = submit(none, whole_gpus(1));
  EXPECT_THAT(why(plan_for(none), id), HasSubstr("no node has reported yet"));

  Node bare = node_of("n1", std::vector<Gpu>{});
  bare.driver_problem = "no NVIDIA driver: libnvidia-ml.so.1 is not installed";
  Snapshot s = snapshot_of_nodes({bare});
  const JobId gpu_job = submit(s, whole_gpus(1));
  const Plan plan = plan_for(s);
  EXPECT_TRUE(blocked_by(plan, gpu_job, BlockerKind::no_gpu));
  EXPECT_THAT(why(plan, gpu_job), HasSubstr("libnvidia-ml.so.1 is not installed"));
}

TEST(NeverFits, MoreThanAllMachinesHaveIsRefusedButNotWhatIsOnlyBusyOrSick) {
  const auto never = [](const JobSpec& spec, std::vector<Node> nodes) {
    Request request;
    request.spec = &spec;
    request.tier = *spec.tier;
    request.isolation = *spec.isolation;
    std::vector<SeenNode> seen;
    for (Node& n : nodes) seen.push_back({std::move(n), true});
    return never_fits(request, seen, Policy{});
  };
  const Node eight = node_of("n1", 8, h100());
  ASSERT_TRUE(never(whole_gpus(9), {eight}).has_value());
  EXPECT_EQ(never(whole_gpus(9), {eight})->kind, BlockerKind::larger_than_cluster);
  EXPECT_THAT(never(whole_gpus(9), {eight})->available, HasSubstr("8 free of 8"));
  EXPECT_THAT(never(strict_memory(gibibytes(100)), {eight})->available, HasSubstr("80.0 GiB"));
  EXPECT_THAT(never(share_of(gibibytes(100)), {eight})->available, HasSubstr("MiB"));
  EXPECT_EQ(never(of_type(whole_gpus(1), {"h20"}), {eight})->kind, BlockerKind::no_such_type);
  EXPECT_EQ(never(whole_gpus(1), {node_of("n1", std::vector<Gpu>{})})->kind, BlockerKind::no_gpu);

  EXPECT_FALSE(never(whole_gpus(8), {eight}).has_value());
  Node busy = node_of("n1", {sick(h100(), GpuHealth::lost, "gone"),
                             occupied(h100(), process(8, "bob", "vllm", gibibytes(80)))});
  EXPECT_FALSE(never(whole_gpus(2), {busy}).has_value());
  JobSpec linked = whole_gpus(2);
  linked.gpus.link = LinkNeed::nvlink;
  EXPECT_TRUE(never(linked, {eight}).has_value()) << "nothing here is connected by NVLink";
  // The first node's answer is not the only one.
  const auto two = never(whole_gpus(9), {node_of("a", std::vector<Gpu>{}), eight});
  ASSERT_TRUE(two.has_value());
  EXPECT_THAT(two->available, HasSubstr("8 free of 8"));
}

}  // namespace
}  // namespace takt::schedule
