// Every recorded nvidia-smi output against the values that other projects' parsers read from it.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "fleet/read_fleet.h"
#include "support/shared_data.h"

namespace takt::emulator {
namespace {

using nlohmann::json;

json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  return json::parse(file);
}

void expect_number(const Reading& reading, double expected, const std::string& what,
                   double tolerance = 0) {
  ASSERT_TRUE(reading) << what << " is missing with code " << static_cast<int>(reading.error());
  EXPECT_NEAR(static_cast<double>(*reading), expected, tolerance) << what;
}

struct Check {
  const char* field;
  Reading FleetGpu::*reading;
  double scale;
};

// A field that the expectation lacks must be a code here: never a number that nobody printed.
void compare(const FleetGpu& gpu, const json& fields, std::initializer_list<Check> checks,
             const std::string& where) {
  for (const auto& check : checks) {
    std::string what = where + ": " + check.field;
    const Reading& reading = gpu.*check.reading;
    if (fields.contains(check.field)) {
      expect_number(reading, fields[check.field].get<double>() * check.scale, what, 0.01);
    } else {
      EXPECT_FALSE(reading) << what << " reads " << reading.value_or(0)
                            << " and nothing was expected";
    }
  }
}

TEST(RecordedFleet, TelegrafsXmlFilesAreReadWithTelegrafsValues) {
  TAKT_SHARED_DATA(folder, "data/telemetry/nvidia_smi_xml/telegraf");
  json expected = read_json(folder / "expected.json");
  ASSERT_GE(expected.size(), 7u);
  for (const auto& [file, records] : expected.items()) {
    auto fleet = read_fleet((folder / file).string());
    ASSERT_TRUE(fleet) << fleet.error().message;
    ASSERT_EQ(fleet->gpus.size(), 1u) << file;
    const FleetGpu& gpu = fleet->gpus[0];
    EXPECT_EQ(gpu.uuid, records[0]["tags"]["uuid"]) << file;
    EXPECT_EQ(gpu.name, records[0]["tags"]["name"]) << file;
    constexpr double mib = 1048576.0;
    compare(gpu, records[0]["fields"],
            {{"memory_total", &FleetGpu::memory_total, mib},
             {"memory_reserved", &FleetGpu::memory_reserved, mib},
             {"memory_used", &FleetGpu::memory_used, mib},
             {"memory_free", &FleetGpu::memory_free, mib},
             {"utilization_gpu", &FleetGpu::utilization_gpu, 1},
             {"utilization_memory", &FleetGpu::utilization_memory, 1},
             {"temperature_gpu", &FleetGpu::temperature, 1},
             {"fan_speed", &FleetGpu::fan, 1},
             {"power_draw", &FleetGpu::power, 1000},
             {"clocks_current_graphics", &FleetGpu::clock_graphics, 1},
             {"clocks_current_sm", &FleetGpu::clock_sm, 1},
             {"clocks_current_memory", &FleetGpu::clock_memory, 1},
             {"clocks_current_video", &FleetGpu::clock_video, 1}},
            file);
  }
}

TEST(RecordedFleet, TelegrafsMigDevicesAndProcessesAreRead) {
  TAKT_SHARED_DATA(folder, "data/telemetry/nvidia_smi_xml/telegraf");
  json expected = read_json(folder / "expected.json");
  int migs = 0, processes = 0;
  for (const auto& [file, records] : expected.items()) {
    auto fleet = read_fleet((folder / file).string());
    ASSERT_TRUE(fleet) << fleet.error().message;
    const FleetGpu& gpu = fleet->gpus[0];
    std::size_t next_mig = 0, next_process = 0;
    for (const auto& record : records) {
      const json& f = record["fields"];
      if (record["measurement"] == "nvidia_smi_mig") {
        ASSERT_LT(next_mig, gpu.migs.size()) << file;
        const FleetMig& mig = gpu.migs[next_mig++];
        EXPECT_EQ(std::to_string(mig.gpu_instance), record["tags"]["gpu_index"]);
        EXPECT_EQ(std::to_string(mig.compute_instance), record["tags"]["compute_index"]);
        expect_number(mig.memory_total, f["memory_fb_total"].get<double>() * 1048576.0, file);
        expect_number(mig.memory_used, f["memory_fb_used"].get<double>() * 1048576.0, file);
        EXPECT_EQ(mig.uuid.rfind("MIG-", 0), 0u);
        ++migs;
      } else if (record["measurement"] == "nvidia_smi_process") {
        ASSERT_LT(next_process, gpu.processes.size()) << file;
        const FleetProcess& process = gpu.processes[next_process++];
        EXPECT_EQ(process.pid, f["pid"].get<unsigned>());
        // telegraf keeps the first words of a long command line.
        EXPECT_EQ(process.name.rfind(record["tags"]["name"].get<std::string>(), 0), 0u)
            << process.name;
        EXPECT_EQ(process.graphics,
                  record["tags"]["type"] == "G" || record["tags"]["type"] == "C+G");
        expect_number(process.memory, f["used_memory"].get<double>() * 1048576.0, file);
        ++processes;
      }
    }
  }
  EXPECT_EQ(migs, 4);
  EXPECT_EQ(processes, 5);
}

TEST(RecordedFleet, NetdatasFilesAreReadWithNetdatasValues) {
  TAKT_SHARED_DATA(folder, "data/telemetry/nvidia_smi_xml/netdata");
  json expected = read_json(folder / "expected.json");
  const std::map<std::string, std::string> files = {
      {"success A100-SXM4 MIG [XML]", "a100-sxm4-mig.xml"},
      {"success RTX 2080 Win [XML]", "rtx-2080-win.xml"},
      {"success RTX 3060 [XML]", "rtx-3060.xml"},
      {"success Tesla P100 [CSV]", "tesla-p100.csv"},
      {"success Tesla P100 [XML]", "tesla-p100.xml"}};
  ASSERT_EQ(expected.size(), files.size());
  for (const auto& [title, values] : expected.items()) {
    auto fleet = read_fleet((folder / files.at(title)).string());
    ASSERT_TRUE(fleet) << fleet.error().message;
    ASSERT_EQ(fleet->gpus.size(), 1u);
    const FleetGpu& gpu = fleet->gpus[0];
    json fields;
    std::string prefix = "gpu_" + gpu.uuid + "_";
    for (const auto& [name, value] : values.items())
      if (name.rfind(prefix, 0) == 0) fields[name.substr(prefix.size())] = value;
    ASSERT_GE(fields.size(), 10u) << title;
    compare(gpu, fields,
            {{"frame_buffer_memory_usage_used", &FleetGpu::memory_used, 1},
             {"frame_buffer_memory_usage_free", &FleetGpu::memory_free, 1},
             {"frame_buffer_memory_usage_reserved", &FleetGpu::memory_reserved, 1},
             {"gpu_utilization", &FleetGpu::utilization_gpu, 1},
             {"mem_utilization", &FleetGpu::utilization_memory, 1},
             {"temperature", &FleetGpu::temperature, 1},
             {"fan_speed_perc", &FleetGpu::fan, 1},
             {"graphics_clock", &FleetGpu::clock_graphics, 1},
             {"sm_clock", &FleetGpu::clock_sm, 1},
             {"mem_clock", &FleetGpu::clock_memory, 1},
             {"video_clock", &FleetGpu::clock_video, 1}},
            title);
    // netdata cuts watts to whole ones.
    expect_number(gpu.power, fields["power_draw"].get<double>() * 1000, title + ": power", 1000);
    if (fields.contains("mig_devices_count")) {
      EXPECT_EQ(gpu.migs.size(), fields["mig_devices_count"].get<std::size_t>());
      EXPECT_EQ(gpu.mig_current, Reading(1));
    }
    if (fields.contains("pcie_bandwidth_usage_rx") && gpu.pcie_rx) {
      EXPECT_EQ(*gpu.pcie_rx * 1024, fields["pcie_bandwidth_usage_rx"].get<std::uint64_t>());
    }
  }
}

TEST(RecordedFleet, EveryXmlFileIsRead) {
  TAKT_SHARED_DATA(folder, "data/telemetry/nvidia_smi_xml");
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".xml") continue;
    auto fleet = read_fleet(entry.path().string());
    ASSERT_TRUE(fleet) << fleet.error().message;
    EXPECT_EQ(fleet->gpus[0].uuid.rfind("GPU-", 0), 0u) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 12);
}

