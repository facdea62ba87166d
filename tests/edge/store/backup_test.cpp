// A copy of a journal that goes on being written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "edge/store/fixture.h"
#include "edge/store/journal.h"

namespace takt::store {
namespace {

using ::testing::HasSubstr;

class Backup : public ::testing::Test {
 protected:
  std::string put_in_place() {
    const std::string place = other_ / "journal.db";
    std::filesystem::copy_file(copy_, place);
    return place;
  }
  TempFolder folder_;
  TempFolder other_;
  std::string path_ = folder_ / "journal.db";
  std::string copy_ = folder_ / "copy.db";
};

TEST_F(Backup, IsOneFileForItsOwnerAndHasWhatWasThere) {
  const auto journal = Journal::open(path_).value();
  ASSERT_TRUE(journal->append(records_of(1, 500, 300)));
  ASSERT_TRUE(journal->save_snapshot(400, 1, "state"));
  const auto done = journal->back_up(copy_);
  ASSERT_TRUE(done) << done.error().message;
  struct stat status {};
  ASSERT_EQ(::stat(copy_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_FALSE(std::filesystem::exists(copy_ + "-wal"));
  const auto restored = Journal::open(put_in_place());
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(all_after(**restored, 0), records_of(1, 500, 300));
  EXPECT_EQ((*restored)->latest_snapshot().value()->body, "state");
}

TEST_F(Backup, IsConsistentWhileAppendsGoOnAndLetsThemThrough) {
  const auto journal = Journal::open(path_).value();
  ASSERT_TRUE(journal->append(records_of(1, 3000, 2000)));
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> last{3000};
  std::thread writer([&] {
    while (!done) {
      if (!journal->append(records_of(last + 1, last + 2, 50))) break;
      last += 2;
    }
  });
  // On a busy machine a thread may take longer to begin than a backup takes in all.
  while (last == 3000u) std::this_thread::yield();
  const std::uint64_t at_the_start = last;
  const auto made = journal->back_up(copy_);
  const std::uint64_t at_the_end = last;
  done = true;
  writer.join();
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_GT(at_the_end, at_the_start) << "appends wait for a step, not for the whole copy";
  const auto restored = Journal::open(put_in_place());
  ASSERT_TRUE(restored) << restored.error().message;
  const std::uint64_t found = (*restored)->last_sequence();
  EXPECT_GE(found, 3000u);
  EXPECT_LE(found, at_the_end + 2);
  EXPECT_EQ(found % 2, 0u) << "whole batches";
  EXPECT_EQ(all_after(**restored, 3000), records_of(3001, found, 50));
}

TEST_F(Backup, PutInPlaceItIsTakenForWhatItIsUntilTheFirstAppend) {
  {
    const auto journal = Journal::open(path_).value();
    ASSERT_TRUE(journal->append(records_of(1, 5)));
    ASSERT_TRUE(journal->back_up(copy_));
    ASSERT_TRUE(journal->append(records_of(6, 9)));
  }
  // The note of the journal that was there before does not matter, nor does it get in the way.
  std::filesystem::remove(path_);
  std::filesystem::rename(copy_, path_);
  for (int round = 0; round < 2; ++round) {
    const auto journal = Journal::open(path_);
    ASSERT_TRUE(journal) << journal.error().message;
    EXPECT_TRUE((*journal)->may_have_forgotten());
    EXPECT_THAT((*journal)->opening_note(), HasSubstr("is a backup that was put in place"));
  }
  ASSERT_TRUE(Journal::open(path_).value()->append(records_of(6, 6)));
  const auto journal = Journal::open(path_).value();
  EXPECT_FALSE(journal->may_have_forgotten());
  EXPECT_EQ(journal->opening_note(), "");
  EXPECT_EQ(journal->last_sequence(), 6u);
}

TEST_F(Backup, BesideTheLogOfAnotherJournalItIsRefused) {
  const auto journal = Journal::open(path_).value();
  ASSERT_TRUE(journal->append(records_of(1, 5)));
  ASSERT_TRUE(journal->back_up(copy_));
  const std::string place = put_in_place();
  std::filesystem::copy_file(path_ + "-wal", place + "-wal");
  const std::string before = read_file(place);
  const auto refused = Journal::open(place);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("journal.db-wal of another journal is beside it"));
  EXPECT_EQ(read_file(place), before);
}

TEST_F(Backup, DamagedItIsRefused) {
  const auto journal = Journal::open(path_).value();
  ASSERT_TRUE(journal->append(records_of(1, 100, 300)));
  ASSERT_TRUE(journal->back_up(copy_));
  const std::string place = put_in_place();
  const std::string whole = read_file(place);
  write_file(place, whole.substr(0, whole.size() - 1));
  EXPECT_FALSE(Journal::open(place));
  std::string changed = whole;
  changed[changed.size() / 2] ^= 1;
  write_file(place, changed);
  const auto opened = Journal::open(place);
  if (!opened) return;
  EXPECT_FALSE((*opened)->replay(0, [](const Record&) { return Result<void>(); }));
}

TEST_F(Backup, DoesNotReplaceAFile) {
  const auto journal = Journal::open(path_).value();
  write_file(copy_, "precious");
  const auto refused = journal->back_up(copy_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::conflict);
  EXPECT_EQ(read_file(copy_), "precious");
}

TEST_F(Backup, WhereItCannotBeWrittenIsASentence) {
  const auto journal = Journal::open(path_).value();
  ASSERT_TRUE(journal->append(records_of(1, 5)));
  const auto refused = journal->back_up("/nowhere/at/all");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("cannot create /nowhere/at/all"));
}

}  // namespace
}  // namespace takt::store
