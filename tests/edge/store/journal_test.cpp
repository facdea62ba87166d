// What only the journal on disk does: locks, damage, full disks, versions.
#include "edge/store/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <functional>

#include "edge/store/fixture.h"

namespace takt::store {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Runs it in a child process; its result is the child's exit status, -1 when it died.
int in_child(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void sql(const std::string& path, const std::string& statement) {
  sqlite3* db = nullptr;
  ASSERT_EQ(::sqlite3_open(path.c_str(), &db), SQLITE_OK);
  char* error = nullptr;
  ::sqlite3_exec(db, statement.c_str(), nullptr, nullptr, &error);
  EXPECT_EQ(error, nullptr) << error;
  ::sqlite3_close(db);
}

class JournalOnDisk : public ::testing::Test {
 protected:
  std::unique_ptr<Journal> open() {
    auto journal = Journal::open(path_);
    if (!journal) ADD_FAILURE() << journal.error().message;
    return journal ? *std::move(journal) : nullptr;
  }
  Error open_error() {
    auto journal = Journal::open(path_);
    if (!journal) return journal.error();
    ADD_FAILURE() << "it was opened";
    return {};
  }
  void fill(std::uint64_t last = 10, std::size_t bytes = 40) {
    const auto journal = open();
    ASSERT_TRUE(journal->append(records_of(1, last, bytes)));
  }

  TempFolder folder_;
  std::string path_ = folder_ / "journal.db";
};

TEST_F(JournalOnDisk, IsTheSameAfterReopening) {
  {
    const auto journal = open();
    ASSERT_TRUE(journal->append(records_of(1, 5)));
    ASSERT_TRUE(journal->save_snapshot(3, 2, "three"));
  }
  const auto journal = open();
  EXPECT_EQ(journal->last_sequence(), 5u);
  EXPECT_EQ(all_after(*journal, 0), records_of(1, 5));
  EXPECT_EQ(journal->latest_snapshot().value(), (Snapshot{3, 2, "three", ""}));
  EXPECT_TRUE(journal->append({record_of(6)}));
}

TEST_F(JournalOnDisk, CanBeReadByItsOwnerOnly) {
  const auto journal = open();
  ASSERT_TRUE(journal->append(records_of(1, 1)));
  for (const char* end : {"", "-wal", ".lock"}) {
    struct stat status {};
    ASSERT_EQ(::stat((path_ + end).c_str(), &status), 0) << end;
    EXPECT_EQ(status.st_mode & 0077, 0u) << end << ": jobs' environments are in it";
  }
}

TEST_F(JournalOnDisk, CarriesLargeRecordsAndManyInOneBatch) {
  const auto journal = open();
  ASSERT_TRUE(journal->append(records_of(1, 20'000, 100)));
  ASSERT_TRUE(journal->append({record_of(20'001, 20u << 20)}));
  ASSERT_TRUE(journal->save_snapshot(20'001, 1, std::string(30u << 20, 's')));
  EXPECT_EQ(all_after(*journal, 20'000), records_of(20'001, 20'001, 20u << 20));
  EXPECT_EQ(all_after(*journal, 0).size(), 20'001u);
  EXPECT_EQ(journal->latest_snapshot().value()->body.size(), 30u << 20);
}

// Who else is there.

TEST_F(JournalOnDisk, AnotherProcessThatHasItOpenIsNamed) {
  const auto journal = open();
  const int result = in_child([&] {
    const auto second = Journal::open(path_);
    const std::string expected = "(pid " + std::to_string(::getppid()) + ")";
    return !second && second.error().kind == ErrorKind::conflict &&
                   second.error().message.find(expected) != std::string::npos &&
                   second.error().message.find("stop that one first") != std::string::npos
               ? 0
               : 1;
  });
  EXPECT_EQ(result, 0);
  EXPECT_TRUE(journal->append(records_of(1, 1))) << "the first is not disturbed";
}

TEST_F(JournalOnDisk, IsNotOpenedTwiceInOneProcessEither) {
  const auto journal = open();
  EXPECT_EQ(open_error().kind, ErrorKind::conflict);
}

TEST_F(JournalOnDisk, TheLockOfADeadProcessDoesNotCount) {
  ASSERT_EQ(in_child([&] {
              auto journal = Journal::open(path_);
              if (!journal || !(*journal)->append(records_of(1, 2))) return 1;
              ::raise(SIGKILL);
              return 2;
            }),
            -1);
  const auto journal = open();
  EXPECT_EQ(journal->last_sequence(), 2u);
}

TEST_F(JournalOnDisk, AForeignProgramThatHoldsItIsASentence) {
  fill();
  sqlite3* shell = nullptr;
  ASSERT_EQ(::sqlite3_open(path_.c_str(), &shell), SQLITE_OK);
  ASSERT_EQ(::sqlite3_exec(shell, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  const Error error = open_error();
  EXPECT_EQ(error.kind, ErrorKind::conflict);
  EXPECT_THAT(error.message, HasSubstr("another program has it open"));
  ::sqlite3_close(shell);
  EXPECT_EQ(open()->last_sequence(), 10u);
}

TEST_F(JournalOnDisk, AForeignProgramCannotWriteWhileItIsOpen) {
  const auto journal = open();
  sqlite3* shell = nullptr;
  ASSERT_EQ(::sqlite3_open(path_.c_str(), &shell), SQLITE_OK);
  EXPECT_EQ(::sqlite3_exec(shell, "DELETE FROM records", nullptr, nullptr, nullptr), SQLITE_BUSY);
  ::sqlite3_close(shell);
}

// What is in the way.

TEST_F(JournalOnDisk, AMissingFolderIsASentence) {
  path_ = folder_ / "none/journal.db";
  const Error error = open_error();
  EXPECT_EQ(error.kind, ErrorKind::not_found);
  EXPECT_THAT(error.message, AllOf(HasSubstr("none"), HasSubstr("does not exist: create it")));
}

TEST_F(JournalOnDisk, AReadOnlyFolderIsASentence) {
  ::chmod(folder_.path().c_str(), 0555);
  const int result = in_child([&] {
    if (::geteuid() == 0 && ::setuid(54321) != 0) return 2;  // root may write everywhere
    const auto journal = Journal::open(path_);
    return !journal && journal.error().kind == ErrorKind::forbidden &&
                   journal.error().message.find("writable") != std::string::npos
               ? 0
               : 1;
  });
  ::chmod(folder_.path().c_str(), 0755);
  EXPECT_EQ(result, 0);
}

TEST_F(JournalOnDisk, AnotherUsersFileIsASentence) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  fill();
  ::chmod(folder_.path().c_str(), 0777);
  ::chmod((path_ + ".lock").c_str(), 0666);
  const int result = in_child([&] {
    if (::setuid(54321) != 0) return 2;
    const auto journal = Journal::open(path_);
    return !journal && journal.error().kind == ErrorKind::forbidden ? 0 : 1;
  });
  EXPECT_EQ(result, 0);
}

TEST_F(JournalOnDisk, AFolderInItsPlaceIsASentence) {
  std::filesystem::create_directory(path_);
  EXPECT_THAT(open_error().message, HasSubstr("is not a file"));
}

// Damage: it is always refused and the file keeps every byte.

TEST_F(JournalOnDisk, DamagedAndForeignFilesAreRefusedAndLeftAsTheyAre) {
  fill(200);
  const std::string whole = read_file(path_);
  ASSERT_GT(whole.size(), 16384u);
  const std::vector<std::pair<const char*, std::string>> cases = {
      {"empty", ""},
      {"one byte", "S"},
      {"half a header", whole.substr(0, 50)},
      {"a header", whole.substr(0, 100)},
      {"one page", whole.substr(0, 8192)},
      {"half a page", whole.substr(0, 6000)},
      {"one page short", whole.substr(0, whole.size() - 8192)},
      {"one byte short", whole.substr(0, whole.size() - 1)},
      {"text", "precious notes, long enough to be a header of anything: " + std::string(200, '.')},
      {"zeroes", std::string(whole.size(), '\0')},
      {"a page of noise", whole.substr(0, 8192) + std::string(8192, '\x5A') + whole.substr(16384)},
  };
  for (const auto& [name, bytes] : cases) {
    write_file(path_, bytes);
    const Error error = open_error();
    EXPECT_EQ(error.kind, ErrorKind::invalid) << name;
    EXPECT_THAT(error.message, AllOf(HasSubstr(path_), HasSubstr("left as it is"))) << name;
    EXPECT_EQ(read_file(path_), bytes) << name;
  }
  write_file(path_, whole);
  EXPECT_EQ(open()->last_sequence(), 200u);
}

TEST_F(JournalOnDisk, AnotherProgramsDatabaseIsRefused) {
  sql(path_, "CREATE TABLE t (x); INSERT INTO t VALUES (1)");
  EXPECT_THAT(open_error().message, HasSubstr("is not takt's journal"));
}

TEST_F(JournalOnDisk, ANewerFormatIsRefusedWithASentence) {
  fill();
  sql(path_, "PRAGMA user_version = 99");
  const std::string before = read_file(path_);
  const Error error = open_error();
  EXPECT_EQ(error.kind, ErrorKind::invalid);
  EXPECT_THAT(error.message, AllOf(HasSubstr("written by a newer takt (format 99"),
                                   HasSubstr("run the newer takt")));
  EXPECT_EQ(read_file(path_), before);
}

TEST_F(JournalOnDisk, AMissingFileWhoseLogIsThereIsNotReplacedByANewOne) {
  fill();
  std::filesystem::remove(path_);
  write_file(path_ + "-wal", "something");
  const Error error = open_error();
  EXPECT_EQ(error.kind, ErrorKind::invalid);
  EXPECT_THAT(error.message, HasSubstr("is missing but its log"));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(JournalOnDisk, TheRestOfACreationThatWasInterruptedIsNoHindrance) {
  write_file(path_ + ".new", "half");
  write_file(path_ + ".new-wal", "half");
  EXPECT_EQ(open()->last_sequence(), 0u);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

TEST_F(JournalOnDisk, AMissingRecordIsFoundAtOpen) {
  fill();
  sql(path_, "DELETE FROM records WHERE sequence = 5");
  EXPECT_THAT(open_error().message, HasSubstr("of the records 1 to 10 only 9 are there"));
}

TEST_F(JournalOnDisk, MissingFirstRecordsWithoutSnapshotsAreFoundAtOpen) {
  fill();
  sql(path_, "DELETE FROM records WHERE sequence <= 5");
  EXPECT_THAT(open_error().message, HasSubstr("records that its snapshots need are missing"));
}

TEST_F(JournalOnDisk, ASnapshotBeyondTheRecordsIsFoundAtOpen) {
  {
    const auto journal = open();
    ASSERT_TRUE(journal->append(records_of(1, 10)));
    ASSERT_TRUE(journal->save_snapshot(8, 1, "eight"));
  }
  sql(path_, "DELETE FROM records WHERE sequence > 7");
  EXPECT_THAT(open_error().message, HasSubstr("records that its snapshots need are missing"));
}

TEST_F(JournalOnDisk, AChangedRecordIsFoundByItsChecksumWhenReplayed) {
  for (const char* change : {"body = body || ' '", "kind = 'x'", "version = 77", "crc = crc + 1"}) {
    std::filesystem::remove(path_);
    std::filesystem::remove(path_ + ".tail");
    fill();
    sql(path_, std::string("UPDATE records SET ") + change + " WHERE sequence = 5");
    const auto journal = open();
    int seen = 0;
    const auto done = journal->replay(0, [&](const Record&) {
      ++seen;
      return Result<void>();
    });
    ASSERT_FALSE(done) << change;
    EXPECT_THAT(done.error().message, HasSubstr("record 5 does not fit its checksum"));
    EXPECT_EQ(seen, 4) << "and none after it";
  }
}

TEST_F(JournalOnDisk, ADamagedSnapshotGivesWayToTheOneBeforeWithAWarning) {
  {
    const auto journal = open();
    ASSERT_TRUE(journal->append(records_of(1, 10)));
    ASSERT_TRUE(journal->save_snapshot(2, 1, "two"));
    ASSERT_TRUE(journal->save_snapshot(4, 1, "four"));
    ASSERT_TRUE(journal->save_snapshot(8, 1, "eight"));
    ASSERT_TRUE(journal->prune(10));
  }
  sql(path_, "UPDATE snapshots SET body = 'eighT' WHERE sequence = 8");
  {
    const auto journal = open();
    const auto snapshot = journal->latest_snapshot().value();
    ASSERT_TRUE(snapshot);
    EXPECT_EQ(snapshot->sequence, 4u);
    EXPECT_EQ(snapshot->body, "four");
    EXPECT_THAT(snapshot->warning, HasSubstr("the snapshot at record 8 is damaged"));
    EXPECT_EQ(all_after(*journal, 4), records_of(5, 10)) << "nothing that it needs was pruned";
  }
  sql(path_, "UPDATE snapshots SET crc = 1");
  const auto none = open()->latest_snapshot();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::invalid);
  EXPECT_THAT(none.error().message, HasSubstr("none of its snapshots fits its checksum"));
}

// A full disk.

TEST_F(JournalOnDisk, AFullDiskRefusesTheBatchWholeAndLaterOnesWorkAgain) {
  auto journal = Journal::open(path_, Journal::Options{20}).value();  // 160 KiB
  ASSERT_TRUE(journal->append(records_of(1, 10)));
  const auto full = journal->append(records_of(11, 30, 20'000));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().kind, ErrorKind::unavailable);
  EXPECT_THAT(full.error().message, HasSubstr("the disk is full: free some space"));
  EXPECT_EQ(journal->last_sequence(), 10u);
  EXPECT_EQ(all_after(*journal, 0), records_of(1, 10));
  EXPECT_TRUE(journal->append(records_of(11, 12)));
  const auto snapshot = journal->save_snapshot(12, 1, std::string(200'000, 's'));
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().kind, ErrorKind::unavailable);
  EXPECT_EQ(journal->latest_snapshot().value(), std::nullopt);
  journal.reset();
  journal = open();
  EXPECT_EQ(all_after(*journal, 0), records_of(1, 12));
  EXPECT_TRUE(journal->append(records_of(13, 40, 20'000))) << "space is back";
}

// The kernel refuses to let files grow, as a full disk or a quota does: the error comes from
// write().
TEST_F(JournalOnDisk, AFileThatMayNotGrowRefusesTheBatchWholeAndLaterOnesWorkAgain) {
  const int result = in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    auto journal = Journal::open(path_).value();
    if (!journal->append(records_of(1, 10))) return 1;
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    rlimit tight = before;
    tight.rlim_cur = 64 << 10;
    ::setrlimit(RLIMIT_FSIZE, &tight);
    for (int i = 0; i < 5; ++i) {
      const auto full = journal->append(records_of(11, 30, 20'000));
      if (full) return 2;
      if (full.error().kind != ErrorKind::unavailable) {
        std::fprintf(stderr, "%s\n", full.error().message.c_str());
        return 3;
      }
      if (journal->last_sequence() != 10) return 4;
    }
    if (!journal->append(records_of(11, 11))) return 5;  // a small one still fits
    ::setrlimit(RLIMIT_FSIZE, &before);
    if (!journal->append(records_of(12, 30, 20'000))) return 6;
    return all_after(*journal, 11) == records_of(12, 30, 20'000) ? 0 : 7;
  });
  EXPECT_EQ(result, 0);
  const auto journal = open();
  EXPECT_EQ(journal->last_sequence(), 30u);
  EXPECT_EQ(all_after(*journal, 11), records_of(12, 30, 20'000));
}

TEST_F(JournalOnDisk, AFullDiskAtCreationIsASentenceAndLeavesNothingHalfMade) {
  const int result = in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    rlimit tight = before;
    tight.rlim_cur = 2048;
    ::setrlimit(RLIMIT_FSIZE, &tight);
    const auto full = Journal::open(path_);
    if (full) return 1;
    if (full.error().kind != ErrorKind::unavailable) return 2;
    if (std::filesystem::exists(path_)) return 3;
    ::setrlimit(RLIMIT_FSIZE, &before);
    return Journal::open(path_) ? 0 : 4;
  });
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace takt::store
