// What nodes tell, and the passing of time, become facts.
#include <gmock/gmock.h>

#include "world.h"

namespace takt::control {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

World two_gpus() { return World(node_of("n1", 2, a100())); }

JobSpec retrying(std::vector<RetryCause> on, int max) {
  JobSpec spec = whole_gpus(1);
  spec.retry = {std::move(on), max};
  return spec;
}

TEST(Reports, CarryAJobFromGrantToItsEndAndGiveItsDeviceBack) {
  World w = two_gpus();
  const JobId id = w.submitted(whole_gpus(1));
  w.pass();
  EXPECT_EQ(w.job(id).state(), JobState::starting);
  w.see({w.seen_running(id)});
  EXPECT_EQ(w.job(id).state(), JobState::running);
  w.later(seconds(5));
  w.see({w.seen_exited(id, exit_code(0), false)});
  EXPECT_EQ(w.job(id).state(), JobState::done);
  EXPECT_TRUE(w.job(id).holding()) << "processes may be left";
  w.see({w.seen_exited(id, exit_code(0), true)});
  EXPECT_FALSE(w.job(id).holding());
  EXPECT_EQ(w.view(id).reason, "");
}

TEST(Reports, TheSameOneTwiceTellsNothingNew) {
  World w = two_gpus();
  const JobId id = w.submitted(retrying({RetryCause::failed}, 2));
  w.pass();
  for (const auto& seen : {w.seen_running(id), w.seen_exited(id, exit_code(1), false),
                           w.seen_exited(id, exit_code(1), true)}) {
    EXPECT_FALSE(w.see({seen}).empty());
    const std::string before = text_of(w.state);
    EXPECT_THAT(w.see({seen}), IsEmpty());
    EXPECT_EQ(text_of(w.state), before);
  }
}

TEST(Reports, AnAttemptThatIsNamedTwiceInOneEndsOnce) {
  World w = two_gpus();
  const JobId id = w.submitted(whole_gpus(1));
  w.start(id);
  const auto facts = w.see({w.seen_exited(id, exit_code(0)), w.seen_exited(id, exit_code(0))});
  EXPECT_THAT(only<Exited>(facts), SizeIs(1));
  EXPECT_THAT(only<Finished>(facts), SizeIs(1));
  EXPECT_THAT(only<Released>(facts), SizeIs(1));
}

TEST(Reports, StartAndEndBetweenTwoOfThemAreBothKept) {
  World w = two_gpus();
  const JobId id = w.submitted(whole_gpus(1));
  w.pass();
  const auto facts = w.see({w.seen_exited(id, exit_code(3))});
  EXPECT_THAT(only<Started>(facts), SizeIs(1));
  EXPECT_THAT(only<Exited>(facts), SizeIs(1));
  EXPECT_EQ(w.job(id).state(), JobState::failed);
  EXPECT_THAT(w.view(id).reason, HasSubstr("exit code 3: `takt logs 1` shows what it said"));
}

TEST(Reports, TimesOfANodeWhoseClockIsADayAheadOrBehindAreThoseOfTheController) {
  for (const Duration off : {hours(24), hours(-24)}) {
    World w = two_gpus();
    JobSpec spec = whole_gpus(1);
    spec.kill_after = minutes(10);
    const JobId id = w.submitted(spec);
    w.pass();
    w.later(seconds(30));
    NodeReport report = report_of(w.node, w.now + off, {w.seen_running(id)});
    report.attempts[0].started = w.now + off - seconds(20);
    ASSERT_TRUE(observe(w.cluster, w.state, report, w.now));
    w.apply(handle(w.state, w.cluster, w.policy, report, w.now));
    EXPECT_EQ(*w.attempt(id).started, w.now - seconds(20));
    EXPECT_THAT(tick(w.state, w.cluster, w.policy, w.now + minutes(9)), IsEmpty());
    w.later(seconds(60));
    report =
        report_of(w.node, w.now + off,
                  {exited(w.attempt(id).id, w.attempt(id).generation, w.now + off - seconds(80),
                          w.now + off - seconds(15), exit_code(0))});
    ASSERT_TRUE(observe(w.cluster, w.state, report, w.now));
    w.apply(handle(w.state, w.cluster, w.policy, report, w.now));
    EXPECT_EQ(*w.attempt(id).ended, w.now - seconds(15));
  }
}

TEST(Reports, AStartBeforeTheGrantWasOnAClockThatWasSetAndCountsFromTheGrant) {
  World w = two_gpus();
  const JobId id = w.submitted(whole_gpus(1));
  w.pass();
  const Instant granted = w.attempt(id).granted;
  w.later(seconds(3));
  AttemptSeen seen = w.seen_running(id);
  seen.started = w.now - hours(1);
  w.see({seen});
  EXPECT_EQ(*w.attempt(id).started, granted);
}

TEST(Reports, ADeviceThatStillShowsAProcessOfTheAttemptIsNotReleased) {
  World w = two_gpus();
  const JobId id = w.submitted(whole_gpus(1));
  w.start(id);
  GpuProcess left = process(77, "alice", "python3", gibibytes(3));
  left.attempt = w.attempt(id).id;
  w.node.gpus[1].processes->push_back(left);
  w.see({w.seen_exited(id, exit_code(0))});
  EXPECT_TRUE(w.job(id).holding());
  w.node.gpus[1].processes->clear();
  w.see({w.seen_exited(id, exit_code(0))});
  EXPECT_FALSE(w.job(id).holding());
}

TEST(Reports, OfAnotherGenerationDoNotConcernTheAttempt) {
  World w = two_gpus();
  const JobId id = w.submitted(whole_gpus(1));
  w.pass();
  AttemptSeen other = w.seen_exited(id, exit_code(9));
  other.generation += 1;
  EXPECT_THAT(w.see({other}), IsEmpty());
}

TEST(Reports, WhatCouldNotStartFailsWithItsSentenceAndIsNotTriedAgain) {
  World w = two_gpus();
  const JobId id = w.submitted(retrying({RetryCause::failed}, 5));
  w.pass();
  AttemptSeen seen = w.seen_exited(id, {});
  seen.started.reset();
  seen.exit->cause = ExitCause::start_failed;
  seen.exit->message = "/nowhere/prog: no such file: check the path";
  w.see({seen});
  EXPECT_EQ(w.job(id).state(), JobState::failed);
  EXPECT_EQ(w.view(id).reason, "could not start: /nowhere/prog: no such file: check the path");
}

TEST(Retry, BacksOffTwoFourEightSecondsAndGivesUpAfterTheMost) {
  World w = two_gpus();
  const JobId id = w.submitted(retrying({RetryCause::failed}, 3));
  for (const int pause : {2, 4, 8}) {
    w.start(id);
    w.see({w.seen_exited(id, exit_code(1))});
    ASSERT_EQ(w.job(id).state(), JobState::waiting);
    EXPECT_EQ(w.job(id).not_before, w.now + seconds(pause));
    w.later(seconds(pause) - microseconds(1));
    EXPECT_THAT(w.pass().facts, IsEmpty()) << "not yet";
    w.later(microseconds(1));
  }
  w.start(id);
  EXPECT_EQ(w.attempt(id).id.number, 4u);
  w.see({w.seen_exited(id, exit_code(1))});
  EXPECT_EQ(w.job(id).state(), JobState::failed);
}

TEST(Retry, OnlyForTheCausesThatAreListed) {
  ExitStatus oom = killed(9);
  oom.oom = true;
  const struct {
    RetryCause listed;
    ExitStatus exit;
    bool again;
  } rows[] = {
      {RetryCause::failed, exit_code(1), true},
      {RetryCause::oom, exit_code(1), false},
      {RetryCause::oom, oom, true},
      {RetryCause::failed, oom, false},
      {RetryCause::node_lost, exit_code(1), false},
      {RetryCause::node_lost, lost(), true},
      {RetryCause::failed, exit_code(0), false},
      {RetryCause::failed, killed(11), true},
  };
  for (const auto& row : rows) {
    World w = two_gpus();
    const JobId id = w.submitted(retrying({row.listed}, 1));
    w.start(id);
    w.see({w.seen_exited(id, row.exit)});
    EXPECT_EQ(w.job(id).state() == JobState::waiting, row.again)
        << to_string(row.listed) << ", " << describe(row.exit);
  }
}

TEST(Retry, WaitsUntilTheLastAttemptsDevicesAreProvenFree) {
  World w = two_gpus();
  const JobId id = w.submitted(retrying({RetryCause::failed}, 1));
  w.start(id);
  w.see({w.seen_exited(id, exit_code(1), false)});
  w.later(minutes(1));
  EXPECT_THAT(w.pass().facts, IsEmpty()) << "though the other GPU is free";
  ASSERT_THAT(w.view(id).waiting_for, SizeIs(1));
  EXPECT_EQ(w.view(id).waiting_for[0].kind, BlockerKind::draining);
}

TEST(MemoryWatchdog, StopsWhoOutgrowsItsShareAndSaysWhatToAskFor) {
  World w = two_gpus();
  const JobId id = w.submitted(asked(share_of(gibibytes(12))));
  w.start(id);
  GpuProcess p = process(77, "alice", "python3", gibibytes(12));
  p.attempt = w.attempt(id).id;
  const DeviceUuid gpu = w.attempt(id).grant.devices[0].gpu;
  for (Gpu& g : w.node.gpus)
    if (g.uuid == gpu) g.processes->push_back(p);
  EXPECT_THAT(only<StopRequested>(w.see({w.seen_running(id)})), IsEmpty()) << "exactly what it has";
  for (Gpu& g : w.node.gpus)
    if (g.uuid == gpu) g.processes->push_back(p), g.processes->back().memory = mebibytes(2150);
  const auto stops = only<StopRequested>(w.see({w.seen_running(id)}));
  ASSERT_THAT(stops, SizeIs(1));
  EXPECT_EQ(stops[0].reason, StopReason::memory_watchdog);
  EXPECT_EQ(stops[0].detail, "OOM: asked 12.0 GiB, used 14.1 GiB: try --memory 18GiB");
  for (Gpu& g : w.node.gpus) g.processes->clear();
  w.see({w.seen_exited(id, killed(15))});
  EXPECT_EQ(w.job(id).state(), JobState::failed);
  EXPECT_EQ(w.view(id).reason, "OOM: asked 12.0 GiB, used 14.1 GiB: try --memory 18GiB");
}

TEST(MemoryWatchdog, IsAnOutOfMemoryForTheRetryRules) {
  World w = two_gpus();
  JobSpec spec = share_of(gibibytes(12));
  spec.retry = {{RetryCause::oom}, 1};
  const JobId id = w.submitted(spec);
  w.start(id);
  w.apply({StopRequested{w.attempt(id).id, StopReason::memory_watchdog, "OOM: ...", seconds(10),
                         w.now}});
  w.see({w.seen_exited(id, killed(15))});
  EXPECT_EQ(w.job(id).state(), JobState::waiting);
}

TEST(MemoryWatchdog, ACancelAfterItStaysACancel) {
  World w = two_gpus();
  JobSpec spec = share_of(gibibytes(12));
  spec.retry = {{RetryCause::oom}, 1};
  const JobId id = w.submitted(spec);
  w.start(id);
  w.apply({StopRequested{w.attempt(id).id, StopReason::memory_watchdog, "OOM: ...", seconds(10),
                         w.now}});
  ASSERT_TRUE(w.cancel(id));
  w.see({w.seen_exited(id, killed(15))});
  EXPECT_TRUE(w.job(id).finished.has_value()) << "who cancels does not want another attempt";
}

TEST(MemoryWatchdog, LeavesWholeGpusAlone) {
  World w = two_gpus();
  const JobId id = w.submitted(whole_gpus(1));
  w.start(id);
  GpuProcess p = process(77, "alice", "python3", gibibytes(60));
  p.attempt = w.attempt(id).id;
  w.node.gpus[0].processes->push_back(p);
  w.node.gpus[1].processes->push_back(p);
  EXPECT_THAT(only<StopRequested>(w.see({w.seen_running(id)})), IsEmpty());
}

TEST(HostMemory, AnOutOfMemoryNamesWhatWasAskedAndThePeak) {
  World w = two_gpus();
  JobSpec spec = whole_gpus(1);
  spec.memory = gibibytes(8);
  const JobId id = w.submitted(spec);
  w.start(id);
  ExitStatus oom = killed(9);
  oom.oom = true;
  oom.memory_peak = gibibytes(9);
  w.see({w.seen_exited(id, oom)});
  EXPECT_THAT(w.view(id).reason, HasSubstr("OOM"));
  EXPECT_THAT(w.view(id).reason, HasSubstr("asked 8.0 GiB, peak 9.0 GiB"));
}

TEST(KillAfter, StopsAtItsTimeOnceAndTheJobFailsWithIt) {
  World w = two_gpus();
  JobSpec spec = whole_gpus(1);
  spec.kill_after = seconds(60);
  const JobId id = w.submitted(spec);
  w.pass();
  w.later(minutes(5));
  EXPECT_THAT(tick(w.state, w.cluster, w.policy, w.now), IsEmpty())
      << "the time before the start is free";
  w.see({w.seen_running(id)});
  w.later(seconds(59));
  EXPECT_THAT(tick(w.state, w.cluster, w.policy, w.now), IsEmpty());
  w.later(seconds(1));
  const auto facts = tick(w.state, w.cluster, w.policy, w.now);
  ASSERT_THAT(only<StopRequested>(facts), SizeIs(1));
  w.apply(facts);
  EXPECT_THAT(tick(w.state, w.cluster, w.policy, w.now), IsEmpty());
  w.see({w.seen_exited(id, killed(15))});
  EXPECT_EQ(w.job(id).state(), JobState::failed);
  EXPECT_EQ(w.view(id).reason, "stopped after kill_after: 60 s");
}

TEST(HostRestart, WhatHadStartedIsLostAndItsDeviceFree) {
  World w = two_gpus();
  const JobId id = w.submitted(whole_gpus(1));
  w.start(id);
  w.see({});
  EXPECT_EQ(w.job(id).state(), JobState::failed);
  EXPECT_THAT(w.view(id).reason, HasSubstr("lost:"));
  EXPECT_FALSE(w.job(id).holding());
}

TEST(HostRestart, WhatHadStartedIsTriedAgainWhereNodeLostIsListed) {
  World w = two_gpus();
  const JobId id = w.submitted(retrying({RetryCause::node_lost}, 1));
  w.start(id);
  w.see({});
  EXPECT_EQ(w.job(id).state(), JobState::waiting);
  w.later(seconds(2));
  w.start(id);
  EXPECT_EQ(w.job(id).state(), JobState::running);
  EXPECT_EQ(w.attempt(id).id.number, 2u);
}

TEST(HostRestart, WhatHadNotStartedIsStartedAfterIt) {
  World w = two_gpus();
  const JobId id = w.submitted(whole_gpus(1));
  w.pass();
  w.see({});
  EXPECT_EQ(w.job(id).state(), JobState::starting);
  EXPECT_THAT(only<Start>(w.effects()), SizeIs(1));
}

TEST(CancelBeforeStart, IsAnsweredByTheAgentEvenForAnAttemptItNeverSaw) {
  World w = two_gpus();
  const JobId id = w.submitted(whole_gpus(1));
  w.pass();
  ASSERT_TRUE(w.cancel(id));
  const auto effects = w.effects();
  EXPECT_THAT(only<Start>(effects), IsEmpty());
  EXPECT_THAT(only<Stop>(effects), SizeIs(1));
  AttemptSeen answer = w.seen_exited(id, lost());
  answer.started.reset();
  w.see({answer});
  EXPECT_EQ(w.job(id).state(), JobState::cancelled);
  EXPECT_FALSE(w.job(id).holding());
  EXPECT_THAT(only<Forget>(w.effects({answer})), SizeIs(1));
}

TEST(Observe, OnlyWhatMattersForPlacementGrowsTheVersion) {
  const Node base =
      node_of("n1", {h100(), with_mig(a100(), {mig("1g.5gb", mebibytes(4864), 0, 1, 1)})});
  const auto changes = [&](const std::function<void(Node&)>& change) {
    Cluster cluster;
    EXPECT_TRUE(observe(cluster, State{}, report_of(base), t0));
    const std::uint64_t version = cluster.version;
    Node next = base;
    change(next);
    EXPECT_TRUE(observe(cluster, State{}, report_of(next), t0));
    return cluster.version != version;
  };
  EXPECT_FALSE(changes([](Node&) {}));
  EXPECT_FALSE(changes([](Node& n) { n.gpus[0].utilization_percent = 97; }));
  EXPECT_FALSE(changes([](Node& n) { n.gpus[0].power_watts = 400.0; }));
  EXPECT_FALSE(changes([](Node& n) { n.gpus[0].memory_used = mebibytes(10); }));
  EXPECT_TRUE(changes([](Node& n) { n.gpus[0].memory_used = gibibytes(10); }));
  EXPECT_TRUE(changes([](Node& n) { n.gpus[0].health = GpuHealth::lost; }));
  EXPECT_TRUE(changes([](Node& n) { n.gpus.pop_back(); }));
  EXPECT_TRUE(changes([](Node& n) { n.cpus = 1; }));
  EXPECT_TRUE(changes([](Node& n) { n.gpus[1].mig.enabled = false; }));
  EXPECT_TRUE(changes([](Node& n) { n.gpus[1].mig.instances[0].uuid = DeviceUuid("MIG-other"); }));
  EXPECT_TRUE(changes(
      [](Node& n) { n.gpus[0].processes->push_back(process(1, "eve", "vllm", gibibytes(1))); }));
  EXPECT_TRUE(changes([](Node& n) {
    GpuProcess own = process(1, "eve", "vllm", mebibytes(1));
    own.attempt = AttemptId{JobId(4), 1};
    n.gpus[0].processes->push_back(own);
  })) << "whose processes are on it decides whether it is proven free";
}

TEST(Observe, ASilentNodeBecomesUnreachableAndComesBackWithItsNextReport) {
  Policy policy;
  Cluster cluster;
  const Node n = node_of("n1", 1, h100());
  observe(cluster, State{}, report_of(n), t0);
  const auto contact_at = [&](Instant when) {
    observe_silence(cluster, policy, when);
    return cluster.nodes.at(n.id).contact;
  };
  EXPECT_EQ(contact_at(t0 + policy.node_silent_max), Contact::fresh);
  EXPECT_EQ(contact_at(t0 + policy.node_silent_max + microseconds(1)), Contact::suspect);
  EXPECT_EQ(contact_at(t0 + policy.node_unreachable_after + seconds(1)), Contact::unreachable);
  EXPECT_EQ(contact_at(t0 + policy.node_lost_after + seconds(1)), Contact::lost);
  const std::uint64_t version = cluster.version;
  EXPECT_EQ(contact_at(t0 + hours(1)), Contact::lost);
  EXPECT_EQ(cluster.version, version) << "told once";
  EXPECT_TRUE(observe(cluster, State{}, report_of(n), t0 + hours(1)));
  EXPECT_EQ(contact_at(t0 + hours(1)), Contact::fresh);
}

TEST(Observe, LateAndDoubledReportsAreDropped) {
  Cluster cluster;
  const Node n = node_of("n1", 1, h100());
  const NodeReport first = report_of(n);
  const NodeReport second = report_of(n);
  EXPECT_TRUE(observe(cluster, State{}, second, t0));
  EXPECT_FALSE(observe(cluster, State{}, first, t0)) << "it was overtaken";
  EXPECT_FALSE(observe(cluster, State{}, second, t0)) << "it came twice";
  NodeReport next_life = first;
  next_life.life = 1;
  EXPECT_TRUE(observe(cluster, State{}, next_life, t0)) << "the agent began anew";
  NodeReport next_boot = first;
  next_boot.node.boot_id = "another";
  EXPECT_TRUE(observe(cluster, State{}, next_boot, t0)) << "the host began anew";
  NodeReport former = report_of(n);
  former.life = 9;
  EXPECT_FALSE(observe(cluster, State{}, former, t0)) << "of a boot that is over";
}

// To a controller that begins anew an old report is the newest it has.
TEST(Reports, OfTheBootThatGoesOnCountWhenTheFormerOneHasFallenSilent) {
  const Node n = node_of("n1", 1, a100());
  Cluster cluster;
  Policy policy;
  ASSERT_TRUE(observe(cluster, State{}, report_of(n), t0));
  NodeReport late = report_of(n);
  late.node.boot_id = "the boot before";
  EXPECT_TRUE(observe(cluster, State{}, late, t0)) << "nobody can tell which came first";
  const Instant later = t0 + policy.node_silent_max + seconds(1);
  EXPECT_FALSE(observe(cluster, State{}, report_of(n), t0));
  observe_silence(cluster, policy, later);
  EXPECT_TRUE(observe(cluster, State{}, report_of(n), later));
  late = report_of(n);
  late.node.boot_id = "the boot before";
  EXPECT_FALSE(observe(cluster, State{}, late, later));
}

TEST(Reports, ThatAreOldTakeNothingForLostBeforeTheyCannotBeOldAnyMore) {
  for (const bool another_boot : {false, true}) {
    World w = two_gpus();
    w.cluster.engine.absent_grace = minutes(3);
    const JobId id = w.submitted(whole_gpus(1));
    w.start(id);
    const std::string boot = w.node.boot_id;
    if (another_boot) w.node.boot_id = "the boot before";
    EXPECT_THAT(w.see({}), IsEmpty());
    w.later(minutes(2));
    EXPECT_THAT(w.see({}), IsEmpty());
    w.later(minutes(1));
    EXPECT_THAT(only<Exited>(w.see({})), SizeIs(1));
  }
}

TEST(Reboot, WhatWasGrantedBeforeDoesNotStartAfterIt) {
  World w = two_gpus();
  const JobId id = w.submitted(whole_gpus(1));
  w.pass();
  w.node.boot_id = "after";
  w.later(seconds(60));
  EXPECT_THAT(w.effects(), IsEmpty()) << "it may have begun before";
  w.see({});
  ASSERT_TRUE(w.job(id).finished);
  EXPECT_THAT(w.job(id).finished->reason, HasSubstr("restarted"));
  EXPECT_FALSE(w.job(id).holding());
}

TEST(Lost, OnlyWithALeaseThatHasEndedIsAnAttemptTakenForLost) {
  World w = two_gpus();
  JobSpec spec = whole_gpus(1);
  spec.retry = {{RetryCause::node_lost}, 1};
  const JobId id = w.submitted(spec);
  w.start(id);
  const auto facts_after = [&](Duration silence) {
    observe_silence(w.cluster, w.policy, w.now + silence);
    return tick(w.state, w.cluster, w.policy, w.now + silence);
  };
  EXPECT_THAT(facts_after(hours(2)), IsEmpty()) << "without leases it may still run";
  w.cluster.engine.lease = minutes(30);
  w.cluster.began = w.now;
  EXPECT_THAT(facts_after(minutes(31)), IsEmpty()) << "5 % for uneven clocks";
  w.cluster.nodes.at(w.node.id).lease_ends = w.now + hours(1);
  EXPECT_THAT(facts_after(minutes(59)), IsEmpty()) << "the last lease that was sent counts";
  const auto facts = facts_after(minutes(61));
  ASSERT_THAT(only<Requeued>(facts), SizeIs(1));
  EXPECT_THAT(only<Released>(facts), SizeIs(1));
}

TEST(Kill, WhatOutlivesItIsToldAndTwiceHoldsTheJob) {
  World w = two_gpus();
  JobSpec spec = whole_gpus(1);
  spec.retry = {{RetryCause::failed}, 9};
  const JobId id = w.submitted(spec);
  for (int round = 1; round <= 2; ++round) {
    w.start(id);
    w.see({w.seen_exited(id, killed(9), false)});
    EXPECT_TRUE(w.job(id).holding()) << "its devices are not proven free";
    w.later(w.policy.kill_proof_max);
    w.apply(tick(w.state, w.cluster, w.policy, w.now));
    EXPECT_THAT(w.job(id).attempt->kill_failed, HasSubstr("KILL does not end"));
    EXPECT_THAT(tick(w.state, w.cluster, w.policy, w.now), IsEmpty()) << "told once";
    EXPECT_EQ(w.job(id).hold.has_value(), round == 2);
    w.see({w.seen_exited(id, killed(9), true)});
    EXPECT_FALSE(w.job(id).holding());
    w.later(minutes(2));
  }
  w.pass();
  EXPECT_EQ(w.job(id).state(), JobState::waiting) << "not node after node";
  State again;
  for (const Fact& f : facts_of(w.state)) fold(again, f, hours(1));
  EXPECT_EQ(fingerprint(again), fingerprint(w.state));
}

TEST(Numbers, OfAttemptsThatTheStateDoesNotKnowAreNotGivenAgain) {
  World w = two_gpus();
  w.see({running({JobId(41), 1}, 77, w.now)});
  EXPECT_EQ(w.state.next_job, 42u);
  EXPECT_EQ(w.state.next_generation, 78u);
  EXPECT_EQ(w.submitted(whole_gpus(1)), JobId(42));
}

TEST(Reboot, OfTheHostWithAClockSetForwardTakesNothingForOverdue) {
  World w = two_gpus();
  JobSpec spec = retrying({RetryCause::node_lost}, 1);
  spec.kill_after = minutes(10);
  const JobId id = w.submitted(spec);
  w.start(id);
  // A controller begins anew, a day later by its clock; the node has not reported yet.
  w.cluster = Cluster{};
  w.later(hours(24));
  EXPECT_THAT(tick(w.state, w.cluster, w.policy, w.now), IsEmpty());
  w.node.boot_id = "boot-2";
  EXPECT_THAT(only<Requeued>(w.see({})), SizeIs(1)) << "lost with the host, and to be tried again";
}

TEST(Clock, SetBackByADayWhileTheHostWasDownKeepsNoRetryWaitingForADay) {
  World w = two_gpus();
  JobSpec spec = whole_gpus(1);
  spec.retry = {{RetryCause::failed}, 9};
  const JobId id = w.submitted(spec);
  w.apply({*clock_set(w.state, {w.now, hours(1), "boot 1"})});
  w.start(id);
  w.see({w.seen_exited(id, exit_code(1))});
  ASSERT_GT(w.job(id).not_before, w.now);
  w.now = w.now - hours(24);
  const ClockReading after{w.now, seconds(20), "boot 2"};
  const auto set = clock_set(w.state, after);
  ASSERT_TRUE(set);
  EXPECT_LT(set->by, hours(-23));
  w.apply({*set});
  EXPECT_LE(w.job(id).not_before, w.now + seconds(64));
  EXPECT_LE(w.state.usage.at("alice").at, w.now);
  EXPECT_EQ(clock_set(w.state, after), std::nullopt) << "once";
}

TEST(Clock, OfANewBootMovesNothingThatMayBeAsItIs) {
  World w = two_gpus();
  const JobId id = w.submitted(whole_gpus(1));
  w.start(id);
  w.later(hours(3));
  const auto set = clock_set(w.state, {w.now, seconds(20), "boot 2"});
  ASSERT_TRUE(set);
  EXPECT_EQ(set->by, Duration{});
}

TEST(Clock, WhenItIsSetNodesHaveBeenSilentAsLongAsBefore) {
  World w = two_gpus();
  const JobId id = w.submitted(whole_gpus(1));
  w.start(id);
  w.see({});
  w.cluster.began = w.now;
  SeenReport& seen = w.cluster.nodes.at(w.node.id);
  seen.lease_ends = w.now + minutes(5);
  observe_clock(w.cluster, {w.now, seconds(100), "boot"});
  const Instant before = w.now;
  w.now = w.now + seconds(3) - hours(24);
  // The fact of it may be made again and again while the disk is full.
  for (int i = 0; i < 3; ++i) observe_clock(w.cluster, {w.now, seconds(103), "boot"});
  EXPECT_EQ(w.now - seen.received, seconds(3));
  EXPECT_EQ(w.now - w.cluster.began, seconds(3));
  EXPECT_EQ(*seen.lease_ends - w.now, minutes(5) - seconds(3));
  seen.absent[{id, 1}] = w.now;
  observe_clock(w.cluster, {before + hours(1), seconds(103), "boot"});
  EXPECT_EQ((seen.absent.at({id, 1})), before + hours(1));
}

TEST(Clock, WhenItIsSetSpansOfWhatIsUnderWayStayRight) {
  World w = two_gpus();
  JobSpec spec = whole_gpus(1);
  spec.kill_after = hours(1);
  const JobId id = w.submitted(spec);
  w.start(id);
  w.apply({*clock_set(w.state, {w.now, seconds(100), "boot"})});
  EXPECT_EQ(clock_set(w.state, {w.now + hours(1), seconds(100) + hours(1), "boot"}), std::nullopt);
  // A day back, half an hour later.
  w.now = w.now + minutes(30) - hours(24);
  const auto set = clock_set(w.state, {w.now, seconds(100) + minutes(30), "boot"});
  ASSERT_TRUE(set);
  EXPECT_EQ(set->by, Duration{} - hours(24));
  w.apply({*set});
  w.later(minutes(29));
  EXPECT_THAT(only<StopRequested>(tick(w.state, w.cluster, w.policy, w.now)), IsEmpty());
  w.later(minutes(1));
  EXPECT_THAT(only<StopRequested>(tick(w.state, w.cluster, w.policy, w.now)), SizeIs(1));
}

TEST(Silence, NeitherKillsNorLosesWhatRuns) {  // B5 58
  World w = two_gpus();
  const JobId id = w.submitted(whole_gpus(1));
  w.start(id);
  w.later(minutes(10));
  observe_silence(w.cluster, w.policy, w.now);
  EXPECT_THAT(tick(w.state, w.cluster, w.policy, w.now), IsEmpty());
  EXPECT_EQ(w.job(id).state(), JobState::running);
  EXPECT_THAT(w.see({w.seen_running(id)}), IsEmpty());
  EXPECT_EQ(w.job(id).state(), JobState::running);
}

}  // namespace
}  // namespace takt::control