// "name{labels} value" lines of the exporter's golden output; names without their prefix.
std::multimap<std::string, std::pair<std::string, double>> read_metrics(
    const std::filesystem::path& path) {
  std::multimap<std::string, std::pair<std::string, double>> out;
  std::ifstream file(path);
  const std::string prefix = "nvidia_smi_";
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(prefix, 0) != 0) continue;
    auto name_end = line.find_first_of("{ ");
    auto value_at = line.rfind(' ');
    std::string labels = line[name_end] == '{' ? line.substr(name_end, value_at - name_end) : "";
    out.emplace(line.substr(prefix.size(), name_end - prefix.size()),
                std::pair(labels, std::stod(line.substr(value_at))));
  }
  return out;
}

void compare_metrics(const FleetGpu& gpu, const std::filesystem::path& metrics) {
  auto values = read_metrics(metrics);
  ASSERT_GE(values.size(), 60u);
  json fields;
  for (const auto& [name, value] : values) fields[name] = value.second;
  compare(gpu, fields,
          {{"memory_total_bytes", &FleetGpu::memory_total, 1},
           {"memory_reserved_bytes", &FleetGpu::memory_reserved, 1},
           {"memory_used_bytes", &FleetGpu::memory_used, 1},
           {"memory_free_bytes", &FleetGpu::memory_free, 1},
           {"utilization_gpu_ratio", &FleetGpu::utilization_gpu, 100},
           {"utilization_memory_ratio", &FleetGpu::utilization_memory, 100},
           {"temperature_gpu", &FleetGpu::temperature, 1},
           {"fan_speed_ratio", &FleetGpu::fan, 100},
           {"power_draw_watts", &FleetGpu::power, 1000},
           {"enforced_power_limit_watts", &FleetGpu::power_limit, 1000},
           {"clocks_current_graphics_clock_hz", &FleetGpu::clock_graphics, 1e-6},
           {"clocks_current_sm_clock_hz", &FleetGpu::clock_sm, 1e-6},
           {"clocks_current_memory_clock_hz", &FleetGpu::clock_memory, 1e-6},
           {"clocks_current_video_clock_hz", &FleetGpu::clock_video, 1e-6},
           {"clocks_max_sm_clock_hz", &FleetGpu::clock_sm_max, 1e-6},
           {"clocks_event_reasons_active", &FleetGpu::event_reasons, 1},
           {"pstate", &FleetGpu::performance_state, 1},
           {"mig_mode_current", &FleetGpu::mig_current, 1},
           {"mig_mode_pending", &FleetGpu::mig_pending, 1},
           {"pci_device_id", &FleetGpu::pci_device_id, 1},
           {"ecc_errors_corrected_volatile_total", &FleetGpu::ecc_corrected_volatile, 1},
           {"ecc_errors_uncorrected_volatile_total", &FleetGpu::ecc_uncorrected_volatile, 1},
           {"ecc_errors_uncorrected_aggregate_total", &FleetGpu::ecc_uncorrected_aggregate, 1}},
          metrics.filename().string());
  auto [first, last] = values.equal_range("compute_app_used_memory_bytes");
  for (auto at = first; at != last; ++at) {
    bool found = false;
    for (const auto& process : gpu.processes) {
      std::string label = "pid=\"" + std::to_string(process.pid) + "\"";
      if (at->second.first.find(label) == std::string::npos) continue;
      found = true;
      expect_number(process.memory, at->second.second, label, 1);
      EXPECT_TRUE(process.compute);
      EXPECT_NE(at->second.first.find(process.name), std::string::npos) << process.name;
    }
    EXPECT_TRUE(found) << at->second.first;
  }
}

