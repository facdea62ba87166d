#pragma once
// Numbers with units as nvidia-smi and fleet files write them.
#include <optional>
#include <string_view>

#include "fleet/codes.h"

namespace takt::emulator {

// "12GiB", "81559 MiB", "512" (bytes). KB, MB, GB are powers of 1000. Nothing if it is not a size.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

// "1.5s", "200ms", "2m", "1h", "3" (seconds). Nothing if it is not a time span >= 0.
std::optional<double> parse_seconds(std::string_view text);

// A number >= 0 followed by one of the unit words or by none: "66.92 W" with scale 1000 is 66920.
std::optional<std::uint64_t> parse_scaled(std::string_view text, std::string_view unit,
                                          double scale);

// "0.6" or "60%": 0 to 1.
std::optional<double> parse_ratio(std::string_view text);

}  // namespace takt::emulator
