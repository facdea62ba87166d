#include "edge/codec/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>

#include "edge/codec/utf8.h"

namespace takt::codec {
namespace {

// True for bytes that may stand in a JSON string as they are and are ASCII.
constexpr std::array<bool, 256> plain_bytes() {
  std::array<bool, 256> plain{};
  for (unsigned c = 0x20; c < 0x7F; ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}
constexpr std::array<bool, 256> kPlain = plain_bytes();

}  // namespace

void JsonWriter::key(std::string_view name) {
  if (comma_due_) out_ += ',';
  comma_due_ = false;
  out_ += '"';
  out_ += name;
  out_ += "\":";
}

void JsonWriter::key_text(std::string_view name) {
  if (comma_due_) out_ += ',';
  comma_due_ = false;
  escaped(name);
  out_ += ':';
}

void JsonWriter::text(std::string_view value) {
  comma();
  escaped(value);
}

void JsonWriter::escaped(std::string_view value) {
  constexpr char digits[] = "0123456789abcdef";
  out_ += '"';
  std::size_t begin = 0;
  std::size_t i = 0;
  while (i < value.size()) {
    const auto c = static_cast<unsigned char>(value[i]);
    if (kPlain[c]) {
      ++i;
      continue;
    }
    if (c >= 0x80) {
      const std::size_t length = utf8_length(value.substr(i));
      if (length > 0) {
        i += length;
        continue;
      }
    }
    out_.append(value, begin, i - begin);
    switch (c) {
      case '"': out_ += "\\\""; break;
      case '\\': out_ += "\\\\"; break;
      case '\n': out_ += "\\n"; break;
      case '\t': out_ += "\\t"; break;
      case '\r': out_ += "\\r"; break;
      default:
        if (c >= 0x80) {
          out_ += "\xEF\xBF\xBD";  // U+FFFD
        } else {
          out_ += "\\u00";
          out_ += digits[c >> 4U];
          out_ += digits[c & 0xFU];
        }
    }
    begin = ++i;
  }
  out_.append(value, begin, i - begin);
  out_ += '"';
}

void JsonWriter::integer(std::int64_t value) {
  comma();
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out_.append(digits.data(), static_cast<std::size_t>(end - digits.data()));
}

void JsonWriter::natural(std::uint64_t value) {
  comma();
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out_.append(digits.data(), static_cast<std::size_t>(end - digits.data()));
}

void JsonWriter::number(double value) {
  if (!std::isfinite(value)) return null();
  comma();
  std::array<char, 40> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out_.append(digits.data(), static_cast<std::size_t>(end - digits.data()));
}

void JsonWriter::boolean(bool value) {
  comma();
  out_ += value ? "true" : "false";
}

void JsonWriter::null() {
  comma();
  out_ += "null";
}

void JsonWriter::plain_text(std::string_view value) {
  comma();
  out_ += '"';
  out_ += value;
  out_ += '"';
}

void JsonWriter::raw(std::string_view json) {
  comma();
  out_ += json;
}

}  // namespace takt::codec
