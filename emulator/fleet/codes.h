#pragma once
// Return codes of NVML (values of the public nvmlReturn_t). A reading that a card does not give is
// one of these codes, never a zero.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace takt::emulator {

enum class Code : std::int32_t {
  success = 0,
  uninitialized = 1,
  invalid_argument = 2,
  not_supported = 3,
  no_permission = 4,
  already_initialized = 5,
  not_found = 6,
  insufficient_size = 7,
  insufficient_power = 8,
  driver_not_loaded = 9,
  timeout = 10,
  irq_issue = 11,
  library_not_found = 12,
  function_not_found = 13,
  corrupted_inforom = 14,
  gpu_is_lost = 15,
  reset_required = 16,
  operating_system = 17,
  lib_rm_version_mismatch = 18,
  in_use = 19,
  memory = 20,
  no_data = 21,
  argument_version_mismatch = 25,
  deprecated = 26,
  not_ready = 27,
  unknown = 999,
};

// A number as the driver gives it (bytes, percent, mW, MHz, ...), or the code its call returns.
using Reading = tl::expected<std::uint64_t, Code>;

inline tl::unexpected<Code> answer(Code code) { return tl::make_unexpected(code); }

// "GPU_IS_LOST" with or without "NVML_ERROR_"; any case, '-' as '_'.
std::optional<Code> code_by_name(std::string_view name);

// What nvidia-smi prints in place of a value: "N/A", "[N/A]", "[Unknown Error]", "[GPU requires
// reset]", "Requested functionality has been deprecated", ... Nothing for any other text.
std::optional<Code> code_by_words(std::string_view words);

}  // namespace takt::emulator
