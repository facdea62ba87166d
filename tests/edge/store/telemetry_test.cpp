#include "edge/store/telemetry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>

#include "edge/store/fixture.h"
#include "edge/store/journal.h"

namespace takt::store {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<std::string> attempts(const std::vector<Summary>& summaries) {
  std::vector<std::string> out;
  for (const Summary& summary : summaries) out.push_back(summary.attempt);
  return out;
}
using Attempts = std::vector<std::string>;

class TelemetryOnDisk : public ::testing::Test {
 protected:
  std::unique_ptr<Telemetry> open(Telemetry::Options options = {}) {
    auto telemetry = Telemetry::open(path_, options);
    if (!telemetry) ADD_FAILURE() << telemetry.error().message;
    return telemetry ? *std::move(telemetry) : nullptr;
  }
  TempFolder folder_;
  std::string path_ = folder_ / "telemetry.db";
};

TEST_F(TelemetryOnDisk, ANewOneIsEmpty) {
  EXPECT_TRUE(open()->load_summaries(std::nullopt, 10)->empty());
  EXPECT_TRUE(open()->load_summaries("train", 10)->empty());
}

TEST_F(TelemetryOnDisk, GivesBackSummariesNewestFirstAlsoAfterReopening) {
  {
    const auto telemetry = open();
    ASSERT_TRUE(telemetry->save_summary("train", "17.1", 200, "{\"peak\": 1}"));
    ASSERT_TRUE(telemetry->save_summary("serve", "18.1", 100, "{}"));
    ASSERT_TRUE(telemetry->save_summary("train", "19.1", 300, "{}"));
  }
  const auto telemetry = open();
  EXPECT_EQ(attempts(*telemetry->load_summaries(std::nullopt, 10)),
            (Attempts{"19.1", "17.1", "18.1"}));
  EXPECT_EQ(attempts(*telemetry->load_summaries("train", 10)), (Attempts{"19.1", "17.1"}));
  EXPECT_EQ(attempts(*telemetry->load_summaries("train", 1)), (Attempts{"19.1"}));
  EXPECT_TRUE(telemetry->load_summaries("none", 10)->empty());
  EXPECT_TRUE(telemetry->load_summaries("train", 0)->empty());
  EXPECT_EQ(telemetry->load_summaries("train", 10)->at(1),
            (Summary{"train", "17.1", 200, "{\"peak\": 1}"}));
}

TEST_F(TelemetryOnDisk, SavingAnAttemptAgainReplacesIt) {
  const auto telemetry = open();
  ASSERT_TRUE(telemetry->save_summary("train", "17.1", 200, "old"));
  ASSERT_TRUE(telemetry->save_summary("other", "17.1", 300, "new"));
  EXPECT_EQ(*telemetry->load_summaries(std::nullopt, 10),
            (std::vector<Summary>{{"other", "17.1", 300, "new"}}));
}

TEST_F(TelemetryOnDisk, KeepsAnyWorkloadName) {
  const auto telemetry = open();
  for (const std::string& name :
       {std::string(), std::string("a'; DROP TABLE summaries; --"), std::string("ü/x\n")}) {
    ASSERT_TRUE(telemetry->save_summary(name, "1.1", 1, "{}"));
    EXPECT_EQ(telemetry->load_summaries(name, 5)->size(), 1u);
  }
}

TEST_F(TelemetryOnDisk, KeepsTheNewestOfEachWorkload) {
  Telemetry::Options options;
  options.per_workload_max = 3;
  const auto telemetry = open(options);
  for (int i = 1; i <= 10; ++i) {
    ASSERT_TRUE(telemetry->save_summary("train", std::to_string(i) + ".1", i, "{}"));
  }
  ASSERT_TRUE(telemetry->save_summary("serve", "99.1", 0, "{}"));
  EXPECT_EQ(attempts(*telemetry->load_summaries("train", 10)), (Attempts{"10.1", "9.1", "8.1"}));
  EXPECT_EQ(telemetry->load_summaries("serve", 10)->size(), 1u);
}

TEST_F(TelemetryOnDisk, KeepsTheNewestOfAllTogether) {
  Telemetry::Options options;
  options.summaries_max = 4;
  {
    const auto telemetry = open(options);
    for (int i = 1; i <= 10; ++i) {
      const std::string name = std::to_string(i);
      ASSERT_TRUE(telemetry->save_summary("w" + name, name + ".1", i, "{}"));
    }
    EXPECT_EQ(attempts(*telemetry->load_summaries(std::nullopt, 99)),
              (Attempts{"10.1", "9.1", "8.1", "7.1"}));
  }
  const auto telemetry = open(options);
  ASSERT_TRUE(telemetry->save_summary("x", "11.1", 11, "{}"));
  EXPECT_EQ(attempts(*telemetry->load_summaries(std::nullopt, 99)),
            (Attempts{"11.1", "10.1", "9.1", "8.1"}))
      << "what is there is counted again at open";
}

TEST_F(TelemetryOnDisk, ASummaryBeyondItsLimitIsRefused) {
  Telemetry::Options options;
  options.json_bytes_max = 100;
  const auto telemetry = open(options);
  EXPECT_TRUE(telemetry->save_summary("w", "1.1", 1, std::string(100, 'x')));
  const auto saved = telemetry->save_summary("w", "2.1", 1, std::string(101, 'x'));
  ASSERT_FALSE(saved);
  EXPECT_THAT(saved.error().message, HasSubstr("the most that is kept is 100"));
}

TEST_F(TelemetryOnDisk, ADamagedFileIsRefusedWithTheAdviceToMoveItAway) {
  { open(); }
  const std::string whole = read_file(path_);
  for (const std::string& bytes : {std::string(), whole.substr(0, 5000), std::string(9000, 'x')}) {
    write_file(path_, bytes);
    const auto telemetry = Telemetry::open(path_);
    ASSERT_FALSE(telemetry);
    EXPECT_EQ(telemetry.error().kind, ErrorKind::invalid);
    EXPECT_THAT(telemetry.error().message,
                AllOf(HasSubstr("move it away"), HasSubstr("jobs are not touched")));
    EXPECT_EQ(read_file(path_), bytes);
  }
}

TEST_F(TelemetryOnDisk, AJournalIsNoTelemetry) {
  { ASSERT_TRUE(Journal::open(path_)); }
  const auto telemetry = Telemetry::open(path_);
  ASSERT_FALSE(telemetry);
  EXPECT_THAT(telemetry.error().message, HasSubstr("is not takt's telemetry"));
}

TEST_F(TelemetryOnDisk, IsNotOpenedTwice) {
  const auto telemetry = open();
  const auto second = Telemetry::open(path_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::conflict);
}

TEST_F(TelemetryOnDisk, AFullDiskIsAnErrorAtOnceAndSavingWorksAgainLater) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    auto telemetry = Telemetry::open(path_).value();
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    rlimit tight = before;
    tight.rlim_cur = 100 << 10;
    ::setrlimit(RLIMIT_FSIZE, &tight);
    const auto full = telemetry->save_summary("w", "1.1", 1, std::string(500'000, 'x'));
    if (full || full.error().kind != ErrorKind::unavailable) ::_exit(1);
    ::setrlimit(RLIMIT_FSIZE, &before);
    if (!telemetry->save_summary("w", "1.1", 1, std::string(500'000, 'x'))) ::_exit(2);
    ::_exit(telemetry->load_summaries("w", 5)->size() == 1 ? 0 : 3);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace takt::store
