// What real cards printed, read by `takt gpus` through the emulated driver: the expected values, or
// a stated "not available", never a zero that nobody printed. The expectations are other projects'.
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "endtoend/harness.h"
#include "support/shared_data.h"

namespace takt::endtoend {
namespace {

using nlohmann::json;

struct Field {
  const char* expected;  // its name in the expectation
  const char* ours;      // in `takt gpus --json`
  double scale;          // of the expectation to ours
  double tolerance;
};

// One row of the table that these tests print: how much was compared.
struct Row {
  std::string capture;
  int available = 0;
  int stated = 0;
};

void print(const Row& row) {
  std::cout << "| " << row.capture << " | " << row.available << " | " << row.stated << " |\n";
  if (const char* file = std::getenv("TAKT_CAPTURE_TABLE"))
    std::ofstream(file, std::ios::app)
        << "| " << row.capture << " | " << row.available << " | " << row.stated << " |\n";
}

json only_gpu(const std::string& capture) {
  const Takt takt = Takt::from_file(capture);
  const json document = takt.json({"gpus"});
  EXPECT_EQ(document["emulated"], true) << capture;
  const json& node = document["nodes"][0];
  EXPECT_EQ(node["gpus"].size(), 1u) << capture << node.dump(1).substr(0, 2000);
  return node["gpus"].empty() ? json() : node["gpus"][0];
}

void compare(const json& gpu, const json& expected, const std::vector<Field>& fields, Row& row) {
  for (const Field& field : fields) {
    const std::string what = row.capture + ": " + field.ours;
    ASSERT_TRUE(gpu.contains(field.ours)) << what;
    if (expected.contains(field.expected)) {
      ASSERT_TRUE(gpu[field.ours].is_number()) << what << " " << gpu["missing"].dump(1);
      EXPECT_NEAR(gpu[field.ours].get<double>(),
                  expected[field.expected].get<double>() * field.scale, field.tolerance)
          << what;
      ++row.available;
    } else {
      EXPECT_TRUE(gpu[field.ours].is_null())
          << what << " is " << gpu[field.ours] << " and nothing was expected";
      EXPECT_FALSE(gpu["missing"][field.ours].get<std::string>().empty()) << what;
      ++row.stated;
    }
  }
}

json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  return json::parse(file);
}

TEST(Captures, XmlOfTelegrafsCardsHasTelegrafsValues) {
  TAKT_SHARED_DATA(folder, "data/telemetry/nvidia_smi_xml/telegraf");
  constexpr double mib = 1048576;
  int files = 0;
  const json all = read_json(folder / "expected.json");
  for (const auto& [file, records] : all.items()) {
    const json gpu = only_gpu((folder / file).string());
    EXPECT_EQ(gpu["uuid"], records[0]["tags"]["uuid"]);
    EXPECT_EQ(gpu["model"], records[0]["tags"]["name"]);
    Row row{file};
    compare(gpu, records[0]["fields"],
            {{"memory_total", "memory_total_bytes", mib, 0},
             {"memory_used", "memory_used_bytes", mib, 0},
             {"memory_reserved", "memory_reserved_bytes", mib, 0},
             {"utilization_gpu", "utilization_percent", 1, 0},
             {"temperature_gpu", "temperature_celsius", 1, 0},
             {"power_draw", "power_watts", 1, 0.01}},
            row);
    std::size_t migs = 0;
    std::size_t processes = 0;
    for (const json& record : records) {
      if (record["measurement"] == "nvidia_smi_mig") {
        const json& instance = gpu["mig"]["instances"].at(migs++);
        EXPECT_EQ(instance["memory_total_bytes"].get<double>(),
                  record["fields"]["memory_fb_total"].get<double>() * mib);
      } else if (record["measurement"] == "nvidia_smi_process") {
        const json& process = gpu["processes"].at(processes++);
        EXPECT_EQ(process["pid"], record["fields"]["pid"]);
        EXPECT_EQ(process["memory_bytes"].get<double>(),
                  record["fields"]["used_memory"].get<double>() * mib);
        EXPECT_EQ(process["foreign"], true);
      }
    }
    row.available += static_cast<int>(migs + processes);
    EXPECT_EQ(gpu["mig"]["instances"].size(), migs) << file;
    print(row);
    ++files;
  }
  EXPECT_GE(files, 7);
}

TEST(Captures, OutputOfNetdatasCardsHasNetdatasValues) {
  TAKT_SHARED_DATA(folder, "data/telemetry/nvidia_smi_xml/netdata");
  const std::map<std::string, std::string> files = {
      {"success A100-SXM4 MIG [XML]", "a100-sxm4-mig.xml"},
      {"success RTX 2080 Win [XML]", "rtx-2080-win.xml"},
      {"success RTX 3060 [XML]", "rtx-3060.xml"},
      {"success Tesla P100 [CSV]", "tesla-p100.csv"},
      {"success Tesla P100 [XML]", "tesla-p100.xml"}};
  const json all = read_json(folder / "expected.json");
  for (const auto& [title, values] : all.items()) {
    const json gpu = only_gpu((folder / files.at(title)).string());
    json expected;
    const std::string prefix = "gpu_" + gpu["uuid"].get<std::string>() + "_";
    for (const auto& [name, value] : values.items())
      if (name.rfind(prefix, 0) == 0) expected[name.substr(prefix.size())] = value;
    ASSERT_GE(expected.size(), 10u) << title;
    Row row{files.at(title)};
    compare(gpu, expected,
            {{"frame_buffer_memory_usage_used", "memory_used_bytes", 1, 0},
             {"frame_buffer_memory_usage_reserved", "memory_reserved_bytes", 1, 0},
             {"gpu_utilization", "utilization_percent", 1, 0},
             {"temperature", "temperature_celsius", 1, 0},
             {"power_draw", "power_watts", 1, 1}},  // netdata cuts watts to whole ones
            row);
    if (expected.contains("mig_devices_count")) {
      EXPECT_EQ(gpu["mig"]["enabled"], true);
      EXPECT_EQ(gpu["mig"]["instances"].size(), expected["mig_devices_count"].get<std::size_t>());
    }
    print(row);
  }
}

// "name{labels} value" of the exporter's golden output.
json read_metrics(const std::filesystem::path& path) {
  json values;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("nvidia_smi_", 0) != 0) continue;
    const std::string name = line.substr(11, line.find_first_of("{ ") - 11);
    values[name] = std::stod(line.substr(line.rfind(' ')));
  }
  return values;
}

