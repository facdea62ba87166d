// What people ask becomes facts, or a refusal with a sentence.
#include <gmock/gmock.h>

#include "world.h"

namespace takt::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

World eight_gpus() { return World(node_of("n1", 8, h100())); }

TEST(Submit, IsAcceptedWithEverythingResolved) {
  World w = eight_gpus();
  JobSpec spec = asked(whole_gpus(2));
  spec.name.clear();
  spec.argv = {"/opt/bin/torchrun", "train.py"};
  spec.command_text = "/opt/bin/torchrun train.py";
  const auto accepted = w.submit(spec);
  ASSERT_TRUE(accepted) << accepted.error().message;
  ASSERT_THAT(accepted->jobs, ElementsAre(JobId(1)));
  const auto facts = only<JobAccepted>(w.journal);
  ASSERT_THAT(facts, SizeIs(1));
  EXPECT_EQ(facts[0].submission->spec.name, "torchrun");
  EXPECT_EQ(facts[0].submission->spec.tier, Tier::batch);
  EXPECT_EQ(facts[0].submission->spec.isolation, Isolation::strict);
  EXPECT_EQ(facts[0].submission->submitter, alice());
  EXPECT_EQ(facts[0].submission->at, t0);
  EXPECT_EQ(facts[0].submission->policy_revision, w.policy.revision);
  EXPECT_EQ(facts[0].submission->group, std::nullopt);
  EXPECT_EQ(w.job(JobId(1)).state(), JobState::waiting);
}

TEST(Submit, IsolationFollowsTheTierUnlessItIsAsked) {
  const struct {
    Tier tier;
    std::optional<Isolation> asked;
    Isolation expected;
  } rows[] = {
      {Tier::serving, std::nullopt, Isolation::strict},
      {Tier::training, std::nullopt, Isolation::strict},
      {Tier::batch, std::nullopt, Isolation::watched},
      {Tier::experimental, std::nullopt, Isolation::watched},
      {Tier::experimental, Isolation::strict, Isolation::strict},
  };
  for (const auto& row : rows) {
    World w = eight_gpus();
    JobSpec spec = share_of(gibibytes(10), row.tier);
    spec.isolation = row.asked;
    const JobId id = w.submitted(spec);
    EXPECT_EQ(w.job(id).spec().isolation, row.expected) << to_string(row.tier);
  }
}

TEST(Submit, TheTierThatIsNotAskedComesFromTheCommand) {
  World w = eight_gpus();
  const JobId id = w.submit(asked(job()), alice(), Tier::experimental)->jobs.front();
  EXPECT_EQ(w.job(id).spec().tier, Tier::experimental);
}

TEST(Submit, LargerThanTheClusterIsRefusedWithBothNumbers) {  // B8 74
  World w = eight_gpus();
  const auto refused = w.submit(whole_gpus(9));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::conflict);
  EXPECT_THAT(refused.error().message, HasSubstr("needs 9 GPUs"));
  EXPECT_THAT(refused.error().message, HasSubstr("8 free of 8"));
  EXPECT_THAT(refused.error().message, HasSubstr("--wait-for-capacity"));
  EXPECT_THAT(w.journal, IsEmpty());
}

TEST(Submit, LargerThanTheClusterWaitsWhereThatIsAsked) {
  World w = eight_gpus();
  JobSpec spec = whole_gpus(9);
  spec.wait_for_capacity = true;
  const JobId id = w.submitted(spec);
  EXPECT_THAT(w.pass().facts, IsEmpty());
  EXPECT_EQ(w.job(id).state(), JobState::waiting);
}

TEST(Submit, AnUnknownTypeIsRefusedWithTheTypesThatAreHere) {
  World w = eight_gpus();
  const auto refused = w.submit(of_type(whole_gpus(1), {"h20"}));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              HasSubstr("no node has type h20 (types here: NVIDIA H100 80GB HBM3 x8)"));
}

TEST(Submit, BeforeAnyNodeHasReportedNothingIsCalledImpossible) {
  State state;
  const auto accepted =
      handle(state, Cluster{}, Policy{}, Submit{whole_gpus(99), alice(), Tier::batch, ""}, t0);
  EXPECT_TRUE(accepted);
}

