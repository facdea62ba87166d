#pragma once
// What is known about GPU models: sizes and dense peak rates (no sparsity), and which model a job's
// `type: a100` means. Sources per row are in gpu_facts.cpp. For a card that is not listed there are
// no facts, but it can still be selected by its name.
#include <optional>
#include <span>
#include <string_view>

namespace takt {

struct GpuFacts {
  std::string_view key;                 // "a100-80": family and memory; several rows may share it
  std::string_view form;                // "sxm", "pcie", "nvl"; empty where only one exists
  std::string_view compute_capability;  // "8.0"; AMD: "gfx942"
  int memory_gib = 0;             // nominal; what is usable is less and is asked of the device
  double bandwidth_gb_per_s = 0;  // decimal gigabytes
  // TFLOPS (TOPS for int8) with fp32 accumulation; none: the card has no units for it.
  std::optional<double> bf16_tflops;
  std::optional<double> fp16_tflops;
  std::optional<double> fp8_tflops;
  std::optional<double> int8_tops;
  // GeForce cards are faster when they accumulate in fp16; none where there is no difference.
  std::optional<double> fp16_accumulate_tflops;
  double tdp_watts = 0;
  int mig_compute_slices = 0;  // 0: cannot be partitioned
  int mig_memory_slices = 0;
  bool approximate =
      false;  // some number of the row is rounded or from memory, not from a data sheet
};

// The row for a name as the driver gives it ("NVIDIA A100-SXM4-80GB"), if the model is known.
std::optional<GpuFacts> gpu_facts_for(std::string_view model);

// All rows, for `takt` commands that compare models.
std::span<const GpuFacts> all_gpu_facts();

// Whether a job that asks for `word` may run on `model`. Case and separators do not count. True
// when every part of `word` is a part of the model's name, key, form or memory size ("a100",
// "a100-80", "h100-sxm"), or when neighbouring parts of the name make up the word ("rtx4090").
// Parts match as wholes: "a10" is not an A100, "l4" not an L40S. An empty word matches nothing.
bool type_matches(std::string_view model, std::string_view word);

}  // namespace takt
