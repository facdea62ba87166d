#pragma once
// Base64 (RFC 4648, section 4, with padding). Internal to the codec.
#include <optional>
#include <string>
#include <string_view>

namespace takt::codec {

std::string base64_encode(std::string_view bytes);
// Nothing when it is not the one text that base64_encode gives for these bytes.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace takt::codec