TEST(Submit, ABrokenSpecIsRefusedAndMakesNoFact) {
  World w = eight_gpus();
  JobSpec spec = whole_gpus(1);
  spec.argv.clear();
  const auto refused = w.submit(spec);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::invalid);
  EXPECT_THAT(w.journal, IsEmpty());
}

TEST(Submit, AFullQueueRefusesUntilSomeHaveEnded) {
  World w = eight_gpus();
  w.policy.limits.pending_jobs_max = 2;
  ASSERT_TRUE(w.submit(whole_gpus(1)));
  ASSERT_TRUE(w.submit(whole_gpus(1)));
  const auto refused = w.submit(whole_gpus(1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::unavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("limits.pending_jobs_max"));
}

TEST(Submit, AJobWithoutAGpuIsAcceptedWithAWarning) {
  World w = eight_gpus();
  const auto accepted = w.submit(job());
  ASSERT_TRUE(accepted);
  EXPECT_THAT(accepted->warnings, ::testing::Contains(HasSubstr("no GPU was asked")));
}

TEST(Arrays, BecomeOneJobForEveryCombination) {
  World w = eight_gpus();
  JobSpec spec = whole_gpus(1);
  spec.array = {{"lr", {"1e-4", "3e-4"}}, {"seed", {"0", "1", "2"}}};
  const auto accepted = w.submit(spec);
  ASSERT_TRUE(accepted);
  ASSERT_THAT(accepted->jobs, SizeIs(6));
  std::set<std::pair<std::string, std::string>> combinations;
  int index = 0;
  for (const JobId id : accepted->jobs) {
    const Job& task = w.job(id);
    combinations.insert({task.parameters.at("lr"), task.parameters.at("seed")});
    EXPECT_EQ(task.submission->group, accepted->jobs.front());
    EXPECT_EQ(task.group_index, index++);
    EXPECT_EQ(task.submission->group_size, 6);
    EXPECT_EQ(task.submission, w.job(JobId(1)).submission) << "kept once";
  }
  EXPECT_THAT(only<JobAccepted>(w.journal), SizeIs(1)) << "one record, however many tasks";
  EXPECT_THAT(combinations, SizeIs(6));
}

TEST(Arrays, OfTooManyTasksAreRefusedAsAWhole) {
  World w = eight_gpus();
  w.policy.limits.array_tasks_max = 5;
  JobSpec spec = whole_gpus(1);
  spec.array = {{"lr", {"1", "2"}}, {"seed", {"0", "1", "2"}}};
  const auto refused = w.submit(spec);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("6"));
  EXPECT_THAT(w.journal, IsEmpty());
}

TEST(Arrays, AreKeptOnceInASnapshotThoughSomeTasksHaveLeft) {
  World w = eight_gpus();
  JobSpec spec = whole_gpus(1);
  spec.array = {{"seed", {"0", "1", "2", "3"}}};
  w.submit(spec);
  w.cancel(JobId(2));
  w.apply(handle(w.state, w.cluster, w.policy, Archive{{JobId(2)}}, w.now)->facts);
  EXPECT_EQ(w.state.jobs.count(JobId(2)), 0u);
  const auto facts = facts_of(w.state);
  const auto runs = only<JobAccepted>(facts);
  ASSERT_THAT(runs, SizeIs(2)) << "task 1, and tasks 3 to 4";
  EXPECT_EQ(runs[1].count, 2);
  State again;
  for (const Fact& f : facts) fold(again, f, hours(1));
  EXPECT_EQ(again.jobs.at(JobId(3)).submission, again.jobs.at(JobId(4)).submission);
  EXPECT_EQ(again.jobs.at(JobId(4)).parameters.at("seed"), "3");
  EXPECT_EQ(text_of(again), text_of(w.state));
  EXPECT_EQ(fingerprint(again), fingerprint(w.state));
}

