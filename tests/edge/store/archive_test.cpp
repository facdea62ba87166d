#include "edge/store/archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "edge/store/fixture.h"

namespace takt::store {
namespace {

using ::testing::HasSubstr;

ArchivedJob job_of(std::uint64_t id, const std::string& user = "alice",
                   const std::string& outcome = "done") {
  return {id,
          user,
          id % 2 == 0 ? "even" : "odd",
          outcome,
          static_cast<std::uint32_t>(1 + id % 3),
          static_cast<std::int64_t>(1000 + id * 10),
          "facts of " + std::to_string(id) + "\n"};
}

class ArchiveOnDisk : public ::testing::Test {
 protected:
  std::unique_ptr<Archive> open() {
    auto archive = Archive::open(path_);
    if (!archive) ADD_FAILURE() << archive.error().message;
    return archive ? *std::move(archive) : nullptr;
  }
  static std::vector<std::uint64_t> ids(const Archive::Page& page) {
    std::vector<std::uint64_t> all;
    for (const ArchivedJob& job : page.jobs) all.push_back(job.id);
    return all;
  }
  TempFolder folder_;
  std::string path_ = folder_ / "archive.db";
};

TEST_F(ArchiveOnDisk, GivesBackWhatWasSavedAlsoAfterReopening) {
  ASSERT_TRUE(open()->save({job_of(1), job_of(7, "bob", "failed")}));
  const auto archive = open();
  EXPECT_EQ(archive->find(7).value(), job_of(7, "bob", "failed"));
  EXPECT_EQ(archive->find(2).value(), std::nullopt);
  EXPECT_EQ(archive->count(), 2u);
}

TEST_F(ArchiveOnDisk, SavingAgainReplaces) {
  const auto archive = open();
  ASSERT_TRUE(archive->save({job_of(1), job_of(2)}));
  ASSERT_TRUE(archive->save({job_of(1, "alice", "cancelled")}));
  EXPECT_EQ(archive->count(), 2u);
  EXPECT_EQ(archive->find(1).value()->outcome, "cancelled");
}

TEST_F(ArchiveOnDisk, ListsTheNewestThatFitAndSaysHowManyMoreThereAre) {
  const auto archive = open();
  std::vector<ArchivedJob> jobs;
  for (std::uint64_t i = 1; i <= 20; ++i)
    jobs.push_back(job_of(i, i <= 12 ? "alice" : "bob", i % 4 == 0 ? "failed" : "done"));
  ASSERT_TRUE(archive->save(jobs));
  const auto newest = archive->newest({}, 3).value();
  EXPECT_EQ(ids(newest), (std::vector<std::uint64_t>{20, 19, 18}));
  EXPECT_EQ(newest.more, 17u);
  Archive::Wanted wanted;
  wanted.user = "alice";
  wanted.outcome = "failed";
  const auto failed = archive->newest(wanted, 10).value();
  EXPECT_EQ(ids(failed), (std::vector<std::uint64_t>{12, 8, 4}));
  EXPECT_EQ(failed.more, 0u);
  wanted = {};
  wanted.name = "odd";
  wanted.ended_from_us = 1150;
  EXPECT_EQ(ids(archive->newest(wanted, 10).value()), (std::vector<std::uint64_t>{19, 17, 15}));
}

TEST_F(ArchiveOnDisk, TheOldestLeaveByAge) {
  const auto archive = open();
  ASSERT_TRUE(archive->save({job_of(1), job_of(2), job_of(3)}));
  const auto removed = archive->trim(1025, 1u << 30).value();
  ASSERT_EQ(removed.size(), 2u);
  EXPECT_EQ(removed[0].id, 1u);
  EXPECT_EQ(removed[0].attempts, 2u);
  EXPECT_EQ(archive->count(), 1u);
  EXPECT_TRUE(archive->trim(1025, 1u << 30).value().empty());
}

TEST_F(ArchiveOnDisk, TheOldestLeaveBySizeAndTheFileStaysNearIt) {
  const auto archive = open();
  constexpr std::uint64_t kBytes = 300 << 10;
  std::uint64_t next = 1;
  for (int round = 0; round < 10; ++round) {
    std::vector<ArchivedJob> jobs;
    for (int i = 0; i < 100; ++i) {
      jobs.push_back(job_of(next++));
      jobs.back().facts = std::string(1000, 'x');
    }
    ASSERT_TRUE(archive->save(jobs));
    while (!archive->trim(0, kBytes).value().empty()) {
    }
  }
  EXPECT_GT(archive->count().value(), 100u) << "not more leave than must";
  EXPECT_TRUE(archive->find(next - 1).value()) << "the newest stay";
  EXPECT_FALSE(archive->find(1).value());
  EXPECT_LT(std::filesystem::file_size(path_), 2 * kBytes);
}

TEST_F(ArchiveOnDisk, ADamagedJobIsASentenceAndTheOthersAreThere) {
  ASSERT_TRUE(open()->save({job_of(1), job_of(2)}));
  sqlite3* db = nullptr;
  ASSERT_EQ(::sqlite3_open(path_.c_str(), &db), SQLITE_OK);
  ::sqlite3_exec(db, "UPDATE jobs SET outcome = 'fine' WHERE id = 1", nullptr, nullptr, nullptr);
  ::sqlite3_close(db);
  const auto archive = open();
  const auto damaged = archive->find(1);
  ASSERT_FALSE(damaged);
  EXPECT_THAT(damaged.error().message, HasSubstr("job 1 does not fit its checksum"));
  EXPECT_TRUE(archive->find(2).value());
}

TEST_F(ArchiveOnDisk, AJournalIsNoArchiveAndTwoServersDoNotShareOne) {
  const auto archive = open();
  const auto second = Archive::open(path_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::conflict);
  write_file(folder_ / "other.db", "something else entirely");
  EXPECT_THAT(Archive::open(folder_ / "other.db").error().message,
              HasSubstr("is not takt's archive"));
}

}  // namespace
}  // namespace takt::store
