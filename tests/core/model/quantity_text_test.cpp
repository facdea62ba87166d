#include "core/model/quantity_text.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace takt {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

TEST(ParseSize, ReadsBinaryAndDecimalUnits) {
  const std::vector<std::pair<std::string, std::int64_t>> cases = {
      {"0B", 0},
      {"512B", 512},
      {"1KiB", 1024},
      {"12GiB", 12LL << 30},
      {"12 GiB", 12LL << 30},
      {" 12GiB ", 12LL << 30},
      {"1.5GiB", 3LL << 29},
      {"0.5KiB", 512},
      {"1.0009765625MiB", 0},  // ten digits behind the point: refused, see below
      {"1.25TiB", 5LL << 38},
      {"40GB", 40'000'000'000},
      {"1KB", 1000},
      {"3MB", 3'000'000},
      {"2TB", 2'000'000'000'000},
      {"8388607TiB", 8388607LL << 40},
      {"0.0001KiB", 0}};
  for (const auto& [text, bytes] : cases) {
    const auto size = parse_size(text);
    if (text == "1.0009765625MiB") {
      EXPECT_FALSE(size.has_value()) << text;
      continue;
    }
    ASSERT_TRUE(size.has_value()) << text << ": " << size.error().message;
    EXPECT_EQ(size->value, bytes) << text;
  }
}

TEST(ParseSize, RefusesEverythingElseAndSaysWhatWasExpected) {
  for (const char* text :
       {"",       " ",       "12",     "12G",      "12gib",  "12GIB",       "GiB",
        "-1GiB",  "+1GiB",   "1,5GiB", "1.GiB",    ".5GiB",  "12 gibibyte", "12GiB!",
        "1e3KiB", "0x10KiB", "12Gi",   "12 GiB 3", "NaNGiB", "1.5.5GiB"}) {
    const auto size = parse_size(text);
    ASSERT_FALSE(size.has_value()) << text;
    EXPECT_EQ(size.error().kind, ErrorKind::invalid);
    EXPECT_EQ(size.error().message, "'" + std::string(text) +
                                        "' is not a size; expected a number with KiB, MiB, GiB, "
                                        "TiB (or KB, MB, GB), e.g. 12GiB");
  }
}

TEST(ParseSize, RefusesWhatDoesNotFit) {
  for (const char* text : {"8388608TiB", "9223372036854775807KiB", "99999999TB"}) {
    const auto size = parse_size(text);
    ASSERT_FALSE(size.has_value()) << text;
    EXPECT_EQ(size.error().message, "'" + std::string(text) + "' is too large");
  }
  EXPECT_EQ(parse_size("9223372036854775807B")->value, kMax);
  EXPECT_FALSE(parse_size("9223372036854775808B").has_value());
}

TEST(ParseDuration, ReadsUnitsFromLargeToSmall) {
  const std::vector<std::pair<std::string, std::int64_t>> cases = {
      {"8h", hours(8).us},
      {"120s", seconds(120).us},
      {"1h30m", minutes(90).us},
      {"300ms", 300'000},
      {"1.5h", minutes(90).us},
      {"2d", hours(48).us},
      {"1d2h3m4s5ms6us", 93'784'005'006},
      {"0s", 0},
      {"5us", 5},
      {"1h0.5s", 3'600'500'000},
      {" 10m ", minutes(10).us}};
  for (const auto& [text, us] : cases) {
    const auto span = parse_duration(text);
    ASSERT_TRUE(span.has_value()) << text << ": " << span.error().message;
    EXPECT_EQ(span->us, us) << text;
  }
}

TEST(ParseDuration, RefusesEverythingElse) {
  for (const char* text : {"", "8", "h", "-8h", "8 hours", "30m1h", "1h1h", "1.5h30m", "8H", "1w",
                           "1h 30m", "1h30", "07:00", "1ms1s", "s1"}) {
    const auto span = parse_duration(text);
    ASSERT_FALSE(span.has_value()) << text;
    EXPECT_EQ(span.error().message, "'" + std::string(text) +
                                        "' is not a time span; expected numbers with d, h, m, s or "
                                        "ms, e.g. 8h, 1h30m, 120s");
  }
  EXPECT_EQ(parse_duration("106751992d").error().message, "'106751992d' is too large");
  EXPECT_EQ(parse_duration("106751991d99999999h").error().message,
            "'106751991d99999999h' is too large");
}

TEST(ParsePercent, ReadsWholePercentsOnly) {
  EXPECT_EQ(*parse_percent("30%"), 30);
  EXPECT_EQ(*parse_percent("0%"), 0);
  EXPECT_EQ(*parse_percent(" 125 % "), 125);
  for (const char* text : {"", "30", "%", "30.5%", "-1%", "30%%", "a%", "9999999999%"})
    EXPECT_FALSE(parse_percent(text).has_value()) << text;
  EXPECT_EQ(parse_percent("30").error().message,
            "'30' is not a percentage; expected a whole number with %, e.g. 30%");
}

TEST(FormatSize, HasOneDecimalAndTheLargestUnitThatLeavesAtLeastOne) {
  const std::vector<std::pair<std::int64_t, std::string>> cases = {
      {0, "0 B"},
      {1023, "1023 B"},
      {1024, "1.0 KiB"},
      {1536, "1.5 KiB"},
      {12LL << 30, "12.0 GiB"},
      {(12LL << 30) + (1LL << 29), "12.5 GiB"},
      {(1LL << 30) - 1, "1.0 GiB"},  // not "1024.0 MiB"
      {1023LL << 20, "1023.0 MiB"},
      {5000LL << 40, "5000.0 TiB"},
      {-(2LL << 30), "-2.0 GiB"},
      {kMax, "8388608.0 TiB"},
      {std::numeric_limits<std::int64_t>::min(), "-8388608.0 TiB"}};
  for (const auto& [bytes, text] : cases) EXPECT_EQ(format_size(Bytes{bytes}), text) << bytes;
}

TEST(FormatDuration, ShowsTheTwoLargestUnits) {
  const std::vector<std::pair<std::int64_t, std::string>> cases = {
      {0, "0s"},
      {7, "7us"},
      {300'000, "300ms"},
      {999'999, "999ms"},
      {1'900'000, "1s"},
      {seconds(45).us, "45s"},
      {seconds(133).us, "2m13s"},
      {minutes(2).us, "2m"},
      {minutes(65).us, "1h5m"},
      {minutes(65).us + 59'000'000, "1h5m"},
      {hours(76).us, "3d4h"},
      {-seconds(133).us, "-2m13s"},
      {kMax, "106751991d4h"},
      {std::numeric_limits<std::int64_t>::min(), "-106751991d4h"}};
  for (const auto& [us, text] : cases) EXPECT_EQ(format_duration(Duration{us}), text) << us;
}

TEST(FormatAndParse, AgreeOnWhatPeopleWrite) {
  for (const char* text : {"8h", "2m13s", "45s", "300ms", "3d4h"})
    EXPECT_EQ(format_duration(*parse_duration(text)), text);
  for (const char* text : {"12.0 GiB", "1.5 KiB", "512 B", "3.2 TiB"})
    EXPECT_EQ(format_size(*parse_size(text)), text);
}

}  // namespace
}  // namespace takt