TEST(Submit, EqualEnvironmentsAreKeptOnceAndLeaveWithTheLastJob) {
  World w = eight_gpus();
  JobSpec spec = whole_gpus(1);
  spec.env = {{"A", "1", false}, {"B", "2", true}};
  const JobId first = w.submitted(spec);
  const JobId second = w.submitted(spec);
  EXPECT_THAT(only<EnvironmentKept>(w.journal), SizeIs(1));
  EXPECT_EQ(w.state.environment_of(w.job(second)), spec.env);
  spec.env[0].value = "another";
  const JobId third = w.submitted(spec);
  EXPECT_EQ(w.state.environment_of(w.job(third)), spec.env);
  EXPECT_THAT(w.state.environments, SizeIs(2));
  for (const JobId id : {first, second}) w.cancel(id);
  w.apply(handle(w.state, w.cluster, w.policy, Archive{{first, second}}, w.now)->facts);
  EXPECT_THAT(w.state.environments, SizeIs(1));
  EXPECT_EQ(w.state.environment_of(w.job(third)), spec.env);
}

TEST(Submit, TheSameRequestAgainMakesNoSecondJob) {
  World w = eight_gpus();
  JobSpec spec = whole_gpus(1);
  spec.array = {{"seed", {"0", "1"}}};
  const Submit command{spec, alice(), Tier::batch, "r-1"};
  const auto first = handle(w.state, w.cluster, w.policy, command, w.now);
  ASSERT_TRUE(first);
  w.apply(first->facts);
  const auto again = handle(w.state, w.cluster, w.policy, command, w.now);
  ASSERT_TRUE(again);
  EXPECT_THAT(again->facts, IsEmpty());
  EXPECT_EQ(again->jobs, first->jobs);
  Submit others = command;
  others.submitter.user = "bob";
  EXPECT_THAT(handle(w.state, w.cluster, w.policy, others, w.now)->jobs,
              ElementsAre(JobId(3), JobId(4)))
      << "ids are each user's own";
}

TEST(Submit, OneUserCannotFillTheQueue) {
  World w = eight_gpus();
  w.policy.limits.pending_jobs_per_user_max = 2;
  w.submitted(whole_gpus(1));
  w.submitted(whole_gpus(1));
  const auto refused = w.submit(whole_gpus(1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::unavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("pending_jobs_per_user_max"));
  EXPECT_TRUE(w.submit(whole_gpus(1), bob()));
}

TEST(Hold, KeepsAWaitingJobFromStartingUntilItIsReleased) {
  World w = eight_gpus();
  const JobId id = w.submitted(whole_gpus(1));
  w.apply(handle(w.state, w.cluster, w.policy, HoldJob{id, alice(), false}, w.now)->facts);
  w.pass();
  EXPECT_EQ(w.job(id).state(), JobState::waiting);
  EXPECT_EQ(w.view(id).waiting_for.at(0).kind, BlockerKind::held);
  EXPECT_FALSE(handle(w.state, w.cluster, w.policy, ReleaseJob{id, bob(), false}, w.now))
      << "somebody else's";
  w.apply(handle(w.state, w.cluster, w.policy, ReleaseJob{id, alice(), false}, w.now)->facts);
  w.pass();
  EXPECT_EQ(w.job(id).state(), JobState::starting);
}

TEST(Replicas, AreAGroupOfEqualJobs) {
  World w = eight_gpus();
  JobSpec spec = whole_gpus(1, Tier::serving);
  spec.replicas = 3;
  const auto accepted = w.submit(spec);
  ASSERT_TRUE(accepted) << accepted.error().message;
  EXPECT_THAT(accepted->jobs, SizeIs(3));
  EXPECT_EQ(w.job(JobId(3)).submission->group, JobId(1));
  EXPECT_THAT(w.job(JobId(3)).parameters, IsEmpty());
}

TEST(Cancel, OfAWaitingJobEndsItAtOnce) {
  World w = eight_gpus();
  const JobId id = w.submitted(whole_gpus(1));
  ASSERT_TRUE(w.cancel(id));
  EXPECT_EQ(w.job(id).state(), JobState::cancelled);
  EXPECT_EQ(w.view(id).reason, "cancelled by alice");
  EXPECT_THAT(w.pass().facts, IsEmpty());
}

TEST(Cancel, OfARunningJobAsksForItsStopAndItEndsCancelledWhateverItsExitCode) {
  for (const ExitStatus& exit : {exit_code(0), exit_code(3), killed(15), killed(9)}) {
    World w = eight_gpus();
    const JobId id = w.submitted(whole_gpus(1));
    w.start(id);
    ASSERT_TRUE(w.cancel(id));
    EXPECT_EQ(w.job(id).state(), JobState::stopping);
    const auto stops = only<Stop>(w.effects({w.seen_running(id)}));
    ASSERT_THAT(stops, SizeIs(1));
    EXPECT_EQ(stops[0].grace, w.policy.stop_grace);
    w.see({w.seen_exited(id, exit)});
    EXPECT_EQ(w.job(id).state(), JobState::cancelled);
    EXPECT_FALSE(w.job(id).holding());
  }
}

TEST(Cancel, TwiceIsFineAndMakesNoSecondFact) {
  World w = eight_gpus();
  const JobId id = w.submitted(whole_gpus(1));
  w.start(id);
  ASSERT_TRUE(w.cancel(id));
  const auto again = w.cancel(id);
  ASSERT_TRUE(again);
  EXPECT_THAT(again->facts, IsEmpty());
}

TEST(Cancel, OfSomebodyElsesJobIsForbiddenButToAdmins) {
  World w = eight_gpus();
  const JobId id = w.submitted(whole_gpus(1), alice());
  const auto refused = w.cancel(id, bob());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::forbidden);
  EXPECT_THAT(refused.error().message, HasSubstr("belongs to alice"));
  EXPECT_EQ(w.job(id).state(), JobState::waiting);
  ASSERT_TRUE(w.cancel(id, bob(), true));
  EXPECT_EQ(w.view(id).reason, "cancelled by bob");
}

