// Under an engine that chooses devices by itself and forgets what has ended, as Slurm does.
#include <gmock/gmock.h>

#include "world.h"

namespace takt::control {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

World slurm() {
  Node node = node_of("slurm", 2, a100());
  node.boot_id = "";
  World w(std::move(node));
  w.cluster.engine.name = "slurm";
  w.cluster.engine.placement = Placement::engine;
  w.cluster.engine.remembers = minutes(5);
  w.cluster.engine.absent_grace = minutes(1);
  return w;
}

AttemptSeen queued(const World& w, JobId id) {
  AttemptSeen seen;
  seen.attempt = w.attempt(id).id;
  seen.generation = w.attempt(id).generation;
  seen.phase = AttemptPhase::queued;
  return seen;
}

TEST(EnginePlacement, AJobIsHandedOverWaitsThereIsPlacedRunsAndEnds) {
  World w = slurm();
  JobSpec spec = whole_gpus(1);
  spec.gpus.types = {"a100"};
  const JobId id = w.submitted(spec);
  w.pass();
  EXPECT_EQ(w.job(id).state(), JobState::starting);
  EXPECT_THAT(w.attempt(id).grant.devices, IsEmpty());
  EXPECT_THAT(w.view(id).decision.back(), HasSubstr("handed to slurm"));
  const auto starts = only<Start>(w.effects());
  ASSERT_THAT(starts, SizeIs(1));
  EXPECT_EQ(starts[0].order.gpus, spec.gpus);
  for (const EnvironmentVariable& e : starts[0].order.env)
    EXPECT_NE(e.name, "CUDA_VISIBLE_DEVICES") << "that is the engine's to say";
  EXPECT_THAT(w.see({queued(w, id)}), IsEmpty());
  EXPECT_THAT(only<Start>(w.effects({queued(w, id)})), IsEmpty());
  AttemptSeen seen = w.seen_running(id);
  seen.placed = whole_grant(w.node, {1});
  w.see({seen});
  EXPECT_EQ(w.attempt(id).grant.devices[0].gpu, w.node.gpus[1].uuid);
  EXPECT_EQ(w.job(id).state(), JobState::running);
  w.see({w.seen_exited(id, exit_code(0))});
  EXPECT_EQ(w.job(id).state(), JobState::done);
  EXPECT_FALSE(w.job(id).holding());
  EXPECT_GE(w.state.usage.count("alice"), 0u);
}

TEST(EnginePlacement, NoMoreThanMayWaitThereIsHandedOver) {
  World w = slurm();
  w.policy.limits.engine_waiting_max = 3;
  std::vector<JobId> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(w.submitted(whole_gpus(1)));
  w.pass();
  EXPECT_EQ(w.state.holding.size(), 3u);
  EXPECT_EQ(w.view(ids[4]).waiting_for.front().kind, BlockerKind::engine_queue_full);
  std::vector<AttemptSeen> seen = {w.seen_running(ids[0]), queued(w, ids[1]), queued(w, ids[2])};
  w.see(seen);
  w.pass();
  EXPECT_EQ(w.state.holding.size(), 4u) << "one has begun";
}

TEST(EnginePlacement, OneThatWaitsThereIsCancelledThere) {
  World w = slurm();
  const JobId id = w.submitted(whole_gpus(1));
  w.pass();
  w.see({queued(w, id)});
  ASSERT_TRUE(w.cancel(id));
  ASSERT_THAT(only<Stop>(w.effects({queued(w, id)})), SizeIs(1));
  AttemptSeen gone = w.seen_exited(id, lost());
  gone.started.reset();
  w.see({gone});
  EXPECT_EQ(w.job(id).state(), JobState::cancelled);
  EXPECT_FALSE(w.job(id).holding());
}

TEST(EnginePlacement, WhatWasNeverSeenIsHandedOverAgainUntilItMayHaveRunAndBeForgotten) {
  World w = slurm();
  const JobId id = w.submitted(whole_gpus(1));
  w.pass();
  const auto starts = [&] {
    return only<Start>(reconcile(w.state, report_of(w.node, w.now), w.places,
                                 hand_over_from(w.cluster.engine, w.now)));
  };
  w.later(minutes(2));
  EXPECT_THAT(w.see({}), IsEmpty());
  EXPECT_THAT(starts(), SizeIs(1));
  w.later(minutes(2));
  EXPECT_THAT(w.see({}), IsEmpty());
  EXPECT_THAT(starts(), IsEmpty()) << "what shows up now was sent before";
  w.later(minutes(2));
  w.see({});
  EXPECT_EQ(w.job(id).state(), JobState::failed);
  EXPECT_THAT(w.view(id).reason, HasSubstr("no longer has a record"));
  EXPECT_THAT(only<Start>(w.effects()), IsEmpty());
}

TEST(EnginePlacement, AControllerThatBeginsAnewHandsNothingOverTwice) {
  World w = slurm();
  const JobId id = w.submitted(whole_gpus(1));
  w.pass();
  State again;
  for (const Fact& f : w.journal) fold(again, f, w.policy.fair_share_half_life);
  EXPECT_EQ(text_of(again), text_of(w.state));
  w.state = std::move(again);
  const EngineInfo engine = w.cluster.engine;
  w.cluster = Cluster{};
  w.cluster.engine = engine;
  w.see({queued(w, id)});
  w.pass();
  EXPECT_EQ(w.job(id).attempts, 1u);
  EXPECT_THAT(only<Start>(w.effects({queued(w, id)})), IsEmpty());
}

}  // namespace
}  // namespace takt::control