TEST(RecordedFleet, BothHalvesOfEveryCaptureHaveTheExportersValues) {
  TAKT_SHARED_DATA(folder, "data/telemetry/nvidia_smi_captures");
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::string name = entry.path().filename().string();
    auto ending = name.find(".txt.gz");
    if (ending == std::string::npos) continue;
    for (std::string state : {"idle", "load"}) {
      auto fleet = read_fleet(entry.path().string() + "#" + state);
      ASSERT_TRUE(fleet) << fleet.error().message;
      ASSERT_EQ(fleet->gpus.size(), 1u) << name;
      compare_metrics(fleet->gpus[0],
                      folder / "expected" / (name.substr(0, ending) + "__" + state + ".metrics"));
      ++read;
    }
  }
  EXPECT_EQ(read, 12);
}

TEST(RecordedFleet, ACaptureIsReadIdleWhereNoHalfIsNamed) {
  TAKT_SHARED_DATA(
      file, "data/telemetry/nvidia_smi_captures/linux-x86_64__nvidia-h100-mig__590.48.01.txt.gz");
  auto idle = read_fleet(file.string());
  auto loaded = read_fleet(file.string() + "#load");
  ASSERT_TRUE(idle && loaded);
  EXPECT_TRUE(idle->gpus[0].processes.empty());
  EXPECT_EQ(loaded->gpus[0].processes.size(), 3u);
}

TEST(RecordedFleet, MigDevicesOfACaptureHaveUuidsSlicesAndMemory) {
  TAKT_SHARED_DATA(
      file, "data/telemetry/nvidia_smi_captures/linux-x86_64__nvidia-h100-mig__590.48.01.txt.gz");
  auto fleet = read_fleet(file.string() + "#load");
  ASSERT_TRUE(fleet) << fleet.error().message;
  const FleetGpu& gpu = fleet->gpus[0];
  ASSERT_EQ(gpu.migs.size(), 4u);
  struct Expected {
    const char* uuid;
    unsigned gi;
    std::uint64_t compute, memory, mib;
  };
  const Expected expected[] = {{"MIG-00000000-0000-0000-0000-000000000000", 2, 3, 4, 40448},
                               {"MIG-00000001-0000-0000-0000-000000000001", 3, 2, 2, 20096},
                               {"MIG-00000002-0000-0000-0000-000000000002", 9, 1, 1, 9984},
                               {"MIG-00000003-0000-0000-0000-000000000003", 10, 1, 1, 9984}};
  for (std::size_t i = 0; i < 4; ++i) {
    const FleetMig& mig = gpu.migs[i];
    EXPECT_EQ(mig.uuid, expected[i].uuid);
    EXPECT_EQ(mig.gpu_instance, expected[i].gi);
    EXPECT_EQ(mig.compute_slices, Reading(expected[i].compute));
    EXPECT_EQ(mig.memory_slices, Reading(expected[i].memory));
    EXPECT_EQ(mig.memory_total, Reading(expected[i].mib * kMiB));
    EXPECT_FALSE(mig.start) << "a capture does not tell where an instance begins";
  }
  EXPECT_EQ(gpu.processes[0].gpu_instance, std::optional<unsigned>(2));
}

