// What every journal must do: the real one and the fake are held to the same tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <memory>

#include "edge/store/fake_journal.h"
#include "edge/store/fixture.h"
#include "edge/store/journal.h"

namespace takt::store {
namespace {

using ::testing::HasSubstr;

enum class Which { on_disk, in_memory, behind_failing };

class JournalContract : public ::testing::TestWithParam<Which> {
 protected:
  void SetUp() override {
    switch (GetParam()) {
      case Which::on_disk: journal_ = Journal::open(folder_ / "journal.db").value(); break;
      case Which::in_memory: journal_ = std::make_unique<MemoryJournal>(); break;
      case Which::behind_failing: journal_ = std::make_unique<FailingJournal>(below_); break;
    }
  }

  TempFolder folder_;
  MemoryJournal below_;
  std::unique_ptr<JournalPort> journal_;
};

INSTANTIATE_TEST_SUITE_P(All, JournalContract,
                         ::testing::Values(Which::on_disk, Which::in_memory, Which::behind_failing),
                         [](const auto& param) -> std::string {
                           switch (param.param) {
                             case Which::on_disk: return "OnDisk";
                             case Which::in_memory: return "InMemory";
                             case Which::behind_failing: return "BehindFailing";
                           }
                           return "?";
                         });

TEST_P(JournalContract, ANewOneIsEmpty) {
  EXPECT_EQ(journal_->last_sequence(), 0u);
  EXPECT_TRUE(all_after(*journal_, 0).empty());
  EXPECT_EQ(journal_->latest_snapshot().value(), std::nullopt);
}

TEST_P(JournalContract, GivesBackWhatWasAppendedInOrder) {
  ASSERT_TRUE(journal_->append(records_of(1, 3)));
  ASSERT_TRUE(journal_->append(records_of(4, 4)));
  ASSERT_TRUE(journal_->append({}));
  EXPECT_EQ(journal_->last_sequence(), 4u);
  EXPECT_EQ(all_after(*journal_, 0), records_of(1, 4));
  EXPECT_EQ(all_after(*journal_, 2), records_of(3, 4));
  EXPECT_TRUE(all_after(*journal_, 4).empty());
  EXPECT_TRUE(all_after(*journal_, 99).empty());
}

TEST_P(JournalContract, KeepsAnyBytes) {
  Record record = record_of(1);
  record.version = -5;
  record.kind = "";
  record.body = std::string("a\0b\n\xFF", 5) + "ü'\";--";
  ASSERT_TRUE(journal_->append({record}));
  EXPECT_EQ(all_after(*journal_, 0), std::vector<Record>{record});
}

TEST_P(JournalContract, RefusesGapsDuplicatesAndDisorderAndKeepsNothingOfThem) {
  ASSERT_TRUE(journal_->append(records_of(1, 3)));
  const std::vector<std::vector<Record>> wrong = {
      {record_of(3)},
      {record_of(5)},
      {record_of(0)},
      {record_of(4), record_of(6)},
      {record_of(4), record_of(4)},
      {record_of(5), record_of(4)},
  };
  for (const auto& batch : wrong) {
    const auto appended = journal_->append(batch);
    ASSERT_FALSE(appended);
    EXPECT_EQ(appended.error().kind, ErrorKind::invalid);
    EXPECT_THAT(appended.error().message, HasSubstr("follow"));
    EXPECT_EQ(journal_->last_sequence(), 3u);
    EXPECT_EQ(all_after(*journal_, 0), records_of(1, 3));
  }
  EXPECT_TRUE(journal_->append({record_of(4)}));
}

TEST_P(JournalContract, AReplayEndsAtTheReadersError) {
  ASSERT_TRUE(journal_->append(records_of(1, 5)));
  int seen = 0;
  const auto done = journal_->replay(0, [&](const Record& record) -> Result<void> {
    ++seen;
    if (record.sequence == 3) return fail(ErrorKind::conflict, "enough");
    return {};
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "enough");
  EXPECT_EQ(done.error().kind, ErrorKind::conflict);
  EXPECT_EQ(seen, 3);
  EXPECT_EQ(all_after(*journal_, 0).size(), 5u) << "and can be begun again";
}

TEST_P(JournalContract, GivesBackTheNewestSnapshot) {
  ASSERT_TRUE(journal_->append(records_of(1, 5)));
  ASSERT_TRUE(journal_->save_snapshot(0, 1, "zero"));
  ASSERT_TRUE(journal_->save_snapshot(2, 1, "two"));
  ASSERT_TRUE(journal_->save_snapshot(5, 7, std::string("fi\0ve", 5)));
  const Snapshot expected{5, 7, std::string("fi\0ve", 5), ""};
  EXPECT_EQ(journal_->latest_snapshot().value(), expected);
}

TEST_P(JournalContract, RefusesSnapshotsOfTheFutureAndOlderOnes) {
  ASSERT_TRUE(journal_->append(records_of(1, 5)));
  ASSERT_TRUE(journal_->save_snapshot(3, 1, "three"));
  for (const std::uint64_t sequence : {6u, 3u, 2u}) {
    const auto saved = journal_->save_snapshot(sequence, 1, "x");
    ASSERT_FALSE(saved) << sequence;
    EXPECT_EQ(saved.error().kind, ErrorKind::invalid);
  }
  EXPECT_EQ(journal_->latest_snapshot().value()->body, "three");
}

TEST_P(JournalContract, PruningKeepsWhatTheOlderSnapshotNeeds) {
  ASSERT_TRUE(journal_->append(records_of(1, 10)));
  ASSERT_TRUE(journal_->prune(10));
  EXPECT_EQ(all_after(*journal_, 0).size(), 10u) << "without snapshots nothing may go";
  ASSERT_TRUE(journal_->save_snapshot(4, 1, "four"));
  ASSERT_TRUE(journal_->prune(10));
  EXPECT_EQ(all_after(*journal_, 0).size(), 10u) << "with one it could not be fallen back from";
  ASSERT_TRUE(journal_->save_snapshot(8, 1, "eight"));
  ASSERT_TRUE(journal_->prune(2));
  EXPECT_EQ(all_after(*journal_, 2), records_of(3, 10));
  ASSERT_TRUE(journal_->prune(10));
  EXPECT_EQ(all_after(*journal_, 4), records_of(5, 10));
  EXPECT_EQ(journal_->last_sequence(), 10u);
  EXPECT_TRUE(journal_->append({record_of(11)}));
}

TEST_P(JournalContract, AReplayFromBeforeWhatWasPrunedIsAnErrorAndNotAGap) {
  ASSERT_TRUE(journal_->append(records_of(1, 10)));
  ASSERT_TRUE(journal_->save_snapshot(4, 1, "four"));
  ASSERT_TRUE(journal_->save_snapshot(8, 1, "eight"));
  ASSERT_TRUE(journal_->prune(10));
  int seen = 0;
  const auto done = journal_->replay(3, [&](const Record&) {
    ++seen;
    return Result<void>();
  });
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("record 4 is missing"));
  EXPECT_EQ(seen, 0);
}

// The state a reader folds: any order of appends, snapshots, prunes and reopenings must leave it
// able to come back to the same one.
RC_GTEST_PROP(JournalProperty, TheDiskAndTheFakeAgreeOverAnyHistory, ()) {
  // In memory where there is such a folder: thousands of syncs would take a disk long.
  const TempFolder folder(std::filesystem::exists("/dev/shm")
                              ? std::filesystem::path("/dev/shm")
                              : std::filesystem::temp_directory_path());
  auto disk = Journal::open(folder / "journal.db").value();
  MemoryJournal fake;
  const int steps = *rc::gen::inRange(1, 25);
  for (int i = 0; i < steps; ++i) {
    const std::uint64_t last = fake.last_sequence();
    const auto number = *rc::gen::inRange<std::uint64_t>(0, last + 3);
    switch (*rc::gen::inRange(0, 5)) {
      case 0:
      case 1: {
        const auto batch = records_of(last + 1, last + *rc::gen::inRange<std::uint64_t>(0, 6));
        RC_ASSERT(disk->append(batch).has_value());
        RC_ASSERT(fake.append(batch).has_value());
        break;
      }
      case 2: {
        const std::string body = "state " + std::to_string(number);
        RC_ASSERT(disk->save_snapshot(number, 1, body).has_value() ==
                  fake.save_snapshot(number, 1, body).has_value());
        break;
      }
      case 3:
        RC_ASSERT(disk->prune(number).has_value());
        RC_ASSERT(fake.prune(number).has_value());
        break;
      default:
        disk.reset();
        disk = Journal::open(folder / "journal.db").value();
        break;
    }
    RC_ASSERT(disk->last_sequence() == fake.last_sequence());
    const auto snapshot = disk->latest_snapshot().value();
    RC_ASSERT(snapshot == fake.latest_snapshot().value());
    const std::uint64_t from = snapshot ? snapshot->sequence : 0;
    RC_ASSERT(all_after(*disk, from) == all_after(fake, from));
  }
}

TEST(FailingJournal, FailsTheChosenCallsAndTouchesNothing) {
  MemoryJournal below;
  FailingJournal journal(below);
  ASSERT_TRUE(journal.append(records_of(1, 1)));
  journal.fail_calls(2, 2, Error{ErrorKind::unavailable, "the disk is full"});
  EXPECT_TRUE(journal.append(records_of(2, 2)));
  const auto failed = journal.append(records_of(3, 3));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "the disk is full");
  EXPECT_FALSE(journal.save_snapshot(1, 1, "x"));
  EXPECT_TRUE(journal.append(records_of(3, 3)));
  EXPECT_EQ(below.records, records_of(1, 3));
  EXPECT_EQ(below.batches, (std::vector<std::size_t>{1, 1, 1}));
  EXPECT_TRUE(below.snapshots.empty());
  EXPECT_EQ(journal.calls(), 5u);
}

TEST(FailingJournal, CanFailEveryKindOfCall) {
  MemoryJournal below;
  FailingJournal journal(below);
  journal.fail_calls(1, 5, Error{ErrorKind::io, "broken"});
  EXPECT_FALSE(journal.append(records_of(1, 1)));
  EXPECT_FALSE(journal.replay(0, [](const Record&) { return Result<void>(); }));
  EXPECT_FALSE(journal.save_snapshot(0, 1, "x"));
  EXPECT_FALSE(journal.latest_snapshot());
  EXPECT_FALSE(journal.prune(1));
  EXPECT_TRUE(journal.latest_snapshot());
}

}  // namespace
}  // namespace takt::store
