#include "edge/codec/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

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

void JsonWriter::put(std::string_view piece) {
  if (piece.size() > stage_.size() - used_) {
    flush();
    if (piece.size() > stage_.size()) {
      out_ += piece;
      return;
    }
  }
  std::memcpy(stage_.data() + used_, piece.data(), piece.size());
  used_ += piece.size();
}

void JsonWriter::flush() {
  out_.append(stage_.data(), used_);
  used_ = 0;
}

void JsonWriter::key(std::string_view name) {
  if (comma_due_) put(',');
  comma_due_ = false;
  put('"');
  put(name);
  put("\":");
}

void JsonWriter::key_text(std::string_view name) {
  if (comma_due_) put(',');
  comma_due_ = false;
  escaped(name);
  put(':');
}

void JsonWriter::text(std::string_view value) {
  comma();
  escaped(value);
}

void JsonWriter::escaped(std::string_view value) {
  constexpr char digits[] = "0123456789abcdef";
  put('"');
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
    put(value.substr(begin, i - begin));
    switch (c) {
      case '"': put("\\\""); break;
      case '\\': put("\\\\"); break;
      case '\n': put("\\n"); break;
      case '\t': put("\\t"); break;
      case '\r': put("\\r"); break;
      default:
        if (c >= 0x80) {
          put("\xEF\xBF\xBD");  // U+FFFD
        } else {
          put("\\u00");
          put(digits[c >> 4U]);
          put(digits[c & 0xFU]);
        }
    }
    begin = ++i;
  }
  put(value.substr(begin, i - begin));
  put('"');
}

void JsonWriter::integer(std::int64_t value) {
  comma();
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  put({digits.data(), static_cast<std::size_t>(end - digits.data())});
}

void JsonWriter::natural(std::uint64_t value) {
  comma();
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  put({digits.data(), static_cast<std::size_t>(end - digits.data())});
}

void JsonWriter::number(double value) {
  if (!std::isfinite(value)) return null();
  comma();
  std::array<char, 40> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  put({digits.data(), static_cast<std::size_t>(end - digits.data())});
}

void JsonWriter::boolean(bool value) {
  comma();
  put(std::string_view(value ? "true" : "false"));
}

void JsonWriter::null() {
  comma();
  put("null");
}

void JsonWriter::plain_text(std::string_view value) {
  comma();
  put('"');
  put(value);
  put('"');
}

void JsonWriter::raw(std::string_view json) {
  comma();
  put(json);
}

}  // namespace takt::codec