TEST(RecordedFleet, SlicesFollowFromSizesWhereNoProfileWasPrinted) {
  TAKT_SHARED_DATA(folder, "data/telemetry/nvidia_smi_xml");
  auto two_memory = read_fleet((folder / "telegraf/a100-sxm4-v12.xml").string());
  auto halves = read_fleet((folder / "netdata/a100-sxm4-mig.xml").string());
  ASSERT_TRUE(two_memory && halves);
  for (const auto& mig : two_memory->gpus[0].migs) {  // 1g.20gb of an 80 GB card
    EXPECT_EQ(mig.compute_slices, Reading(1));
    EXPECT_EQ(mig.memory_slices, Reading(2));
  }
  for (const auto& mig : halves->gpus[0].migs) {  // 3g.20gb of a 40 GB card
    EXPECT_EQ(mig.compute_slices, Reading(3));
    EXPECT_EQ(mig.memory_slices, Reading(4));
  }
  EXPECT_NE(halves->gpus[0].migs[0].uuid, halves->gpus[0].migs[1].uuid);
}

TEST(RecordedFleet, ACardThatNeedsAResetHasThatCodeAndNoZeroes) {
  TAKT_SHARED_DATA(file, "data/telemetry/nvidia_smi_text/h100_requires_reset.csv");
  auto fleet = read_fleet(file.string());
  ASSERT_TRUE(fleet) << fleet.error().message;
  const FleetGpu& gpu = fleet->gpus.at(0);
  EXPECT_EQ(gpu.temperature, Reading(answer(Code::reset_required)));
  EXPECT_EQ(gpu.utilization_gpu, Reading(answer(Code::reset_required)));
  EXPECT_EQ(gpu.memory_used, Reading(answer(Code::reset_required))) << "the tool printed 0 MiB";
  EXPECT_TRUE(gpu.fault.reset_required);
}

TEST(RecordedFleet, LinksToASwitchAndTheNumaNodeOfACaptureAreRead) {
  TAKT_SHARED_DATA(
      file,
      "data/telemetry/nvidia_smi_captures/linux-x86_64__nvidia-h100-80gb-hbm3__590.48.01.txt.gz");
  auto fleet = read_fleet(file.string());
  ASSERT_TRUE(fleet);
  EXPECT_EQ(fleet->gpus[0].nvlinks_to_switch, 18u);
  EXPECT_EQ(fleet->gpus[0].numa_node, Reading(0));
  EXPECT_EQ(fleet->nvml_version, "590.48");
}

TEST(RecordedFleet, ProcessesOfAWindowsCaptureHoldUnknownMemory) {
  TAKT_SHARED_DATA(file,
                   "data/telemetry/nvidia_smi_captures/"
                   "windows-x86_64__nvidia-geforce-rtx-2080-super__591.86.txt.gz");
  auto fleet = read_fleet(file.string());
  ASSERT_TRUE(fleet);
  ASSERT_GE(fleet->gpus[0].processes.size(), 7u);
  for (const auto& process : fleet->gpus[0].processes)
    EXPECT_EQ(process.memory, Reading(answer(Code::not_supported))) << process.name;
}

TEST(RecordedFleet, ATruncatedCaptureIsRefusedWithAPlace) {
  TAKT_SHARED_DATA(file, "data/telemetry/nvidia_smi_xml/netdata/a100-sxm4-mig.xml");
  std::ifstream in(file);
  std::string whole((std::istreambuf_iterator<char>(in)), {});
  for (std::size_t size = 200; size < whole.size() - 20; size += 997) {
    auto fleet = fleet_of_text(whole.substr(0, size), "cut.xml", "");
    ASSERT_FALSE(fleet) << "of " << size << " bytes";
    EXPECT_NE(fleet.error().message.find("cut.xml: line "), std::string::npos)
        << fleet.error().message;
    EXPECT_NE(fleet.error().message.find("expected"), std::string::npos) << fleet.error().message;
  }
}

}  // namespace
}  // namespace takt::emulator