TEST(Cancel, OfAnUnknownOrEndedJobSaysWhich) {
  World w = eight_gpus();
  EXPECT_EQ(w.cancel(JobId(7)).error().kind, ErrorKind::not_found);
  const JobId id = w.submitted(whole_gpus(1));
  w.cancel(id);
  const auto again = w.cancel(id);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, ErrorKind::conflict);
  EXPECT_THAT(again.error().message, HasSubstr("already ended (cancelled)"));
}

TEST(Cancel, OfAJobThatBacksOffWhileItsLastAttemptIsNotYetGone) {
  World w = eight_gpus();
  JobSpec spec = whole_gpus(1);
  spec.retry = {{RetryCause::failed}, 3};
  const JobId id = w.submitted(spec);
  w.start(id);
  w.see({w.seen_exited(id, exit_code(1), false)});
  EXPECT_EQ(w.job(id).state(), JobState::waiting);
  ASSERT_TRUE(w.cancel(id));
  EXPECT_EQ(w.job(id).state(), JobState::cancelled);
  EXPECT_TRUE(w.job(id).holding()) << "its devices are not yet proven free";
  w.see({w.seen_exited(id, exit_code(1), true)});
  EXPECT_FALSE(w.job(id).holding());
  EXPECT_THAT(w.state.waiting, IsEmpty());
}

TEST(CancelAll, EndsTheCallersJobsAndNobodyElses) {
  World w = eight_gpus();
  const JobId running_one = w.submitted(whole_gpus(1), alice());
  w.start(running_one);
  const JobId waiting_one = w.submitted(whole_gpus(1), alice());
  const JobId bobs = w.submitted(whole_gpus(1), bob());
  const auto accepted = handle(w.state, w.cluster, w.policy, CancelAll{alice()}, w.now);
  ASSERT_TRUE(accepted);
  w.apply(accepted->facts);
  EXPECT_THAT(accepted->jobs, ElementsAre(running_one, waiting_one));
  EXPECT_EQ(w.job(running_one).state(), JobState::stopping);
  EXPECT_EQ(w.job(waiting_one).state(), JobState::cancelled);
  EXPECT_EQ(w.job(bobs).state(), JobState::waiting);
}

}  // namespace
}  // namespace takt::control
