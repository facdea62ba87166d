// Fleets written by people: what they mean, and sentences for what is wrong in them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "fleet/calls.h"
#include "fleet/gpu_models.h"
#include "fleet/read_fleet.h"
#include "support/places.h"

namespace takt::emulator {
namespace {

using ::testing::HasSubstr;

Fleet read(const std::string& yaml) {
  auto fleet = fleet_of_yaml(yaml, "f.yaml");
  EXPECT_TRUE(fleet) << fleet.error().message;
  return fleet.value_or(Fleet{});
}

TEST(YamlFleet, ModelsHaveTheTotalsThatRealCardsPrint) {
  Fleet fleet = read("gpus: [{model: L40S}, {model: A100-80}, {model: H100}, {model: RTXPRO6000}]");
  const std::uint64_t expected_mib[] = {46068, 81920, 81559, 97887};
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(fleet.gpus.at(i).memory_total, Reading(expected_mib[i] * kMiB));
  EXPECT_FALSE(fleet.gpus[0].gpm);
  EXPECT_TRUE(fleet.gpus[2].gpm) << "Hopper has GPM";
}

TEST(YamlFleet, EveryGpuHasAnIdentityOfItsOwnThatStaysTheSame) {
  const std::string yaml = "name: x\ngpus: [{model: L40S, count: 40}]";
  Fleet a = read(yaml), b = read(yaml), other = read("name: y\ngpus: [{model: L40S, count: 40}]");
  std::set<std::string> uuids, buses;
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(a.gpus[i].uuid, b.gpus[i].uuid);
    EXPECT_EQ(a.gpus[i].uuid.size(), 40u);
    uuids.insert(a.gpus[i].uuid);
    uuids.insert(other.gpus[i].uuid);
    buses.insert(a.gpus[i].bus_id);
  }
  EXPECT_EQ(uuids.size(), 80u);
  EXPECT_EQ(buses.size(), 40u);
}

TEST(YamlFleet, MigInstancesTakeLegalPlaces) {
  Fleet fleet = read(
      "gpus: [{model: A100-80, mig: {instances: [{profile: 3g.40gb, start: 4}, 2g.20gb, 1g.10gb, "
      "1g.10gb]}}]");
  const auto& migs = fleet.gpus.at(0).migs;
  ASSERT_EQ(migs.size(), 4u);
  const std::uint64_t starts[] = {4, 0, 2, 3};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(migs[i].start, Reading(starts[i]));
  EXPECT_EQ(fleet.gpus[0].mig_current, Reading(1));
  EXPECT_FALSE(fleet.gpus[0].utilization_gpu) << "NVML has no utilisation in MIG mode";
}

TEST(YamlFleet, FaultsAndLinksAreRead) {
  Fleet fleet = read(
      "gpus:\n"
      "  - {model: A100-80, count: 2}\n"
      "  - model: L40S\n"
      "    fault: {hang: [nvmlDeviceGetMemoryInfo_v2, PowerUsage], after: 2s, error: {Temperature: "
      "GPU_IS_LOST},\n"
      "            xid: [{at: 3s, code: 79}, {at: 1s, code: 31}]}\n"
      "links: [{between: [0, 1], kind: nvlink, count: 12}, {between: [1, 2], kind: phb}]\n");
  const FleetFault& fault = fleet.gpus.at(2).fault;
  EXPECT_EQ(fault.hang, (std::vector<std::string>{"memoryinfo", "powerusage"}));
  EXPECT_EQ(fault.errors.at("temperature"), Code::gpu_is_lost);
  EXPECT_EQ(fault.xids.at(0).code, 31u) << "in the order of time";
  EXPECT_EQ(fault.after_seconds, 2);
  EXPECT_EQ(fleet.gpus[0].nvlinks.at(0).peer, 1u);
  EXPECT_EQ(fleet.gpus[1].nvlinks.at(0).count, 12u);
  EXPECT_EQ(fleet.topology.at({1, 2}), Topology::hostbridge);
}

TEST(YamlFleet, AForeignProcessHoldsMemoryFromTheStart) {
  Fleet fleet =
      read("gpus: [{model: L40S, processes: [{pid: 1, name: a.py, memory: 12GiB, sm: 0.7}]}]");
  const FleetGpu& gpu = fleet.gpus.at(0);
  EXPECT_EQ(gpu.memory_used, Reading(12ULL << 30));
  EXPECT_EQ(*gpu.memory_total, *gpu.memory_used + *gpu.memory_reserved + *gpu.memory_free);
  EXPECT_EQ(gpu.utilization_gpu, Reading(70));
}

TEST(YamlFleet, AFleetWithoutADriverNeedsNoGpus) {
  EXPECT_EQ(read("driver: absent").driver, DriverState::absent);
  EXPECT_EQ(read("driver: {state: too-old}\ngpus: [{model: T4}]").driver, DriverState::too_old);
}

struct Bad {
  const char* yaml;
  const char* place;  // file and line
  const char* field;
  const char* expected;  // part of what is said to have been expected
};

class BadFleet : public ::testing::TestWithParam<Bad> {};

TEST_P(BadFleet, IsRefusedWithFileLineFieldAndExpectation) {
  auto fleet = fleet_of_yaml(GetParam().yaml, "f.yaml");
  ASSERT_FALSE(fleet);
  EXPECT_EQ(fleet.error().kind, ErrorKind::invalid);
  EXPECT_THAT(fleet.error().message, HasSubstr(GetParam().place));
  EXPECT_THAT(fleet.error().message, HasSubstr(GetParam().field));
  EXPECT_THAT(fleet.error().message, HasSubstr(GetParam().expected));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadFleet,
    ::testing::Values(
        Bad{"gpus:\n  - {model: L40S, memroy: 3}", "f.yaml: line 2:", "gpus[0].memroy",
            "expected one of: model"},
        Bad{"gpus:\n  - {model: Z9}", "line 2:", "gpus[0].model is 'Z9'", "A100-80"},
        Bad{"gpus:\n\n  - {count: 2}", "line 3:", "gpus[0].model is missing", "L40S"},
        Bad{"gpus: 7", "line 1:", "gpus is not a list", "items"},
        Bad{"name: x", "line 1:", "gpus is empty or missing", "list of GPUs"},
        Bad{"gpus: [{model: L40S, count: 0}]", "line 1:", "gpus[0].count is '0'", "from 1 to 64"},
        Bad{"gpus: [{model: L40S, count: -1}]", "line 1:", "gpus[0].count", "whole number"},
        Bad{"gpus: [{model: L40S, memory: lots}]", "line 1:", "gpus[0].memory is 'lots'",
            "a size such as"},
        Bad{"gpus: [{model: L40S, memory: 100MiB}]", "line 1:", "gpus[0].memory", "609 MiB"},
        Bad{"gpus: [{model: L40S, model: T4}]", "line 1:", "gpus[0].model is given twice", "once"},
        Bad{"gpus: [{model: L40S, mig: {mode: enabled}}]", "line 1:", "gpus[0].mig", "not offered"},
        Bad{"gpus:\n- model: H100\n  mig:\n    instances: [3g.20gb]",
            "line 4:", "instances[0] is profile '3g.20gb'", "3g.40gb"},
        Bad{"gpus: [{model: H100, mig: {instances: [4g.40gb, 4g.40gb]}}]",
            "line 1:", "instances[1]", "4 of 7"},
        Bad{"gpus: [{model: H100, mig: {instances: [{profile: 3g.40gb, start: 2}]}}]",
            "line 1:", "instances[0]", "no free legal place at 2"},
        Bad{"gpus: [{model: H100, mig: {mode: maybe}}]", "line 1:", "gpus[0].mig.mode is 'maybe'",
            "enabled or"},
        Bad{"gpus: [{model: L40S, processes: [{name: a}]}]",
            "line 1:", "processes[0].pid is missing", "process id"},
        Bad{"gpus: [{model: L40S, processes: [{pid: 5, memory: 90GiB}]}]",
            "line 1:", "processes[0].memory", "MiB are free"},
        Bad{"gpus: [{model: L40S, throttle: [heat]}]", "line 1:", "gpus[0].throttle",
            "sw_power_cap"},
        Bad{"gpus:\n- model: L40S\n  fault:\n    hang: [Memry]",
            "line 4:", "fault.hang names the call 'Memry'", "MemoryInfo"},
        Bad{"gpus: [{model: L40S, fault: {hang: yes}}]", "line 1:", "fault.hang",
            "'all' or a list"},
        Bad{"gpus: [{model: L40S, fault: {error: {MemoryInfo: BROKEN}}}]",
            "line 1:", "fault.error is 'BROKEN'", "GPU_IS_LOST"},
        Bad{"gpus: [{model: L40S, fault: {after: soon}}]", "line 1:", "fault.after is 'soon'",
            "a time such as"},
        Bad{"gpus: [{model: L40S, fault: {xid: [{at: 1s}]}}]", "line 1:", "xid[0].code is missing",
            "79"},
        Bad{"gpus: [{model: L40S, fault: {lost: maybe}}]", "line 1:", "fault.lost",
            "true or false"},
        Bad{"driver: gone\ngpus: [{model: L40S}]", "line 1:", "driver is 'gone'", "too-old"},
        Bad{"driver: {cuda: twelve}\ngpus: [{model: L40S}]", "line 1:", "driver.cuda is 'twelve'",
            "12.4"},
        Bad{"gpus: [{model: L40S}]\nlinks: [{between: [0, 4], kind: sys}]",
            "line 2:", "links[0].between", "indices from 0"},
        Bad{"gpus: [{model: L40S, count: 2}]\nlinks: [{between: [0, 1], kind: string}]",
            "line 2:", "links[0].kind is 'string'", "nvlink"},
        Bad{"gpus: [{model: H100, count: 3}]\nlinks: [{between: [0, 1, 2], kind: nvlink, count: "
            "18}]",
            "line 2:", "36 NVLinks", "at most 18"},
        Bad{"gpus: [{model: L40S, uuid: 7}]", "line 1:", "gpus[0].uuid is '7'", "GPU-"},
        Bad{"gpus: [\n  {model: L40S", "f.yaml: line ", "", "expected a fleet"},
        Bad{"just words", "line 1:", "the file is not a mapping", "gpus"}));

TEST(FleetFile, ThatIsEmptyMissingOrAFolderIsRefused) {
  EXPECT_THAT(fleet_of_text("", "e.yaml", "").error().message, HasSubstr("e.yaml: line 1: empty"));
  EXPECT_THAT(read_fleet("/nonexistent/f.yaml").error().message, HasSubstr("No such file"));
  EXPECT_THAT(read_fleet("/tmp").error().message, HasSubstr("not a file"));
}

TEST(FleetFile, XmlWithAValueThatIsNoNumberNamesLineAndField) {
  auto fleet = fleet_of_text(
      "<nvidia_smi_log>\n<gpu "
      "id=\"1\">\n<uuid>GPU-1</uuid>\n<fan_speed>quick</fan_speed>\n</gpu>\n</nvidia_smi_log>",
      "x.xml", "");
  ASSERT_FALSE(fleet);
  EXPECT_THAT(fleet.error().message,
              HasSubstr("x.xml: line 4: fan_speed is 'quick'; expected a number of %"));
}

TEST(FleetFile, XmlThatDoesNotNestIsRefused) {
  EXPECT_THAT(fleet_of_text("<a>\n<b>\n</a>", "x.xml", "").error().message,
              HasSubstr("line 3: </a> closes nothing; expected </b>"));
  EXPECT_THAT(fleet_of_text("<a></a>", "x.xml", "").error().message, HasSubstr("no GPU in it"));
}

TEST(FleetFile, QTextWithoutAGpuIsRefused) {
  auto fleet = fleet_of_text(
      "==============NVSMI LOG==============\nDriver Version : 1\nAttached GPUs : 0\n", "q.txt",
      "");
  ASSERT_FALSE(fleet);
  EXPECT_THAT(fleet.error().message, HasSubstr("no GPU in it"));
}

TEST(FleetFile, ACsvRowWithTooFewCellsNamesItsLine) {
  auto fleet =
      fleet_of_text("index, memory.used [MiB], utilization.gpu [%]\n0, 3 MiB\n", "t.csv", "");
  ASSERT_FALSE(fleet);
  EXPECT_THAT(fleet.error().message, HasSubstr("t.csv: line 2: 2 cells; expected 3"));
}

TEST(Words, OfNvidiaSmiBecomeCodesAndNumbersDoNot) {
  EXPECT_EQ(code_by_words("N/A"), Code::not_supported);
  EXPECT_EQ(code_by_words("[N/A]"), Code::not_supported);
  EXPECT_EQ(code_by_words("[Not Supported]"), Code::not_supported);
  EXPECT_EQ(code_by_words("[Unknown Error]"), Code::unknown);
  EXPECT_EQ(code_by_words("[GPU requires reset]"), Code::reset_required);
  EXPECT_EQ(code_by_words("[GPU is lost]"), Code::gpu_is_lost);
  EXPECT_EQ(code_by_words("[Insufficient Permissions]"), Code::no_permission);
  EXPECT_EQ(code_by_words("Requested functionality has been deprecated"), Code::deprecated);
  EXPECT_EQ(code_by_words("ERR!"), Code::unknown);
  EXPECT_EQ(code_by_words("0 %"), std::nullopt);
  EXPECT_EQ(code_by_words("42 C"), std::nullopt);
}

TEST(Calls, AreTheSameWithAndWithoutPrefixAndVersion) {
  EXPECT_EQ(canonical_call("nvmlDeviceGetMemoryInfo_v2"), "memoryinfo");
  EXPECT_EQ(canonical_call("MemoryInfo"), "memoryinfo");
  EXPECT_TRUE(is_known_call("GetComputeRunningProcesses_v3"));
  EXPECT_FALSE(is_known_call("Everything"));
}

TEST(ExampleFleets, AreAllRead) {
  int read = 0;
  for (const char* name : {"small-team", "mig-h100", "sick", "foreign"}) {
    auto fleet =
        read_fleet(::takt::testing::source_folder() + "/emulator/fleets/" + name + ".yaml");
    ASSERT_TRUE(fleet) << fleet.error().message;
    EXPECT_EQ(fleet->name, name);
    ++read;
  }
  EXPECT_EQ(read, 4);
}

}  // namespace
}  // namespace takt::emulator
