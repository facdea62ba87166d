#pragma once
// What controller and node agent say to each other: one JSON document a line, {"protocol": 1,
// "type": ...}. Exact like the journal's records; another protocol version is refused with a
// sentence, since an old agent may outlive an upgrade. Frames hold environment values: they go over
// the agent's socket and nowhere else.
#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include "core/base/result.h"
#include "core/control/engine_contract.h"

namespace takt::codec {

inline constexpr int agent_protocol = 1;
// A longer frame is refused unread. A reader may stop collecting a line here.
inline constexpr std::size_t agent_frame_bytes_max = std::size_t{16} << 20;

// One line, without the newline at its end (and none inside).
std::string encode_report(const control::NodeReport& report);
std::string encode_effect(const control::Effect& effect);

// A newline at the end is allowed, not needed.
Result<control::NodeReport> decode_report(std::string_view frame);
Result<control::Effect> decode_effect(std::string_view frame);

using AgentFrame = std::variant<control::NodeReport, control::Effect>;
Result<AgentFrame> decode_frame(std::string_view frame);

}  // namespace takt::codec
