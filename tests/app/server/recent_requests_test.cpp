// A submission that is asked for again is made once.
#include "app/server/recent_requests.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace takt::server {
namespace {

using ::testing::ElementsAre;

class Counter {
 public:
  RecentRequests::Submit submit(Result<void> outcome = {}) {
    return [this, outcome]() -> Result<control::Accepted> {
      const std::uint64_t number = ++calls;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // others come in the meantime
      if (!outcome) return tl::make_unexpected(outcome.error());
      return control::Accepted{{}, {JobId(number)}, {"small"}};
    };
  }
  std::atomic<std::uint64_t> calls{0};
};

TEST(RecentRequests, AskedAgainGetTheSameJobs) {
  RecentRequests requests;
  Counter counter;
  EXPECT_THAT(requests.once(7, "a", "body", counter.submit())->jobs, ElementsAre(JobId(1)));
  const auto again = requests.once(7, "a", "body", counter.submit());
  EXPECT_THAT(again->jobs, ElementsAre(JobId(1)));
  EXPECT_THAT(again->warnings, ElementsAre("small"));
  EXPECT_EQ(counter.calls, 1u);
}

TEST(RecentRequests, AskedAgainWhileTheFirstIsMadeWaitForIt) {
  RecentRequests requests;
  Counter counter;
  std::vector<std::thread> threads;
  std::atomic<int> same{0};
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&] {
      const auto accepted = requests.once(7, "a", "body", counter.submit());
      if (accepted && accepted->jobs == std::vector<JobId>{JobId(1)}) ++same;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, 16);
  EXPECT_EQ(counter.calls, 1u);
}

TEST(RecentRequests, OfSeveralUsersAreTheirOwn) {
  RecentRequests requests;
  Counter counter;
  ASSERT_TRUE(requests.once(7, "a", "body", counter.submit()));
  EXPECT_THAT(requests.once(8, "a", "body", counter.submit())->jobs, ElementsAre(JobId(2)));
}

TEST(RecentRequests, WithAnotherBodyAreAConflict) {
  RecentRequests requests;
  Counter counter;
  ASSERT_TRUE(requests.once(7, "a", "body", counter.submit()));
  const auto other = requests.once(7, "a", "other", counter.submit());
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::conflict);
  EXPECT_EQ(counter.calls, 1u);
}

TEST(RecentRequests, ThatWereRefusedMayBeTriedAgain) {
  RecentRequests requests;
  Counter counter;
  EXPECT_FALSE(requests.once(7, "a", "body", counter.submit(fail(ErrorKind::unavailable, "full"))));
  EXPECT_THAT(requests.once(7, "a", "body", counter.submit())->jobs, ElementsAre(JobId(2)));
}

TEST(RecentRequests, AreForgottenByNumberAndByAge) {
  RecentRequests few({2, std::chrono::seconds(3600)});
  Counter counter;
  for (const char* id : {"a", "b", "c"}) ASSERT_TRUE(few.once(7, id, "body", counter.submit()));
  EXPECT_THAT(few.once(7, "c", "body", counter.submit())->jobs, ElementsAre(JobId(3)));
  EXPECT_THAT(few.once(7, "a", "body", counter.submit())->jobs, ElementsAre(JobId(4)));
  RecentRequests brief({100, std::chrono::seconds(0)});
  ASSERT_TRUE(brief.once(7, "a", "body", counter.submit()));
  EXPECT_THAT(brief.once(7, "a", "body", counter.submit())->jobs, ElementsAre(JobId(6)));
}

}  // namespace
}  // namespace takt::server
