#pragma once
// Quantities as people write and read them: "12GiB", "1h30m", "30%". Used for job files, flags and
// messages. Errors name the text and what was expected; the caller puts the place in front.
#include <string>
#include <string_view>

#include "core/base/quantities.h"
#include "core/base/result.h"

namespace takt {

// "12GiB", "12 GiB", "1.5TiB", "40GB", "512B". KiB, MiB, GiB, TiB count by 1024, KB, MB, GB, TB by
// 1000 (IEC 80000-13). The unit must be written, exactly so. Fractions of a byte are cut off.
Result<Bytes> parse_size(std::string_view text);

// "8h", "120s", "1h30m", "300ms", "1.5h". Units d, h, m, s, ms, us, from large to small, each once;
// only the last number may have a fraction.
Result<Duration> parse_duration(std::string_view text);

// "30%" -> 30. Whole percents from 0; an upper bound is the caller's.
Result<int> parse_percent(std::string_view text);

// "512 B", "12.0 GiB": one decimal, rounded to nearest, the largest unit that leaves at least 1.
std::string format_size(Bytes size);

// "2m13s", "1h5m", "3d4h", "45s", "300ms", "0s": the two largest units, smaller ones cut off.
std::string format_duration(Duration span);

}  // namespace takt
