// GPU models by the names that drivers give them, and what a job's `type` selects.
#include "core/model/gpu_facts.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace takt {
namespace {

struct Named {
  const char* model;
  const char* key;
  const char* form;
};

TEST(GpuFactsTest, Names_of_drivers_find_their_row) {
  const Named names[] = {
      {"NVIDIA A100-SXM4-80GB", "a100-80", "sxm"},
      {"NVIDIA A100 80GB PCIe", "a100-80", "pcie"},
      {"NVIDIA A100-SXM4-40GB", "a100-40", "sxm"},
      {"A100-PCIE-40GB", "a100-40", "pcie"},
      {"NVIDIA A100-SXM4-40GB MIG 1g.5gb", "a100-40", "sxm"},
      {"NVIDIA H100 80GB HBM3", "h100-80", "sxm"},
      {"NVIDIA H100 PCIe", "h100-80", "pcie"},
      {"NVIDIA H100 NVL", "h100-94", "nvl"},
      {"NVIDIA H200", "h200", ""},
      {"NVIDIA B200", "b200", ""},
      {"NVIDIA L4", "l4", ""},
      {"NVIDIA L40S", "l40s", ""},
      {"NVIDIA A10", "a10", ""},
      {"NVIDIA A30", "a30", ""},
      {"NVIDIA A40", "a40", ""},
      {"Tesla T4", "t4", ""},
      {"Tesla V100-SXM2-32GB", "v100-32", "sxm"},
      {"Tesla V100-PCIE-16GB", "v100-16", "pcie"},
      {"NVIDIA GeForce RTX 3090", "rtx3090", ""},
      {"NVIDIA GeForce RTX 4090", "rtx4090", ""},
      {"NVIDIA GeForce RTX 5090", "rtx5090", ""},
      {"NVIDIA RTX 6000 Ada Generation", "rtx6000ada", ""},
      {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtxpro6000", ""},
      {"AMD Instinct MI300X", "mi300x", ""},
  };
  for (const Named& name : names) {
    const auto facts = gpu_facts_for(name.model);
    ASSERT_TRUE(facts.has_value()) << name.model;
    EXPECT_EQ(facts->key, name.key) << name.model;
    EXPECT_EQ(facts->form, name.form) << name.model;
  }
}

TEST(GpuFactsTest, Similar_cards_are_not_taken_for_known_ones) {
  for (const char* model :
       {"NVIDIA GeForce RTX 3090 Ti", "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA A10G", "NVIDIA H200 NVL",
        "NVIDIA GH200 480GB", "NVIDIA A100-SXM-64GB", "NVIDIA RTX A4000", "", "-"})
    EXPECT_FALSE(gpu_facts_for(model).has_value()) << model;
}

TEST(GpuFactsTest, Numbers_of_the_table) {
  const auto a100 = gpu_facts_for("NVIDIA A100-SXM4-80GB");
  ASSERT_TRUE(a100.has_value());
  EXPECT_EQ(a100->compute_capability, "8.0");
  EXPECT_EQ(a100->memory_gib, 80);
  EXPECT_EQ(a100->bandwidth_gb_per_s, 2039);
  EXPECT_EQ(a100->bf16_tflops, 312);
  EXPECT_FALSE(a100->fp8_tflops.has_value());
  EXPECT_EQ(a100->int8_tops, 624);
  EXPECT_EQ(a100->tdp_watts, 400);
  EXPECT_EQ(a100->mig_compute_slices, 7);
  EXPECT_EQ(a100->mig_memory_slices, 8);
  const auto rtx = gpu_facts_for("NVIDIA GeForce RTX 4090");
  EXPECT_EQ(rtx->fp16_tflops, 165);
  EXPECT_EQ(rtx->fp16_accumulate_tflops, 330);
}

// FACTS: no bf16 tensor units below compute capability 8.0, fp8 from 8.9 on.
TEST(GpuFactsTest, Rows_keep_the_rules_of_the_architectures) {
  std::set<std::string> seen;
  for (const GpuFacts& facts : all_gpu_facts()) {
    const std::string row = std::string(facts.key) + "/" + std::string(facts.form);
    EXPECT_TRUE(seen.insert(row).second) << row << " is there twice";
    EXPECT_GT(facts.memory_gib, 0) << row;
    EXPECT_GT(facts.bandwidth_gb_per_s, 100) << row;
    EXPECT_GT(facts.tdp_watts, 50) << row;
    EXPECT_TRUE(facts.fp16_tflops.has_value()) << row;
    EXPECT_EQ(facts.mig_compute_slices == 0, facts.mig_memory_slices == 0) << row;
    if (facts.compute_capability.starts_with("gfx")) continue;
    const double capability = std::stod(std::string(facts.compute_capability));
    EXPECT_EQ(facts.bf16_tflops.has_value(), capability >= 8.0) << row;
    EXPECT_EQ(facts.fp8_tflops.has_value(), capability >= 8.9) << row;
  }
}

TEST(TypeMatchesTest, A_family_a_size_or_a_form_selects) {
  const char* sxm = "NVIDIA A100-SXM4-80GB";
  for (const char* word : {"a100", "A100", "a100-80", "a100-80gb", "a100-sxm", "A100-SXM4-80GB",
                           "nvidia a100", "a100_80"})
    EXPECT_TRUE(type_matches(sxm, word)) << word;
  for (const char* word : {"h100", "a10", "a1", "a100-40", "a100-pcie", "100", "", "-"})
    EXPECT_FALSE(type_matches(sxm, word)) << word;
  EXPECT_TRUE(type_matches("NVIDIA H100 80GB HBM3", "h100-sxm"));
  EXPECT_TRUE(type_matches("NVIDIA H100 PCIe", "h100-80"));
  EXPECT_FALSE(type_matches("NVIDIA H100 PCIe", "h100-sxm"));
  EXPECT_TRUE(type_matches("NVIDIA L40S", "l40s"));
  EXPECT_FALSE(type_matches("NVIDIA L40S", "l4"));
  EXPECT_FALSE(type_matches("NVIDIA L4", "l40s"));
}

TEST(TypeMatchesTest, Words_that_are_written_together_select_too) {
  for (const char* word : {"rtx4090", "RTX 4090", "4090", "rtx-4090", "geforcertx4090"})
    EXPECT_TRUE(type_matches("NVIDIA GeForce RTX 4090", word)) << word;
  EXPECT_TRUE(type_matches("NVIDIA RTX 6000 Ada Generation", "rtx6000ada"));
}

TEST(TypeMatchesTest, Unknown_cards_are_selected_by_their_name) {
  EXPECT_TRUE(type_matches("NVIDIA X9000 Ultra", "x9000"));
  EXPECT_TRUE(type_matches("NVIDIA X9000 Ultra", "x9000-ultra"));
  EXPECT_FALSE(type_matches("NVIDIA X9000 Ultra", "x900"));
  EXPECT_FALSE(type_matches("", "x9000"));
}

}  // namespace
}  // namespace takt
