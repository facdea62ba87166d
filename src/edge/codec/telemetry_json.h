#pragma once
// What an attempt measured, as the telemetry store keeps it: exact, one line, {"version": 1, ...}.
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/model/measurement.h"

namespace takt::codec {

std::string encode_measurement(const AttemptMeasurement& measurement);
// Another version is refused with a sentence; the caller skips the row, which costs only advice.
Result<AttemptMeasurement> decode_measurement(std::string_view json);

}  // namespace takt::codec
