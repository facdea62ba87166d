#pragma once
// What controller and node agent say to each other: one JSON document a line, {"protocol": 2,
// "type": ...}. Exact like the journal's records; another protocol version is refused with a
// sentence, since takt may be upgraded under either. Frames hold environment values: they go over
// the agent's socket and nowhere else.
//
// The first frame of both sides is a hello: {"protocol": 2, "type": "hello", "takt": "0.1.0"}. Its
// form is the same in all protocols, so that whoever does not fit can be named.
// Protocol 1 had no hello and no boot_id.
#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include "core/base/result.h"
#include "core/control/engine_contract.h"

namespace takt::codec {

inline constexpr int agent_protocol = 4;
// A longer frame is refused unread. A reader may stop collecting a line here.
inline constexpr std::size_t agent_frame_bytes_max = std::size_t{16} << 20;

// One line, without the newline at its end (and none inside).
std::string encode_report(const control::NodeReport& report);
std::string encode_effect(const control::Effect& effect);
std::string encode_hello(const std::string& takt_version);

// Fine when `frame` is the hello of one that speaks our protocol, of whatever release. Else the
// sentence says who is of which release and what to do. `takt_version` is ours; `other` names the
// other side ("the node agent"), `self` us.
Result<void> check_hello(std::string_view frame, const std::string& takt_version, const char* other,
                         const char* self);

// A newline at the end is allowed, not needed.
Result<control::NodeReport> decode_report(std::string_view frame);
Result<control::Effect> decode_effect(std::string_view frame);

using AgentFrame = std::variant<control::NodeReport, control::Effect>;
Result<AgentFrame> decode_frame(std::string_view frame);

}  // namespace takt::codec