TEST(Captures, WholeCapturesIdleAndLoadedHaveTheExportersValues) {
  TAKT_SHARED_DATA(folder, "data/telemetry/nvidia_smi_captures");
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const std::size_t ending = name.find(".txt.gz");
    if (ending == std::string::npos) continue;
    for (const std::string state : {"idle", "load"}) {
      const json gpu = only_gpu(entry.path().string() + "#" + state);
      const std::string stem = name.substr(0, ending) + "__" + state;
      const json expected = read_metrics(folder / "expected" / (stem + ".metrics"));
      ASSERT_GE(expected.size(), 60u);
      Row row{stem};
      compare(gpu, expected,
              {{"memory_total_bytes", "memory_total_bytes", 1, 0},
               {"memory_used_bytes", "memory_used_bytes", 1, 0},
               {"memory_reserved_bytes", "memory_reserved_bytes", 1, 0},
               {"utilization_gpu_ratio", "utilization_percent", 100, 0.01},
               {"temperature_gpu", "temperature_celsius", 1, 0},
               {"power_draw_watts", "power_watts", 1, 0.01}},
              row);
      if (expected.contains("mig_mode_current")) {
        EXPECT_EQ(gpu["mig"]["enabled"].get<bool>(), expected["mig_mode_current"] == 1) << stem;
      } else {
        EXPECT_TRUE(gpu["mig"]["enabled"].is_null()) << stem;
      }
      print(row);
      ++read;
    }
  }
  EXPECT_EQ(read, 12);
}

TEST(Captures, ACardThatNeedsAResetSaysSoAndHasNoZeroes) {
  TAKT_SHARED_DATA(file, "data/telemetry/nvidia_smi_text/h100_requires_reset.csv");
  const json gpu = only_gpu(file.string());
  for (const char* field : {"utilization_percent", "temperature_celsius", "memory_used_bytes"}) {
    EXPECT_TRUE(gpu[field].is_null()) << field << " " << gpu[field];
    EXPECT_NE(gpu["missing"][field].get<std::string>().find("needs a reset"), std::string::npos)
        << gpu["missing"].dump(1);
  }
  EXPECT_NE(gpu["health"], "ok");
  print({"h100_requires_reset.csv", 0, 3});
}

}  // namespace
}  // namespace takt::endtoend
