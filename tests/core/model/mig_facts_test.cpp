// Partitions: the table against recorded output of real tools, and how names come about.
#include "core/model/mig_facts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "support/shared_data.h"

namespace takt {
namespace {

std::vector<std::vector<std::string>> read_csv(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<std::vector<std::string>> rows;
  std::string line;
  std::getline(in, line);  // the heading
  while (std::getline(in, line)) {
    std::vector<std::string> fields;
    std::istringstream text(line);
    for (std::string field; std::getline(text, field, ',');) fields.push_back(field);
    rows.push_back(fields);
  }
  return rows;
}

MigFamily family_of(const std::string& key) {
  for (const MigFamily& family : all_mig_families())
    if (family.key == key) return family;
  ADD_FAILURE() << "no family " << key;
  return {};
}

const MigProfile* profile_of(const MigFamily& family, const std::string& name) {
  const auto at = std::find_if(family.profiles.begin(), family.profiles.end(),
                               [&](const MigProfile& p) { return p.name == name; });
  return at == family.profiles.end() ? nullptr : &*at;
}

Bytes gib(double value) { return Bytes{static_cast<std::int64_t>(value * (1 << 30))}; }

// The cards of the recorded tables: our key and the memory the driver tells for the whole card.
struct Card {
  std::string key;
  Bytes memory;
  std::string model;
};
const std::map<std::string, Card>& recorded_cards() {
  static const std::map<std::string, Card> cards = {
      {"h100_80gb_hbm3", {"h100-80", mebibytes(81559), "NVIDIA H100 80GB HBM3"}},
      {"h100_nvl_94gb_driver560", {"h100-94", mebibytes(95830), "NVIDIA H100 NVL"}},
      {"a100_40gb_x2_full", {"a100-40", mebibytes(40960), "NVIDIA A100-SXM4-40GB"}},
      {"a100_80gb", {"a100-80", mebibytes(81920), "NVIDIA A100-SXM4-80GB"}},
      {"a30_24gb", {"a30", mebibytes(24576), "NVIDIA A30"}},
  };
  return cards;
}

TEST(MigFactsTest, Every_profile_of_the_recorded_tools_is_in_the_table) {
  TAKT_SHARED_DATA(path, "data/mig/mig_profile_facts.csv");
  std::size_t checked = 0;
  for (const auto& row : read_csv(path)) {
    const auto card = recorded_cards().find(row.at(0));
    if (card == recorded_cards().end()) continue;  // measured sizes only, no slices
    const MigFamily family = family_of(card->second.key);
    const MigProfile* profile = profile_of(family, row.at(1));
    ASSERT_NE(profile, nullptr) << row[0] << " " << row[1];
    EXPECT_EQ(profile->most, std::stoi(row.at(3))) << row[0] << " " << row[1];
    EXPECT_EQ(profile->memory_slices, std::stoi(row.at(6))) << row[0] << " " << row[1];
    std::vector<int> starts;
    std::istringstream text(row.at(7));
    for (int start = 0; text >> start;) starts.push_back(start);
    EXPECT_EQ(profile->starts, starts) << row[0] << " " << row[1];
    ++checked;
  }
  EXPECT_EQ(checked, 32u);
}

TEST(MigFactsTest, Names_are_derived_from_the_recorded_slices_and_memory) {
  TAKT_SHARED_DATA(path, "data/mig/mig_profile_facts.csv");
  for (const auto& row : read_csv(path)) {
    const auto card = recorded_cards().find(row.at(0));
    if (card == recorded_cards().end()) continue;
    const int slices = row.at(1).at(0) - '0';
    const bool media = row[1].find("+me") != std::string::npos;
    EXPECT_EQ(
        mig_profile_name({slices, slices, gib(std::stod(row.at(4))), card->second.memory, media}),
        row[1])
        << row[0];
  }
}

TEST(MigFactsTest, NVIDIAs_guide_has_the_same_profiles) {
  TAKT_SHARED_DATA(path, "data/mig/nvidia_user_guide_profiles.csv");
  const std::map<std::string, std::string> keys = {
      {"B200 180GB", "b200"},   {"RTX PRO 6000 Blackwell 96GB", "rtxpro6000"},
      {"H100 80GB", "h100-80"}, {"H100 94GB", "h100-94"},
      {"H200 141GB", "h200"},   {"H100 96GB (GH200)", "gh200-96"},
      {"A100 40GB", "a100-40"}, {"A30 24GB", "a30"}};
  std::size_t checked = 0;
  for (const auto& row : read_csv(path)) {
    const std::string& name = row.at(1);
    // Variants of the RTX PRO 6000 with the same slices.
    if (name.find("+gfx") != std::string::npos || name.find("-me") != std::string::npos ||
        name.find("+me.all") != std::string::npos)
      continue;
    const MigFamily family = family_of(keys.at(row.at(0)));
    const MigProfile* profile = profile_of(family, name);
    ASSERT_NE(profile, nullptr) << row[0] << " " << name;
    EXPECT_EQ(profile->most, std::stoi(row.back())) << row[0] << " " << name;
    ++checked;
  }
  EXPECT_GE(checked, 50u);
}

TEST(MigFactsTest, Instances_of_a_profile_fit_and_never_begin_outside) {
  for (const MigFamily& family : all_mig_families()) {
    for (const MigProfile& profile : family.profiles) {
      EXPECT_LE(profile.most * profile.compute_slices, family.compute_slices)
          << family.key << profile.name;
      EXPECT_LE(profile.most * profile.memory_slices, family.memory_slices)
          << family.key << profile.name;
      if (!profile.media_extensions) {
        EXPECT_EQ(static_cast<int>(profile.starts.size()), profile.most)
            << family.key << profile.name;
      }
      for (const int start : profile.starts)
        EXPECT_LE(start + profile.memory_slices, family.memory_slices)
            << family.key << profile.name;
    }
  }
}

// The counts of FACTS B8 for placements on seven compute and eight memory slices: the sets of
// instances that do not overlap, the empty one included.
TEST(MigFactsTest, The_placements_give_the_known_number_of_layouts) {
  const auto layouts = [](const MigFamily& family, bool with_double_memory) {
    struct Placed {
      int start, size, compute;
    };
    std::vector<Placed> all;
    for (const MigProfile& p : family.profiles) {
      if (p.media_extensions) continue;
      if (!with_double_memory && p.compute_slices == 1 && p.memory_slices == 2) continue;
      for (const int start : p.starts) all.push_back({start, p.memory_slices, p.compute_slices});
    }
    std::size_t found = 0;
    const auto extend = [&](auto&& self, std::size_t from, unsigned taken, int compute) -> void {
      ++found;
      for (std::size_t i = from; i < all.size(); ++i) {
        const unsigned bits = ((1u << all[i].size) - 1) << all[i].start;
        if ((bits & taken) == 0 && compute + all[i].compute <= family.compute_slices)
          self(self, i + 1, taken | bits, compute + all[i].compute);
      }
    };
    extend(extend, 0, 0, 0);
    return found;
  };
  EXPECT_EQ(layouts(family_of("a100-80"), false), 298u);
  EXPECT_EQ(layouts(family_of("a100-80"), true), 723u);
  EXPECT_EQ(layouts(family_of("a30"), true), 26u);
}

TEST(MigFactsTest, Families_are_found_by_name_and_memory) {
  const auto key = [](const char* model, Bytes memory) {
    const auto family = mig_family_for(model, memory);
    return family ? family->key : std::string("none");
  };
  for (const auto& [name, card] : recorded_cards()) {
    EXPECT_EQ(key(card.model.c_str(), card.memory), card.key) << name;
  }
  EXPECT_EQ(key("NVIDIA A100-SXM4-40GB", Bytes{0}), "a100-40");
  EXPECT_EQ(key("NVIDIA A800-SXM4-80GB", mebibytes(81920)), "a100-80");
  EXPECT_EQ(key("NVIDIA GH200 480GB", mebibytes(97871)), "gh200-96");
  EXPECT_EQ(key("NVIDIA H200", mebibytes(143771)), "h200");
  EXPECT_EQ(key("NVIDIA B200", mebibytes(183359)), "b200");
  EXPECT_EQ(key("NVIDIA RTX PRO 6000 Blackwell Server Edition", mebibytes(97887)), "rtxpro6000");
  for (const char* model :
       {"NVIDIA A10", "Tesla T4", "NVIDIA L40S", "NVIDIA GB200", "", "NVIDIA GB300"})
    EXPECT_EQ(key(model, gibibytes(40)), "none") << model;
}

TEST(MigProfileNameTest, Memory_of_the_driver_becomes_the_tools_name) {
  const auto name = [](int slices, int memory_mib, int device_mib) {
    return mig_profile_name({slices, slices, mebibytes(memory_mib), mebibytes(device_mib), false});
  };
  EXPECT_EQ(name(1, 11008, 95830), "1g.12gb");
  EXPECT_EQ(name(1, 10880, 95830), "1g.12gb") << "driver 550 gives less";
  EXPECT_EQ(name(1, 22144, 95830), "1g.24gb");
  EXPECT_EQ(name(3, 47488, 95830), "3g.47gb");
  EXPECT_EQ(name(1, 16384, 143771), "1g.18gb");
  EXPECT_EQ(name(2, 33280, 143771), "2g.35gb");
  EXPECT_EQ(name(2, 11968, 24258), "2g.12gb");
  EXPECT_EQ(name(7, 81920, 81920), "7g.80gb");
}

TEST(MigProfileNameTest, Parts_of_instances_media_and_unknown_cards) {
  EXPECT_EQ(mig_profile_name({3, 1, mebibytes(40192), mebibytes(81920), false}), "1c.3g.40gb");
  EXPECT_EQ(mig_profile_name({1, 1, mebibytes(9728), mebibytes(81920), true}), "1g.10gb+me");
  EXPECT_EQ(mig_profile_name({1, 1, mebibytes(9728), Bytes{0}, false}), "1g.10gb");
}

}  // namespace
}  // namespace takt
