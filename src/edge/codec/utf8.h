#pragma once
// UTF-8 (RFC 3629): what is a character and what is not. Internal to the codec.
#include <cstddef>
#include <string>
#include <string_view>

namespace takt::codec {

// Length of the character that `text` begins with, 1 to 4; 0 when its first byte begins none
// (also for overlong forms, surrogates and anything above U+10FFFF). `text` is not empty.
std::size_t utf8_length(std::string_view text);

bool is_utf8(std::string_view text);

// `text` fit to be printed inside a message: control characters and broken bytes as \xNN, cut after
// `bytes_max` bytes with "..." behind.
std::string printable(std::string_view text, std::size_t bytes_max = 60);

}  // namespace takt::codec
