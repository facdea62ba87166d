#include "edge/codec/base64.h"

#include <algorithm>
#include <cstdint>

namespace takt::codec {
namespace {
constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::optional<unsigned> value_of(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<unsigned>(c - 'A');
  if (c >= 'a' && c <= 'z') return static_cast<unsigned>(c - 'a') + 26;
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0') + 52;
  if (c == '+') return 62;
  if (c == '/') return 63;
  return std::nullopt;
}
}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t have = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = (group << 8U) | (k < have ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      out += k <= have ? kAlphabet[(group >> (18 - 6 * k)) & 63U] : '=';
  }
  return out;
}

std::optional<std::string> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const bool last = i + 4 == text.size();
    std::size_t padding = 0;
    if (last && text[i + 3] == '=') padding = text[i + 2] == '=' ? 2 : 1;
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      unsigned bits = 0;
      if (k < 4 - padding) {
        const std::optional<unsigned> value = value_of(text[i + k]);
        if (!value) return std::nullopt;
        bits = *value;
      }
      group = (group << 6U) | bits;
    }
    // Bits behind the end must be zero, else two texts would mean the same bytes.
    if (padding == 1 && (group & 0xFFU) != 0) return std::nullopt;
    if (padding == 2 && (group & 0xFFFFU) != 0) return std::nullopt;
    for (std::size_t k = 0; k < 3 - padding; ++k)
      out += static_cast<char>((group >> (16 - 8 * k)) & 0xFFU);
  }
  return out;
}

}  // namespace takt::codec
