// Wanted against observed: what engines are told, and what an attempt finds when it starts.
#include <gmock/gmock.h>

#include "world.h"

namespace takt::control {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

World two_gpus() { return World(node_of("n1", 2, a100())); }

std::map<std::string, std::string> environment_of(const World& w, JobId id) {
  std::map<std::string, std::string> env;
  for (const EnvironmentVariable& e : launch_order(w.state, w.job(id), w.places).env)
    EXPECT_TRUE(env.emplace(e.name, e.value).second) << e.name << " is there twice";
  return env;
}

TEST(Reconcile, RepeatsTheStartUntilTheAttemptIsSeenAndNeverAfter) {
  World w = two_gpus();
  const JobId id = w.submitted(whole_gpus(1));
  EXPECT_THAT(w.effects(), IsEmpty());
  w.pass();
  for (int i = 0; i < 3; ++i) {
    const auto starts = only<Start>(w.effects());
    ASSERT_THAT(starts, SizeIs(1));
    EXPECT_EQ(starts[0].order.attempt, w.attempt(id).id);
    EXPECT_EQ(starts[0].order.generation, w.attempt(id).generation);
  }
  AttemptSeen starting = w.seen_running(id);
  starting.phase = AttemptPhase::starting;
  starting.started.reset();
  EXPECT_THAT(w.effects({starting}), IsEmpty());
  w.see({w.seen_running(id)});
  EXPECT_THAT(w.effects({w.seen_running(id)}), IsEmpty());
  // Had started, and a report lacks it: lost, not started again.
  EXPECT_THAT(only<Start>(w.effects({})), IsEmpty());
}

TEST(Reconcile, RepeatsTheStopUntilTheExitIsSeen) {
  World w = two_gpus();
  const JobId id = w.submitted(whole_gpus(1));
  w.start(id);
  w.cancel(id);
  for (int i = 0; i < 3; ++i) EXPECT_THAT(only<Stop>(w.effects({w.seen_running(id)})), SizeIs(1));
  w.see({w.seen_exited(id, killed(15), false)});
  EXPECT_THAT(w.effects({w.seen_exited(id, killed(15), false)}), IsEmpty());
}

TEST(Reconcile, ForgetsARecordOnlyAfterTheRelease) {
  World w = two_gpus();
  const JobId id = w.submitted(whole_gpus(1));
  w.start(id);
  const AttemptSeen gone = w.seen_exited(id, exit_code(0));
  EXPECT_THAT(w.effects({gone}), IsEmpty()) << "the outcome is not yet on disk";
  w.see({w.seen_exited(id, exit_code(0), false)});
  EXPECT_THAT(w.effects({gone}), IsEmpty()) << "not yet released";
  w.see({gone});
  EXPECT_THAT(only<Forget>(w.effects({gone})), SizeIs(1));
  EXPECT_THAT(w.effects({}), IsEmpty());
  // An agent that has restarted proves it again first.
  EXPECT_THAT(w.effects({w.seen_exited(id, exit_code(0), false)}), IsEmpty());
}

TEST(Reconcile, AnEarlierAttemptOfTheJobIsForgottenOrEnded) {
  World w = two_gpus();
  JobSpec spec = whole_gpus(1);
  spec.retry = {{RetryCause::failed}, 1};
  const JobId id = w.submitted(spec);
  w.start(id);
  const AttemptSeen first = w.seen_exited(id, exit_code(1));
  w.see({first});
  w.later(seconds(2));
  w.start(id);
  EXPECT_THAT(only<Forget>(w.effects({first, w.seen_running(id)})), SizeIs(1));
  AttemptSeen alive = first;
  alive.phase = AttemptPhase::running;
  alive.exit.reset();
  EXPECT_THAT(only<Stop>(w.effects({alive, w.seen_running(id)})), SizeIs(1));
}

TEST(Reconcile, AttemptsOfAJobItDoesNotKnowAreLeftAlone) {
  World w = two_gpus();
  const AttemptSeen stranger = running(AttemptId{JobId(77), 1}, 5, t0);
  EXPECT_THAT(only<CountersCarried>(w.see({stranger})), SizeIs(1)) << "its numbers are taken";
  EXPECT_THAT(w.see({stranger}), IsEmpty());
  EXPECT_THAT(w.effects({stranger}), IsEmpty());
}

// The agent may die with the Forget in hand, and the job leave for the archive before the next
// agent reports: nobody would remove the record.
TEST(Reconcile, ForgetsTheRecordOfAJobThatLeftForTheArchive) {
  World w = two_gpus();
  const JobId id = w.submitted(whole_gpus(1));
  w.start(id);
  const AttemptSeen gone = w.seen_exited(id, exit_code(0));
  w.see({gone});
  w.apply({Archived{{id}}});
  ASSERT_EQ(w.state.jobs.count(id), 0u);
  EXPECT_THAT(only<Forget>(w.effects({gone})), SizeIs(1));
  AttemptSeen alive = gone;
  alive.phase = AttemptPhase::running;
  EXPECT_THAT(w.effects({alive}), IsEmpty()) << "what runs is nobody's to end";
}

TEST(Reconcile, TellsANodeOnlyWhatConcernsIt) {
  World w = two_gpus();
  w.submitted(whole_gpus(1));
  w.pass();
  EXPECT_THAT(reconcile(w.state, report_of(node_of("other", 2, a100())), w.places), IsEmpty());
}

TEST(LaunchOrder, ResolvesEverythingTheAgentNeeds) {
  World w = two_gpus();
  JobSpec spec = whole_gpus(1);
  spec.argv = {"/bin/echo", "hi"};
  spec.workdir = "/srv/alice/work";
  w.places.log_max = mebibytes(7);
  const JobId id = w.submitted(spec);
  w.pass();
  const LaunchOrder order = launch_order(w.state, w.job(id), w.places);
  EXPECT_EQ(order.argv, spec.argv);
  EXPECT_EQ(order.workdir, "/srv/alice/work");
  EXPECT_EQ(order.identity, alice());
  EXPECT_EQ(order.stdout_path, "/var/lib/takt/logs/1.1.out");
  EXPECT_EQ(order.stderr_path, "/var/lib/takt/logs/1.1.err");
  EXPECT_EQ(order.log_max, mebibytes(7));
  EXPECT_EQ(order.grant, w.attempt(id).grant);
}

TEST(Environment, NamesDevicesByUuidAndTheJob) {
  World w = two_gpus();
  const JobId id = w.submitted(whole_gpus(1));
  w.pass();
  const auto env = environment_of(w, id);
  EXPECT_EQ(env.at("CUDA_VISIBLE_DEVICES"), w.attempt(id).grant.devices[0].uuid.value);
  EXPECT_THAT(env.at("CUDA_VISIBLE_DEVICES"), HasSubstr("GPU-n1-"));
  EXPECT_EQ(env.at("CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
  EXPECT_EQ(env.at("TAKT_JOB_ID"), "1");
  EXPECT_EQ(env.at("TAKT_ATTEMPT"), "1");
  EXPECT_EQ(env.at("TAKT_GPUS"), "1");
  EXPECT_EQ(env.at("TAKT_GPU_MEMORY_MIB"), "40960");
  EXPECT_EQ(env.at("TAKT_SOCKET"), "/run/takt/takt.sock");
  EXPECT_EQ(env.at("HOME"), "/home/alice");
  EXPECT_EQ(env.at("USER"), "alice");
  EXPECT_EQ(env.count("WORLD_SIZE"), 0u) << "one GPU is no gang";
}

TEST(Environment, OfAMigInstanceNamesTheInstance) {
  World w(node_of("n1", {with_mig(a100(), {mig("1g.5gb", mebibytes(4864), 0, 1, 1)})}));
  const JobId id = w.submitted(strict_memory(gibibytes(4)));
  w.pass();
  EXPECT_EQ(environment_of(w, id).at("CUDA_VISIBLE_DEVICES"), "MIG-n1-0-0");
}

TEST(Environment, WithoutAGpuNoneIsVisible) {
  World w = two_gpus();
  const JobId id = w.submitted(job());
  w.pass();
  const auto env = environment_of(w, id);
  EXPECT_EQ(env.at("CUDA_VISIBLE_DEVICES"), "");
  EXPECT_EQ(env.at("TAKT_GPUS"), "0");
}

TEST(Environment, OfAGangIsAsTorchrunExpectsIt) {
  World w = two_gpus();
  const JobId id = w.submitted(whole_gpus(2));
  w.pass();
  const auto env = environment_of(w, id);
  EXPECT_EQ(env.at("MASTER_ADDR"), "127.0.0.1");
  EXPECT_EQ(env.at("WORLD_SIZE"), "2");
  EXPECT_EQ(env.at("RANK"), "0");
  EXPECT_EQ(env.at("NODE_RANK"), "0");
  EXPECT_EQ(env.at("MASTER_PORT"), "20001");
  EXPECT_EQ(env.at("CUDA_VISIBLE_DEVICES"), "GPU-n1-0,GPU-n1-1");
}

TEST(Environment, OfATaskHoldsItsIndexAndParameters) {
  World w = two_gpus();
  JobSpec spec = whole_gpus(1);
  spec.array = {{"lr", {"1e-4", "3e-4"}}};
  const auto jobs = w.submit(spec)->jobs;
  w.pass();
  const auto env = environment_of(w, jobs[1]);
  EXPECT_EQ(env.at("TAKT_ARRAY_INDEX"), "1");
  EXPECT_EQ(env.at("TAKT_ARRAY_SIZE"), "2");
  EXPECT_EQ(env.at("TAKT_PARAM_lr"), "3e-4");
}

TEST(Environment, OfTheUserCannotChangeItsDevicesButItsHomeAndPort) {
  World w = two_gpus();
  JobSpec spec = whole_gpus(2);
  spec.env = {{"CUDA_VISIBLE_DEVICES", "0,1,2,3", false},
              {"CUDA_DEVICE_ORDER", "FASTEST_FIRST", false},
              {"TAKT_JOB_ID", "99", false},
              {"MASTER_PORT", "29500", false},
              {"HOME", "/scratch/alice", false},
              {"MINE", "1", false}};
  const auto accepted = w.submit(spec);
  ASSERT_TRUE(accepted) << accepted.error().message;
  w.pass();
  const auto env = environment_of(w, accepted->jobs[0]);
  EXPECT_EQ(env.at("CUDA_VISIBLE_DEVICES"), "GPU-n1-0,GPU-n1-1");
  EXPECT_EQ(env.at("CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
  EXPECT_EQ(env.at("TAKT_JOB_ID"), "1");
  EXPECT_EQ(env.at("MASTER_PORT"), "29500");
  EXPECT_EQ(env.at("HOME"), "/scratch/alice");
  EXPECT_EQ(env.at("MINE"), "1");
}

TEST(Admit, DropsAPlanThatWasMadeForAnotherStateAsAWhole) {
  World w = two_gpus();
  w.submitted(whole_gpus(1));
  w.submitted(whole_gpus(1));
  const auto plan =
      schedule::decide(snapshot(w.state, w.cluster, w.policy, w.now), w.policy, w.now);
  ASSERT_EQ(plan.placements.size(), 2u);
  World after_submit = w;
  after_submit.submitted(whole_gpus(1));
  World after_report = w;
  after_report.node.gpus[0].health = GpuHealth::lost;
  after_report.see({});
  for (World& changed : {std::ref(after_submit), std::ref(after_report)}) {
    const auto admission = admit(changed.state, changed.cluster, changed.policy, plan, changed.now);
    EXPECT_THAT(admission.facts, IsEmpty());
    EXPECT_THAT(admission.dropped, HasSubstr("older state"));
  }
  EXPECT_EQ(admit(w.state, w.cluster, w.policy, plan, w.now).facts.size(), 2u);
}

TEST(Admit, DropsAPlanThatGivesADeviceTwiceAsAWhole) {
  World w = two_gpus();
  w.submitted(whole_gpus(1));
  w.submitted(whole_gpus(1));
  auto plan = schedule::decide(snapshot(w.state, w.cluster, w.policy, w.now), w.policy, w.now);
  ASSERT_EQ(plan.placements.size(), 2u);
  plan.placements[1].grant = plan.placements[0].grant;
  const auto admission = admit(w.state, w.cluster, w.policy, plan, w.now);
  EXPECT_THAT(admission.facts, IsEmpty());
  EXPECT_THAT(admission.dropped, HasSubstr("is granted to attempt 1.1 and to attempt 2.1"));
}

TEST(Admit, DropsAPlanForAJobThatIsNotWaiting) {
  World w = two_gpus();
  const JobId id = w.submitted(whole_gpus(1));
  auto plan = schedule::decide(snapshot(w.state, w.cluster, w.policy, w.now), w.policy, w.now);
  w.pass();
  plan.version = w.state.ledger_version + w.cluster.version;
  plan.placements[0].job = id;
  EXPECT_THAT(admit(w.state, w.cluster, w.policy, plan, w.now).facts, IsEmpty());
}

TEST(Admit, GenerationsAreNeverUsedTwice) {
  World w = two_gpus();
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 4; ++i) {
    const JobId id = w.submitted(whole_gpus(1));
    w.start(id);
    EXPECT_TRUE(seen.insert(w.attempt(id).generation).second);
    w.see({w.seen_exited(id, exit_code(0))});
  }
}

TEST(FairShare, WhatWasUsedIsChargedAtTheRelease) {
  World w = two_gpus();
  const JobId id = w.submitted(whole_gpus(2));
  w.start(id);
  w.later(seconds(100));
  w.see({w.seen_exited(id, exit_code(0))});
  EXPECT_EQ(w.state.usage.at("alice").amount, 200'000);
  EXPECT_EQ(snapshot(w.state, w.cluster, w.policy, w.now + w.policy.fair_share_half_life)
                .usage.at("alice"),
            100'000);
}

TEST(Views, ShowLabelsRequestAndNamesButNoValuesOfTheEnvironment) {
  World w = two_gpus();
  JobSpec spec = share_of(gibibytes(12));
  spec.env = {{"HF_TOKEN", "hf_secret", true}};
  const JobId id = w.submitted(spec);
  w.start(id);
  const JobView view = w.view(id);
  ASSERT_THAT(view.devices, SizeIs(1));
  EXPECT_EQ(view.devices[0].label, "gpu0 12.0 GiB");
  EXPECT_EQ(view.request, "12.0 GiB on one device");
  EXPECT_THAT(view.environment_names, ::testing::ElementsAre("HF_TOKEN"));
}

}  // namespace
}  // namespace takt::control
