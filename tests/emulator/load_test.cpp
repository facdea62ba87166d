// takt-load's own parts: which devices it sees, what its phases are, its command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "load/options.h"
#include "load/phases.h"
#include "load/visible_devices.h"

namespace takt::emulator {
namespace {

using ::testing::HasSubstr;

const std::vector<PresentGpu> kPresent = {{"GPU-aaaa-1", false, {}},
                                          {"GPU-aabb-2", false, {}},
                                          {"GPU-cccc-3", true, {"MIG-dddd-1", "MIG-eeee-2"}},
                                          {"GPU-ffff-4", true, {}}};

std::vector<VisibleDevice> see(const char* variable) {
  return visible_devices(kPresent, std::string(variable));
}
using Seen = std::vector<VisibleDevice>;

TEST(VisibleDevices, AreNamedByIndexUuidOrABeginningThatFitsOne) {
  EXPECT_EQ(see("1,0"), (Seen{{1, -1}, {0, -1}}));
  EXPECT_EQ(see("GPU-aabb-2"), (Seen{{1, -1}}));
  EXPECT_EQ(see("GPU-aab"), (Seen{{1, -1}}));
  EXPECT_EQ(see("GPU-aa"), Seen{}) << "fits two";
  EXPECT_EQ(see(" 0 , 1 "), (Seen{{0, -1}, {1, -1}}));
}

TEST(VisibleDevices, EndAtTheFirstEntryThatFitsNone) {
  EXPECT_EQ(see("0,9,1"), (Seen{{0, -1}}));
  EXPECT_EQ(see("-1"), Seen{});
  EXPECT_EQ(see("NoDevFiles"), Seen{});
  EXPECT_EQ(see("0,0,1"), (Seen{{0, -1}})) << "named twice";
  EXPECT_EQ(see("99999999999999999999"), Seen{});
}

TEST(VisibleDevices, AreNoneForTheEmptyTextAndAllWhereUnset) {
  EXPECT_EQ(see(""), Seen{});
  EXPECT_EQ(visible_devices({kPresent[0], kPresent[1]}, std::nullopt), (Seen{{0, -1}, {1, -1}}));
  EXPECT_EQ(visible_devices({}, std::nullopt), Seen{});
}

TEST(VisibleDevices, OfMigAreOneAtMost) {
  EXPECT_EQ(see("MIG-eeee"), (Seen{{2, 1}}));
  EXPECT_EQ(see("MIG-eeee-2,MIG-dddd-1"), (Seen{{2, 1}}));
  EXPECT_EQ(see("2"), (Seen{{2, 0}})) << "the card's first MIG device stands for it";
  EXPECT_EQ(see("3"), Seen{}) << "MIG mode without a device runs nothing";
}

double total_seconds(const std::vector<Phase>& phases) {
  double sum = 0;
  for (const auto& phase : phases) sum += phase.seconds;
  return sum;
}

RC_GTEST_PROP(Patterns, LastAsLongAsAskedWithinTheirMemoryAndTheSameForASeed, ()) {
  auto pattern = static_cast<Pattern>(*rc::gen::inRange(0, 4));
  double seconds = *rc::gen::inRange(1, 300) / 10.0;
  auto memory = *rc::gen::inRange<std::uint64_t>(0, 80ULL << 30);
  double strength = *rc::gen::inRange(0, 101) / 100.0;
  auto seed = *rc::gen::arbitrary<std::uint64_t>();
  auto phases = phases_of(pattern, seconds, memory, strength, seed);
  auto again = phases_of(pattern, seconds, memory, strength, seed);
  RC_ASSERT(std::abs(total_seconds(phases) - seconds) < 1e-6);
  RC_ASSERT(phases.size() == again.size());
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const Phase& p = phases[i];
    RC_ASSERT(p.sm == again[i].sm && p.seconds == again[i].seconds && p.memory == again[i].memory);
    RC_ASSERT(p.memory <= memory);
    for (double share : {p.sm, p.tensor, p.dram, p.busy}) RC_ASSERT(share >= 0 && share <= 1);
  }
}

double mean_sm(Pattern pattern) {
  double sum = 0;
  auto phases = phases_of(pattern, 60, 1 << 30, 0.8, 3);
  for (const auto& phase : phases) sum += phase.sm * phase.seconds;
  return sum / 60;
}

TEST(Patterns, DifferAsTheirWorkDoes) {
  EXPECT_GT(mean_sm(Pattern::batch), mean_sm(Pattern::training));
  EXPECT_GT(mean_sm(Pattern::training), mean_sm(Pattern::serving));
  EXPECT_GT(mean_sm(Pattern::serving), mean_sm(Pattern::notebook));
  EXPECT_LT(mean_sm(Pattern::notebook), 0.2);
  EXPECT_NE(phases_of(Pattern::serving, 9, 1, 1, 1)[9].sm,
            phases_of(Pattern::serving, 9, 1, 1, 2)[9].sm);
}

TEST(PhaseText, HasPartsInOrderAndTheRestIsZero) {
  auto phase = parse_phase("3s:12GiB:0.6:30%:0.4:2GiB/s:1GiB/s");
  ASSERT_TRUE(phase) << phase.error().message;
  EXPECT_EQ(phase->seconds, 3);
  EXPECT_EQ(phase->memory, 12ULL << 30);
  EXPECT_EQ(phase->sm, 0.6);
  EXPECT_EQ(phase->tensor, 0.3);
  EXPECT_EQ(phase->pcie_rx, 2.0 * (1 << 30));
  EXPECT_EQ(parse_phase("500ms:1MiB")->sm, 0);
  for (const char* bad :
       {"", "3s", "x:1GiB", "3s:many", "3s:1GiB:2", "3s:1GiB:1:1:1:fast", "1:1:1:1:1:1:1:1"})
    EXPECT_FALSE(parse_phase(bad)) << bad;
}

TEST(LoadOptions, AreUnderstood) {
  auto options = parse_load_options(
      {"--memory", "12GiB", "--sm=0.6", "--duration", "3s", "--exit-code", "7", "--ignore-term"});
  ASSERT_TRUE(options) << options.error().message;
  ASSERT_EQ(options->phases.size(), 1u);
  EXPECT_EQ(options->phases[0].memory, 12ULL << 30);
  EXPECT_EQ(options->phases[0].sm, 0.6);
  EXPECT_EQ(options->exit_code, 7);
  EXPECT_TRUE(options->ignore_term);
  EXPECT_FALSE(options->repeat);
  EXPECT_TRUE(parse_load_options({"--duration", "0"})->repeat);
  EXPECT_GT(parse_load_options({"--pattern", "training", "--duration", "5s"})->phases.size(), 10u);
}

TEST(LoadOptions, ThatAreWrongAreNamedWithWhatWasExpected) {
  auto message = [](std::vector<std::string> words) {
    auto options = parse_load_options(words);
    return options ? std::string("accepted") : options.error().message;
  };
  EXPECT_THAT(message({"--memory", "lots"}),
              HasSubstr("--memory 'lots': expected a size such as 12GiB"));
  EXPECT_THAT(message({"--sm", "1.5"}), HasSubstr("expected a share"));
  EXPECT_THAT(message({"--exit-code", "256"}), HasSubstr("0 to 255"));
  EXPECT_THAT(message({"--pattern", "sleep"}), HasSubstr("serving, training"));
  EXPECT_THAT(message({"--sm"}), HasSubstr("needs a value"));
  EXPECT_THAT(message({"--what", "1"}), HasSubstr("--what is not known"));
  EXPECT_THAT(message({"--phase", "1s"}), HasSubstr("DURATION:MEMORY"));
  EXPECT_THAT(message({"--phase", "1s:1GiB", "--pattern", "batch"}), HasSubstr("exclude"));
}

}  // namespace
}  // namespace takt::emulator
