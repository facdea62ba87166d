// The smallest words: quantities, ids, errors, missing values, checks.
#include <gmock/gmock.h>

#include <set>
#include <type_traits>

#include "core/base/check.h"
#include "core/base/ids.h"
#include "core/base/measured.h"
#include "core/base/quantities.h"
#include "core/base/result.h"

namespace takt {
namespace {

using ::testing::HasSubstr;

TEST(Quantities, AreCountedInWholeUnits) {
  EXPECT_EQ(gibibytes(1).value, 1'073'741'824);
  EXPECT_EQ(mebibytes(1024), gibibytes(1));
  EXPECT_EQ(kibibytes(1024), mebibytes(1));
  EXPECT_EQ(hours(24), minutes(1440));
  EXPECT_EQ(seconds(1), milliseconds(1000));
  EXPECT_EQ(milliseconds(1), microseconds(1000));
  EXPECT_EQ(gibibytes(3) - gibibytes(1), gibibytes(2));
}

TEST(Quantities, OfTimeAddUpAndCompare) {
  const Instant noon{43'200'000'000};
  EXPECT_EQ(noon + hours(1) - noon, hours(1));
  EXPECT_EQ(noon - hours(1) + hours(1), noon);
  EXPECT_LT(noon, noon + microseconds(1));
  // An instant cannot be added to an instant, and bytes are no time.
  EXPECT_FALSE((std::is_invocable_v<std::plus<>, Instant, Instant>));
  EXPECT_FALSE((std::is_invocable_v<std::plus<>, Bytes, Duration>));
}

TEST(Ids, OfDifferentThingsDoNotMix) {
  EXPECT_FALSE((std::is_convertible_v<JobId, NodeId>));
  EXPECT_FALSE((std::is_convertible_v<std::string, DeviceUuid>)) << "only when it is said";
  EXPECT_EQ(to_string(AttemptId{JobId(17), 2}), "17.2");
  EXPECT_EQ(to_string(JobId(17)), "17");
  EXPECT_LT((AttemptId{JobId(2), 9}), (AttemptId{JobId(10), 1})) << "by number, not by text";
}

TEST(Errors, GetThePlaceInFront) {
  const Result<int> below = fail(ErrorKind::invalid, "expected a number");
  const Result<int> above = fail_at("job.yaml: line 3", below.error());
  EXPECT_EQ(above.error().kind, ErrorKind::invalid);
  EXPECT_EQ(above.error().message, "job.yaml: line 3: expected a number");
}

TEST(MissingValues, AreNeverZeroAndEachSaysWhy) {
  const Measured<int> none = missing(MissingKind::not_permitted, "NVML said so");
  EXPECT_FALSE(none.has_value());
  EXPECT_NE(none, Measured<int>(0));
  EXPECT_EQ(to_string(none.error()), "not permitted: NVML said so");
  std::set<std::string> words;
  for (const MissingKind kind :
       {MissingKind::not_supported, MissingKind::not_permitted, MissingKind::not_found,
        MissingKind::no_sample_yet, MissingKind::timed_out, MissingKind::device_lost,
        MissingKind::out_of_range, MissingKind::driver_error})
    EXPECT_TRUE(words.insert(to_string(Missing{kind, ""})).second);
}

TEST(ChecksDeathTest, ThatFailEndTheProgramWithTheirPlaceAndReason) {
  EXPECT_DEATH(TAKT_CHECK(1 + 1 == 3, "arithmetic is broken"), HasSubstr("arithmetic is broken"));
  TAKT_CHECK(true, "never shown");
}

}  // namespace
}  // namespace takt
