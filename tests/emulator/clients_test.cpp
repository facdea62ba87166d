// Memory and activity of programs on one emulated GPU.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <map>

#include "daemon/gpu.h"
#include "fleet/read_fleet.h"

namespace takt::emulator {
namespace {

Fleet fleet_of(const std::string& yaml) {
  auto fleet = fleet_of_yaml(yaml, "f.yaml");
  EXPECT_TRUE(fleet) << fleet.error().message;
  return *fleet;
}

constexpr std::uint64_t kStart = 1'000'000'000;
constexpr std::uint64_t kSecond = 1'000'000;

// One GPU and a shorthand for asking it as connection `who` with pid 100 + who.
struct Bench {
  explicit Bench(const std::string& yaml) : fleet(fleet_of(yaml)), gpu(fleet, 0, kStart) {}
  Reply ask(const std::string& call, std::vector<std::uint64_t> numbers = {}, std::uint64_t who = 0,
            int mig = -1, std::uint64_t at = kStart) {
    auto reply = gpu.answer({call, mig, std::move(numbers), "prog"}, who,
                            static_cast<unsigned>(100 + who), at);
    EXPECT_TRUE(reply) << call << " hangs";
    return reply.value_or(Reply{});
  }
  bool hangs(const std::string& call, std::uint64_t at) {
    return !gpu.answer({call, -1, {}, {}}, 0, 1, at);
  }
  Fleet fleet;
  Gpu gpu;
};

std::vector<std::uint64_t> activity(double busy, double sm, double tensor = 0, double dram = 0,
                                    std::uint64_t rx = 0, std::uint64_t tx = 0) {
  auto m = [](double share) { return static_cast<std::uint64_t>(share * 1e6); };
  return {m(busy), m(sm), m(tensor), m(dram), rx, tx};
}

RC_GTEST_PROP(Memory, StaysWithinTheCardWhateverClientsDo, ()) {
  const bool mig = *rc::gen::arbitrary<bool>();
  Bench bench(mig ? "gpus: [{model: H100, mig: {instances: [3g.40gb, 2g.20gb]}}]"
                  : "gpus: [{model: L40S, processes: [{pid: 9, memory: 3GiB}]}]");
  std::map<std::uint64_t, std::uint64_t> held;  // what each client was granted
  std::map<std::uint64_t, int> where;
  const int steps = *rc::gen::inRange(1, 120);
  for (int step = 0; step < steps; ++step) {
    std::uint64_t who = *rc::gen::inRange<std::uint64_t>(1, 6);
    int what = *rc::gen::inRange(0, 10);
    if (held.count(who) == 0) {
      where[who] = mig ? *rc::gen::inRange(0, 2) : -1;
      bench.ask("load:attach", {}, who, where[who]);
      held[who] = 0;
    } else if (what == 0) {
      bench.gpu.disconnected(who, kStart);
      held.erase(who);
    } else {
      auto bytes = *rc::gen::inRange<std::uint64_t>(0, 60ULL << 30);
      auto reply = bench.ask("load:memory", {bytes}, who);
      RC_ASSERT(reply.code == Code::success || reply.code == Code::memory);
      if (reply.code == Code::success) held[who] = bytes;
    }
    for (int device = mig ? 0 : -1; device < (mig ? 2 : 0); ++device) {
      auto info = bench.ask("memoryinfo", {2}, 0, device).numbers;
      std::uint64_t sum = 0;
      for (const auto& [id, bytes] : held)
        if (where[id] == device) sum += bytes;
      const std::uint64_t at_start = mig ? 0 : 3ULL << 30;
      RC_ASSERT(info[3] == sum + at_start);               // used is exactly what was granted
      RC_ASSERT(info[3] + info[1] + info[2] == info[0]);  // used + reserved + free = total
      RC_ASSERT(info[3] <= info[0]);
    }
  }
  while (!held.empty()) {
    bench.gpu.disconnected(held.begin()->first, kStart);
    held.erase(held.begin());
  }
  RC_ASSERT(bench.gpu.clients().memory(-1) == 0u);
}

RC_GTEST_PROP(Activity, NeverExceedsAWholeCardAndSharesAddUpToIt, ()) {
  Bench bench("gpus: [{model: L40S}]");
  const auto count = *rc::gen::inRange<std::uint64_t>(1, 8);
  double wanted = 0;
  for (std::uint64_t who = 1; who <= count; ++who) {
    double sm = *rc::gen::inRange(0, 101) / 100.0;
    wanted += sm;
    bench.ask("load:attach", {}, who);
    bench.ask("load:activity", activity(sm, sm), who);
  }
  auto util = bench.ask("utilizationrates").numbers;
  RC_ASSERT(util[0] <= 100u);
  RC_ASSERT(std::abs(static_cast<double>(util[0]) - std::min(100.0, wanted * 100)) <= 1);
  double sum = 0;
  for (const auto& share : bench.gpu.clients().shares()) sum += share.sm;
  RC_ASSERT(std::abs(sum - std::min(1.0, wanted)) < 1e-5);
}

TEST(Memory, RefusedLeavesTheOldHoldingAndSaysWhatIsFree) {
  Bench bench("gpus: [{model: L40S, memory: 20GiB, reserved: 1GiB}]");
  bench.ask("load:attach", {}, 1);
  EXPECT_EQ(bench.ask("load:memory", {12ULL << 30}, 1).code, Code::success);
  Reply refused = bench.ask("load:memory", {20ULL << 30}, 1);
  EXPECT_EQ(refused.code, Code::memory);
  EXPECT_EQ(refused.numbers, (std::vector<std::uint64_t>{20ULL << 30, 7ULL << 30}));
  EXPECT_EQ(bench.gpu.clients().memory(-1), 12ULL << 30);
}

TEST(Memory, OfTheFirstVersionCountsWhatTheDriverReserves) {
  Bench bench("gpus: [{model: L40S}]");
  auto v1 = bench.ask("memoryinfo", {1}).numbers;
  auto v2 = bench.ask("memoryinfo", {2}).numbers;
  EXPECT_EQ(v1[3], 609 * kMiB);
  EXPECT_EQ(v2[3], 0u);
  EXPECT_EQ(v1[0], v1[2] + v1[3]);
  EXPECT_EQ(v2[0], v2[1] + v2[2] + v2[3]);
}

TEST(Memory, WithoutAttachingIsRefused) {
  Bench bench("gpus: [{model: L40S}]");
  EXPECT_EQ(bench.ask("load:memory", {1}, 1).code, Code::uninitialized);
  EXPECT_EQ(bench.ask("load:memory", {}, 1).code, Code::uninitialized);
  EXPECT_EQ(bench.ask("nonsense").code, Code::function_not_found);
}

TEST(Processes, OfClientsHaveTheKernelsPidAndTheirMemory) {
  Bench bench("gpus: [{model: L40S, processes: [{pid: 9, memory: 1GiB, kind: both}]}]");
  bench.ask("load:attach", {}, 7);
  bench.ask("load:memory", {5 * kMiB}, 7);
  constexpr std::uint64_t none = 0xFFFFFFFF;
  EXPECT_EQ(bench.ask("computerunningprocesses").numbers,
            (std::vector<std::uint64_t>{9, 1ULL << 30, none, none, 107, 5 * kMiB, none, none}));
  EXPECT_EQ(bench.ask("graphicsrunningprocesses").numbers.size(), 4u)
      << "only the foreign one draws";
}

TEST(Processes, OnAMigDeviceAreListedThereAndWithInstanceIdsOnTheCard) {
  Bench bench("gpus: [{model: H100, mig: {instances: [3g.40gb, 2g.20gb]}}]");
  bench.ask("load:attach", {}, 1, 1);
  bench.ask("load:memory", {kMiB}, 1);
  EXPECT_TRUE(bench.ask("computerunningprocesses", {}, 0, 0).numbers.empty());
  std::vector<std::uint64_t> line = {101, kMiB, 2, 0};
  EXPECT_EQ(bench.ask("computerunningprocesses", {}, 0, 1).numbers, line);
  EXPECT_EQ(bench.ask("computerunningprocesses").numbers, line);
}

TEST(Processes, ThatDoNothingHaveNoUtilizationSample) {
  Bench bench("gpus: [{model: L40S}]");
  EXPECT_EQ(bench.ask("processutilization").code, Code::not_found);
  for (std::uint64_t who : {1u, 2u}) {
    bench.ask("load:attach", {}, who);
    bench.ask("load:activity", activity(0.9, 0.9), who);
  }
  auto samples = bench.ask("processutilization").numbers;
  ASSERT_EQ(samples.size(), 8u);
  EXPECT_EQ(samples[2] + samples[6], 100u) << "two that want 90 % share the card";
}

TEST(Gpm, AveragesOfTwoSamplesAreThoseOfTheTimeBetween) {
  Bench bench("gpus: [{model: H100}]");
  bench.ask("load:attach", {}, 1);
  auto first = bench.ask("gpmsampleget").numbers;
  bench.ask("load:activity", activity(1, 0.8, 0.4, 0.6, 3'000'000, 1'000'000), 1, -1, kStart);
  bench.ask("load:activity", activity(0, 0), 1, -1, kStart + kSecond);  // one second busy, one idle
  auto second = bench.ask("gpmsampleget", {}, 0, -1, kStart + 2 * kSecond).numbers;
  ASSERT_EQ(second.size(), 7u);
  EXPECT_EQ(second[0] - first[0], 2 * kSecond);
  EXPECT_NEAR(static_cast<double>(second[2] - first[2]) / 2e6, 0.4, 1e-6);  // SM: half of 0.8
  EXPECT_NEAR(static_cast<double>(second[3] - first[3]) / 2e6, 0.2, 1e-6);
  EXPECT_NEAR(static_cast<double>(second[4] - first[4]) / 2e6, 0.3, 1e-6);
  EXPECT_EQ(second[5] - first[5], 1'000'000u);
  EXPECT_EQ(second[6] - first[6], 3'000'000u);
}

TEST(Gpm, OfAMigDeviceIsRelativeToItAndTheCardWeighsSlices) {
  Bench bench("gpus: [{model: H100, mig: {instances: [3g.40gb, 2g.20gb]}}]");
  bench.ask("load:attach", {}, 1, 0);
  bench.ask("load:activity", activity(1, 1), 1);
  auto after = kStart + kSecond;
  EXPECT_EQ(bench.ask("gpmsampleget", {}, 0, 0, after).numbers[2], kSecond);
  EXPECT_EQ(bench.ask("gpmsampleget", {}, 0, 1, after).numbers[2], 0u);
  EXPECT_NEAR(static_cast<double>(bench.ask("gpmsampleget", {}, 0, -1, after).numbers[2]), 3e6 / 7,
              1);
}

TEST(Gpm, IsNotSupportedBeforeHopper) {
  Bench bench("gpus: [{model: A100-80}]");
  EXPECT_EQ(bench.ask("gpmquerydevicesupport").numbers, std::vector<std::uint64_t>{0});
  EXPECT_EQ(bench.ask("gpmsampleget").code, Code::not_supported);
}

TEST(Power, RisesWithActivityAndEnergyIsItsSum) {
  Bench bench("gpus: [{model: L40S}]");
  auto idle = bench.ask("powerusage").numbers.at(0);
  EXPECT_EQ(idle, 35'000u);
  bench.ask("load:attach", {}, 1);
  bench.ask("load:activity", activity(1, 1, 1, 1), 1, -1, kStart + 10 * kSecond);
  auto busy = bench.ask("powerusage", {}, 0, -1, kStart + 10 * kSecond).numbers.at(0);
  EXPECT_GT(busy, 300'000u);
  EXPECT_LE(busy, 350'000u);
  auto energy = bench.ask("totalenergyconsumption", {}, 0, -1, kStart + 12 * kSecond).numbers.at(0);
  EXPECT_NEAR(static_cast<double>(energy), static_cast<double>(idle * 10 + busy * 2), 2);
  EXPECT_GT(bench.ask("temperature").numbers.at(0), 60u);
  EXPECT_EQ(bench.ask("performancestate").numbers.at(0), 0u);
}

TEST(Faults, BeginAfterTheirTime) {
  Bench bench("gpus: [{model: L40S, fault: {hang: all, after: 2s}}]");
  EXPECT_FALSE(bench.hangs("memoryinfo", kStart + kSecond));
  EXPECT_TRUE(bench.hangs("memoryinfo", kStart + 2 * kSecond));
  EXPECT_TRUE(bench.hangs("load:attach", kStart + 2 * kSecond));
  EXPECT_FALSE(bench.hangs("uuid", kStart + 2 * kSecond))
      << "the driver knows the name of a card that hangs";
}

TEST(Faults, HangOnlyTheCallsThatAreNamed) {
  Bench bench("gpus: [{model: L40S, fault: {hang: [PowerUsage, UUID]}}]");
  EXPECT_TRUE(bench.hangs("powerusage", kStart));
  EXPECT_TRUE(bench.hangs("uuid", kStart));
  EXPECT_FALSE(bench.hangs("temperature", kStart));
}

TEST(Faults, GiveTheCodesThatTheFleetSays) {
  Bench named("gpus: [{model: L40S, fault: {error: {PowerUsage: NO_PERMISSION, all: UNKNOWN}}}]");
  EXPECT_EQ(named.ask("powerusage").code, Code::no_permission);
  EXPECT_EQ(named.ask("temperature").code, Code::unknown);
  EXPECT_EQ(named.ask("uuid").code, Code::success);
  Bench lost("gpus: [{model: L40S, fault: {lost: true, after: 1s}}]");
  EXPECT_EQ(lost.ask("memoryinfo").code, Code::success);
  EXPECT_EQ(lost.ask("memoryinfo", {}, 0, -1, kStart + kSecond).code, Code::gpu_is_lost);
  EXPECT_EQ(lost.ask("name", {}, 0, -1, kStart + kSecond).code, Code::success);
  Bench reset("gpus: [{model: L40S, fault: {reset_required: true}}]");
  EXPECT_EQ(reset.ask("utilizationrates").code, Code::reset_required);
}

TEST(Faults, AnOldDriverLacksTheLaterCalls) {
  Bench bench("driver: too-old\ngpus: [{model: V100-16}]");
  EXPECT_EQ(bench.ask("memoryinfo", {2}).code, Code::function_not_found);
  EXPECT_EQ(bench.ask("memoryinfo", {1}).code, Code::success);
  EXPECT_EQ(bench.ask("currentclockseventreasons").code, Code::function_not_found);
  EXPECT_EQ(bench.ask("currentclocksthrottlereasons").code, Code::success);
}

TEST(Xids, AreDueAfterTheirTimeAndOnlyOnce) {
  Bench bench("gpus: [{model: L40S, fault: {xid: [{at: 1s, code: 31}, {at: 3s, code: 79}]}}]");
  EXPECT_TRUE(bench.ask("xids", {0}).numbers.empty());
  EXPECT_EQ(bench.ask("xids", {0}, 0, -1, kStart + kSecond).numbers,
            std::vector<std::uint64_t>{31});
  EXPECT_EQ(bench.ask("xids", {1}, 0, -1, kStart + 3 * kSecond).numbers,
            std::vector<std::uint64_t>{79});
  EXPECT_TRUE(bench.ask("xids", {2}, 0, -1, kStart + 9 * kSecond).numbers.empty());
}

TEST(Messages, AreTheSameAfterTheWireAndGarbageIsRefused) {
  Request request{"memoryinfo", 3, {1, 2, 0xFFFFFFFFFFFFFFFFULL}, "name"};
  auto back = decode_request(encode(request));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->call, request.call);
  EXPECT_EQ(back->mig, 3);
  EXPECT_EQ(back->numbers, request.numbers);
  EXPECT_EQ(back->text, "name");
  std::string packet = encode(Reply{Code::gpu_is_lost, {7}, {"a", ""}});
  EXPECT_EQ(decode_reply(packet)->code, Code::gpu_is_lost);
  for (std::size_t n = 0; n < packet.size(); ++n)
    EXPECT_FALSE(decode_reply(packet.substr(0, n))) << n;
  EXPECT_FALSE(decode_reply(packet + "x"));
  EXPECT_FALSE(decode_request(std::string(64, '\xff')));
}

}  // namespace
}  // namespace takt::emulator
