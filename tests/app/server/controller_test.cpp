// The live loop: what is acknowledged is on disk, what is shown is acknowledged.
#include "app/server/controller.h"

#include <future>
#include <random>
#include <set>

#include "fixture.h"

namespace takt::server {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const Error kDiskFull{ErrorKind::unavailable, "the disk is full: free some space"};

// Accepted although no node has told what it has.
JobSpec waiting_for_a_gpu() {
  JobSpec spec = whole_gpus(1);
  spec.wait_for_capacity = true;
  return spec;
}

TEST(Acknowledgement, ComesOnlyAfterTheJournalHasIt) {
  store::MemoryJournal memory;
  GateJournal gate(memory);
  Life life(gate);
  life.begin();
  gate.close();
  auto reply = std::async(std::launch::async, [&] { return life.submit(whole_gpus(1)); });
  ASSERT_TRUE(eventually([&] { return gate.somebody_waits(); }));
  EXPECT_EQ(reply.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  EXPECT_THAT(life.published().jobs, IsEmpty()) << "views are never ahead of the journal";
  EXPECT_THAT(memory.records, IsEmpty());
  gate.open();
  ASSERT_TRUE(reply.get());
  EXPECT_THAT(life.published().jobs, SizeIs(1));
  EXPECT_THAT(memory.records, SizeIs(1));
}

TEST(Acknowledgement, EffectsGoOutOnlyAfterTheirGrantIsOnDisk) {
  store::MemoryJournal memory;
  Life life(memory);
  std::atomic<int> too_early{0};
  std::atomic<int> starts{0};
  life.on_effects = [&](const std::vector<control::Effect>& effects) {
    const control::State on_disk = replayed(memory);  // the loop's own thread
    for (const control::Effect& e : effects)
      if (const auto* start = std::get_if<control::Start>(&e)) {
        ++starts;
        const auto it = on_disk.jobs.find(start->order.attempt.job);
        if (it == on_disk.jobs.end() || !it->second.attempt) ++too_early;
      }
  };
  life.begin();
  life.hear(node_of("n1", 4, h100()));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(life.submit(whole_gpus(1)));
  ASSERT_TRUE(eventually([&] { return starts >= 4; }));
  EXPECT_EQ(too_early, 0);
}

TEST(FailingDisk, RefusesWithASentenceRollsBackAndGoesOnOnceItIsMended) {
  store::MemoryJournal memory;
  store::FailingJournal failing(memory);
  Life life(failing);
  life.begin();
  life.hear(node_of("n1", 1, h100()));
  ASSERT_TRUE(life.submit(named(whole_gpus(1), "before")));
  ASSERT_TRUE(eventually([&] { return memory.batches.size() >= 1; }));
  failing.fail_calls(1, 1, kDiskFull);
  const auto refused = life.submit(named(whole_gpus(1), "during"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::unavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("the disk is full: free some space"));
  EXPECT_THAT(life.controller->problem(), HasSubstr("nothing can be acknowledged"));
  EXPECT_THAT(life.published().jobs, SizeIs(1));

  const auto later = life.submit(named(whole_gpus(1), "after"));
  ASSERT_TRUE(later) << later.error().message;
  EXPECT_EQ(life.controller->problem(), "");
  life.controller->stop();
  std::set<std::string> names;
  for (const auto& [id, job] : replayed(memory).jobs) names.insert(job.spec().name);
  EXPECT_EQ(names, (std::set<std::string>{"before", "after"}));
}

TEST(FailingDisk, KeepsItsOwnReasonForARefusedCommandInTheSameBatch) {
  store::MemoryJournal memory;
  store::FailingJournal failing(memory);
  GateJournal gate(failing);
  Life life(gate);
  life.begin();
  gate.close();
  auto first = std::async(std::launch::async, [&] { return life.submit(whole_gpus(1)); });
  ASSERT_TRUE(eventually([&] { return gate.somebody_waits(); }));
  auto good = std::async(std::launch::async, [&] { return life.submit(whole_gpus(1)); });
  auto bad = std::async(std::launch::async, [&] {
    return life.controller->cancel(control::Cancel{JobId(99), alice(), false});
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // both are queued behind the first
  failing.fail_calls(2, 1, kDiskFull);
  gate.open();
  ASSERT_TRUE(first.get());
  EXPECT_EQ(bad.get().error().kind, ErrorKind::not_found);
  (void)good.get();  // refused, or acknowledged where it came in a batch of its own
}

TEST(FailingDisk, AtRandomLosesNothingThatWasAcknowledgedAndKeepsNothingThatWasRefused) {
  store::MemoryJournal memory;
  store::FailingJournal failing(memory);
  Life life(failing);
  life.begin();
  const Node node = node_of("n1", 2, h100());
  life.hear(node);
  std::mt19937_64 random(7);
  std::set<std::string> acknowledged;
  int refused = 0;
  for (int i = 0; i < 60; ++i) {
    const std::string name = "job" + std::to_string(i);
    if (random() % 8 == 0) failing.fail_calls(1, 1, kDiskFull);
    if (life.submit(named(whole_gpus(1), name)))
      acknowledged.insert(name);
    else
      ++refused;
  }
  EXPECT_GT(refused, 0);
  life.controller->stop();
  std::set<std::string> kept;
  for (const auto& [id, job] : replayed(memory).jobs) kept.insert(job.spec().name);
  EXPECT_EQ(kept, acknowledged);
  EXPECT_EQ(text_of(replayed(memory)), text_of(life.published()));
}

TEST(Concurrency, SixteenTimesFiftySubmissionsAreAllAcknowledgedWithNumbersOfTheirOwn) {
  store::MemoryJournal memory;
  Life life(memory);
  life.begin();
  life.hear(node_of("n1", 8, h100()));
  std::vector<std::future<std::vector<JobId>>> threads;
  for (int t = 0; t < 16; ++t)
    threads.push_back(std::async(std::launch::async, [&] {
      std::vector<JobId> mine;
      for (int i = 0; i < 50; ++i)
        if (auto id = life.submit(whole_gpus(1))) mine.push_back(*id);
      return mine;
    }));
  std::set<JobId> all;
  for (auto& thread : threads)
    for (const JobId id : thread.get()) EXPECT_TRUE(all.insert(id).second) << to_string(id);
  EXPECT_THAT(all, SizeIs(800));
  life.controller->stop();
  EXPECT_THAT(replayed(memory).jobs, SizeIs(800));
}

TEST(Concurrency, ManySubmittersShareSlowSyncs) {
  store::MemoryJournal memory;
  store::SlowJournal slow(memory, std::chrono::milliseconds(10));
  Life life(slow);
  life.begin();
  std::vector<std::future<int>> threads;
  for (int t = 0; t < 40; ++t)
    threads.push_back(std::async(std::launch::async, [&] {
      int refused = 0;
      for (int i = 0; i < 10; ++i) refused += life.submit(waiting_for_a_gpu()) ? 0 : 1;
      return refused;
    }));
  for (auto& thread : threads) EXPECT_EQ(thread.get(), 0);
  EXPECT_LT(slow.syncs(), 200) << "of 400 submissions";
}

TEST(FailingDisk, SyncsThatFailAfterALongTimeRefuseAllThatWaitedAndTheNextGoThrough) {
  store::MemoryJournal memory;
  store::SlowJournal slow(memory, std::chrono::milliseconds(10));
  Life life(slow);
  life.begin();
  slow.fail_appends(3, kDiskFull);
  int refused = 0;
  ASSERT_TRUE(eventually([&] {
    if (life.submit(waiting_for_a_gpu())) return true;
    ++refused;
    return false;
  }));
  EXPECT_EQ(refused, 3);
  life.controller->stop();
  EXPECT_THAT(replayed(memory).jobs, SizeIs(1));
}

TEST(Concurrency, ReadersSeeWholeStatesWhileTheLoopWorks) {
  store::MemoryJournal memory;
  Life life(memory);
  life.begin();
  life.hear(node_of("n1", 8, h100()));
  std::atomic<bool> done{false};
  std::atomic<int> torn{0};
  std::thread reader([&] {
    while (!done)
      life.controller->read([&](const control::Sight& sight) {
        for (const auto& [id, job] : sight.state.jobs)
          if (sight.state.waiting.count(id) != (job.waiting() ? 1u : 0u)) ++torn;
      });
  });
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(life.submit(whole_gpus(1)));
  done = true;
  reader.join();
  EXPECT_EQ(torn, 0);
}

// Some of everything: done, failed, waiting, running, cancelled.
void busy_day(Life& life, const Node& node) {
  std::map<JobId, AttemptId> ids;
  for (int i = 0; i < 6; ++i) {
    JobSpec spec = whole_gpus(1);
    spec.retry = {{RetryCause::failed}, 1};
    const auto id = life.submit(spec, i % 2 == 0 ? alice() : bob());
    ASSERT_TRUE(id) << id.error().message;
  }
  ASSERT_TRUE(eventually([&] { return life.published().holding.size() == 4; }));
  const control::State state = life.published();
  const auto seen = [&](std::uint64_t id) {
    const control::Attempt& a = *state.jobs.at(JobId(id)).attempt;
    return running(a.id, a.generation, t0);
  };
  std::vector<std::uint64_t> holding;
  for (const JobId id : state.holding) holding.push_back(id.value);
  const auto end = [&](std::size_t i, int code) {
    const control::AttemptSeen s = seen(holding[i]);
    return exited(s.attempt, s.generation, t0, at(5), exit_code(code));
  };
  life.hear(node, {seen(holding[0]), seen(holding[1]), seen(holding[2])});
  life.hear(node, {end(0, 0), end(1, 1), seen(holding[2])});
  ASSERT_TRUE(life.controller->cancel(control::Cancel{JobId(holding[2]), alice(), true}));
}

TEST(Recovery, FromTheJournalGivesTheStateThatWasThere) {
  store::MemoryJournal memory;
  std::string before;
  {
    Life life(memory);
    life.begin();
    const Node node = node_of("n1", 4, h100());
    life.hear(node);
    busy_day(life, node);
    before = text_of(life.published());
    life.controller->stop();
    memory.snapshots.clear();  // as after kill -9: only the journal is there
  }
  Life again(memory);
  again.begin();
  EXPECT_EQ(text_of(again.published()), before);
}

TEST(Recovery, FromASnapshotAndWhatFollowedGivesTheStateThatWasThere) {
  store::MemoryJournal memory;
  std::string before;
  {
    Life life(memory);
    life.begin();
    const Node node = node_of("n1", 4, h100());
    life.hear(node);
    busy_day(life, node);
  }  // keeps a snapshot
  ASSERT_THAT(memory.snapshots, SizeIs(1));
  {
    Life life(memory);
    life.begin();
    ASSERT_TRUE(life.submit(named(whole_gpus(2), "later")));
    before = text_of(life.published());
    life.controller->stop();
    memory.snapshots.pop_back();
  }
  Life again(memory);
  again.begin();
  EXPECT_EQ(text_of(again.published()), before);
}

TEST(Recovery, NumbersGoOnWhereTheyStopped) {
  store::MemoryJournal memory;
  {
    Life life(memory);
    life.begin();
    ASSERT_EQ(life.submit(whole_gpus(1)).value(), JobId(1));
  }
  Life again(memory);
  again.begin();
  EXPECT_EQ(again.submit(whole_gpus(1)).value(), JobId(2));
}

TEST(Recovery, NoNumberThatMayHaveBeenForgottenIsGivenAgain) {
  store::MemoryJournal memory;
  {
    Life life(memory);
    life.begin();
    ASSERT_EQ(life.submit(whole_gpus(1)), JobId(1));
  }
  memory.forgot = true;
  {
    Life life(memory);
    life.begin();
    EXPECT_EQ(life.submit(whole_gpus(1)), JobId(1'000'002));
    EXPECT_GT(life.published().next_generation, 1'000'000u);
  }
  Life life(memory);
  life.begin();
  EXPECT_EQ(life.submit(whole_gpus(1)), JobId(1'000'003)) << "it skips once";
}

TEST(Recovery, WhatRunsIsNeitherKilledNorStartedAgain) {
  store::MemoryJournal memory;
  const Node node = node_of("n1", 1, h100());
  control::AttemptSeen seen;
  {
    Life life(memory);
    life.begin();
    life.hear(node);
    const JobId id = life.submit(whole_gpus(1)).value();
    ASSERT_TRUE(eventually([&] { return life.published().holding.size() == 1; }));
    const control::Attempt a = *life.published().jobs.at(id).attempt;
    seen = running(a.id, a.generation, t0);
    life.hear(node, {seen});
  }
  Life again(memory);
  again.begin();
  again.hear(node, {seen});
  again.hear(node, {seen});
  EXPECT_EQ(again.state_of(JobId(1)), control::JobState::running);
  EXPECT_THAT(again.effects(), IsEmpty());
}

TEST(Recovery, ADamagedRecordIsSaidWithItsNumber) {
  store::MemoryJournal memory;
  {
    Life life(memory);
    life.begin();
    ASSERT_TRUE(life.submit(whole_gpus(1)));
    ASSERT_TRUE(life.submit(whole_gpus(1)));
    life.controller->stop();
  }
  memory.snapshots.clear();
  memory.records[1].body = "{\"half\": ";
  Life again(memory);
  const auto failed = again.controller->recover();
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("record 2 of the journal"));
}

TEST(Recovery, ASnapshotOfANewerTaktIsRefusedWithASentence) {
  store::MemoryJournal memory;
  {
    Life life(memory);
    life.begin();
    ASSERT_TRUE(life.submit(whole_gpus(1)));
  }
  memory.snapshots.back().version = 99;
  Life again(memory);
  const auto failed = again.controller->recover();
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("version 99, this takt reads version 2"));
}

TEST(Recovery, AJournalThatCannotBeReadIsAnError) {
  store::MemoryJournal memory;
  store::FailingJournal failing(memory);
  failing.fail_calls(1, 1, {ErrorKind::io, "the disk is broken"});
  Life life(failing);
  EXPECT_THAT(life.controller->recover().error().message, HasSubstr("the disk is broken"));
}

TEST(Snapshots, ThatCannotBeKeptAreANoteAndNoMore) {
  store::MemoryJournal memory;
  store::FailingJournal failing(memory);
  Life life(failing);
  life.begin();
  ASSERT_TRUE(life.submit(whole_gpus(1)));
  failing.fail_calls(2, 1, kDiskFull);  // latest_snapshot is asked first
  life.controller->stop();
  EXPECT_THAT(life.notes(), Contains(HasSubstr("no snapshot could be kept")));
}

TEST(DryRun, AnswersWithoutChangingAnything) {
  store::MemoryJournal memory;
  Life life(memory);
  life.begin();
  life.hear(node_of("n1", 2, h100()));
  const std::string before = text_of(life.published());
  const auto fits = life.controller->try_out({whole_gpus(2), alice(), Tier::batch});
  ASSERT_TRUE(fits);
  EXPECT_TRUE(fits->would_start);
  EXPECT_THAT(fits->decision, Contains(HasSubstr("2 whole GPUs of one model")));
  JobSpec array = whole_gpus(1);
  array.array = {{"seed", {"0", "1", "2"}}};
  EXPECT_EQ(life.controller->try_out({array, alice(), Tier::batch})->count, 3);
  EXPECT_EQ(life.controller->try_out({whole_gpus(3), alice(), Tier::batch}).error().kind,
            ErrorKind::conflict);
  EXPECT_EQ(text_of(life.published()), before);
  EXPECT_THAT(memory.records, IsEmpty());

  ASSERT_TRUE(life.submit(whole_gpus(2)));
  ASSERT_TRUE(eventually([&] { return life.published().holding.size() == 1; }));
  const auto waits = life.controller->try_out({whole_gpus(1), bob(), Tier::batch});
  ASSERT_TRUE(waits);
  EXPECT_FALSE(waits->would_start);
  EXPECT_THAT(waits->waiting_for, SizeIs(1));
  EXPECT_THAT(life.published().jobs, SizeIs(1));
}

TEST(Waiting, WakesWhenItHolds) {
  store::MemoryJournal memory;
  Life life(memory);
  life.begin();
  auto waiter = std::async(std::launch::async, [&] {
    return life.controller->wait([](const control::Sight& s) { return !s.state.jobs.empty(); },
                                 seconds(20), {});
  });
  ASSERT_TRUE(life.submit(whole_gpus(1)));
  EXPECT_TRUE(waiter.get());
}

TEST(Waiting, EndsAtItsTimeAndWhenTheServerStops) {
  store::MemoryJournal memory;
  Life life(memory);
  life.begin();
  const auto never = [](const control::Sight&) { return false; };
  EXPECT_FALSE(life.controller->wait(never, milliseconds(20), {}));
  std::stop_source source;
  auto waiter = std::async(std::launch::async, [&] {
    return life.controller->wait(never, seconds(600), source.get_token());
  });
  source.request_stop();
  EXPECT_FALSE(waiter.get());
}

TEST(Stopping, RefusesWhatComesAfterAndKeepsASnapshot) {
  store::MemoryJournal memory;
  Life life(memory);
  life.begin();
  ASSERT_TRUE(life.submit(whole_gpus(1)));
  life.controller->stop();
  const auto refused = life.submit(whole_gpus(1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::unavailable);
  ASSERT_THAT(memory.snapshots, SizeIs(1));
  EXPECT_EQ(memory.snapshots[0].sequence, memory.last_sequence());
  life.controller->stop();
}

TEST(Time, AHardStopComesWithoutAnybodyAsking) {
  store::MemoryJournal memory;
  Life life(memory);
  life.begin();
  const Node node = node_of("n1", 1, h100());
  life.hear(node);
  JobSpec spec = whole_gpus(1);
  spec.kill_after = seconds(60);
  const JobId id = life.submit(spec).value();
  ASSERT_TRUE(eventually([&] { return life.published().holding.size() == 1; }));
  const control::Attempt a = *life.published().jobs.at(id).attempt;
  life.hear(node, {running(a.id, a.generation, t0)});
  life.clock_us = at(55).us;
  life.hear(node, {running(a.id, a.generation, t0)});  // it is heard of
  ASSERT_TRUE(eventually([&] { return life.state_of(id) == control::JobState::running; }));
  life.clock_us = at(61).us;
  EXPECT_TRUE(eventually([&] { return life.state_of(id) == control::JobState::stopping; }));
  EXPECT_TRUE(eventually([&] {
    const auto effects = life.effects();
    return std::any_of(effects.begin(), effects.end(), [](const control::Effect& e) {
      return std::holds_alternative<control::Stop>(e);
    });
  }));
}

TEST(Time, ARetryThatIsDueStartsWithoutAnybodyAsking) {
  store::MemoryJournal memory;
  Life life(memory);
  life.begin();
  const Node node = node_of("n1", 1, h100());
  life.hear(node);
  JobSpec spec = whole_gpus(1);
  spec.retry = {{RetryCause::failed}, 1};
  const JobId id = life.submit(spec).value();
  ASSERT_TRUE(eventually([&] { return life.published().holding.size() == 1; }));
  const control::Attempt a = *life.published().jobs.at(id).attempt;
  life.hear(node, {exited(a.id, a.generation, t0, at(1), exit_code(1))});
  EXPECT_EQ(life.state_of(id), control::JobState::waiting);
  life.clock_us = at(10).us;
  EXPECT_TRUE(eventually([&] { return life.state_of(id) == control::JobState::starting; }));
  EXPECT_EQ(life.published().jobs.at(id).attempts, 2u);
}

TEST(Time, ASilentNodeIsShownAsSuch) {
  store::MemoryJournal memory;
  Life life(memory);
  life.begin();
  life.hear(node_of("n1", 1, h100()));
  life.clock_us = at(3600).us;
  EXPECT_TRUE(life.controller->wait(
      [](const control::Sight& s) { return !s.cluster.nodes.begin()->second.reachable(); },
      seconds(20), {}));
}

}  // namespace
}  // namespace takt::server
