#include "edge/http/message.h"

#include <unistd.h>

#include <fmt/core.h>

#include <optional>

namespace takt::http {

BodyFile::~BodyFile() { ::close(fd_); }
namespace {

// The length in bytes of the UTF-8 character at the front of the text, 0 when there is none (RFC
// 3629: no overlong forms, no surrogates, nothing above U+10FFFF).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  std::size_t length = 0;
  unsigned char second_min = 0x80;
  unsigned char second_max = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) second_min = 0xA0;
    if (first == 0xED) second_max = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) second_min = 0x90;
    if (first == 0xF4) second_max = 0x8F;
  }
  if (length == 0 || text.size() < length) return 0;
  if (byte(1) < second_min || byte(1) > second_max) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  }
  return length;
}

std::optional<int> hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

}  // namespace

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const char c = text.front();
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + "\"";
}

Response error_response(int status, std::string_view sentence) {
  Response response;
  response.status = status;
  response.body = "{\"error\": " + json_quoted(sentence) + "}\n";
  return response;
}

int status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid: return 400;
    case ErrorKind::not_found: return 404;
    case ErrorKind::forbidden: return 403;
    case ErrorKind::conflict: return 409;
    case ErrorKind::unavailable: return 503;
    case ErrorKind::io: return 500;
  }
  return 500;
}

Response error_response(const Error& error) {
  return error_response(status_of(error.kind), error.message);
}

ErrorKind kind_of(int status) {
  switch (status) {
    case 401:
    case 403: return ErrorKind::forbidden;
    case 404: return ErrorKind::not_found;
    case 409: return ErrorKind::conflict;
    case 408:
    case 429:
    case 503: return ErrorKind::unavailable;
    default: return status >= 400 && status < 500 ? ErrorKind::invalid : ErrorKind::io;
  }
}

Result<std::string> percent_decoded(std::string_view text, bool plus_is_blank) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    if (c == '+' && plus_is_blank) {
      out += ' ';
    } else if (c == '%') {
      const auto high = i + 2 < text.size() ? hex_value(text[i + 1]) : std::nullopt;
      const auto low = high ? hex_value(text[i + 2]) : std::nullopt;
      if (!low) {
        return fail(ErrorKind::invalid,
                    fmt::format("'{}' is no percent-encoding: expected % and two hex digits "
                                "(a % itself is written %25)",
                                text.substr(i, 3)));
      }
      const int value = *high * 16 + *low;
      if (value == 0) return fail(ErrorKind::invalid, "%00 is not allowed in an address");
      out += static_cast<char>(value);
      i += 2;
    } else if (byte < 0x20 || byte == 0x7F) {
      return fail(ErrorKind::invalid,
                  "the address holds a raw control character: write it as % and two hex digits");
    } else {
      out += c;
    }
  }
  return out;
}

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", byte);
    }
  }
  return out;
}

Result<std::map<std::string, std::string>> parse_query(std::string_view text) {
  std::map<std::string, std::string> out;
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find('&'));
    text.remove_prefix(pair.size() == text.size() ? pair.size() : pair.size() + 1);
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    auto name = percent_decoded(pair.substr(0, equals), true);
    if (!name) return tl::make_unexpected(name.error());
    auto value = equals == std::string_view::npos ? Result<std::string>(std::string())
                                                  : percent_decoded(pair.substr(equals + 1), true);
    if (!value) return tl::make_unexpected(value.error());
    out[*name] = *value;
  }
  return out;
}

}  // namespace takt::http
