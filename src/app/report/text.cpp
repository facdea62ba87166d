#include "app/report/text.h"

#include <array>
#include <cstdint>
#include <utility>

namespace takt::report {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

template <std::size_t N>
bool in(const std::array<Range, N>& ranges, char32_t c) {
  for (const Range& r : ranges)
    if (c >= r.first && c <= r.last) return true;
  return false;
}

// Combining marks and variation selectors: they take no column of their own.
constexpr std::array<Range, 6> zero_width = {{{0x0300, 0x036F},
                                              {0x0483, 0x0489},
                                              {0x1AB0, 0x1AFF},
                                              {0x20D0, 0x20FF},
                                              {0xFE00, 0xFE0F},
                                              {0xFE20, 0xFE2F}}};
// East Asian wide and emoji.
constexpr std::array<Range, 9> wide = {{{0x1100, 0x115F},
                                        {0x2E80, 0x303E},
                                        {0x3041, 0xA4CF},
                                        {0xAC00, 0xD7A3},
                                        {0xF900, 0xFAFF},
                                        {0xFE30, 0xFE6F},
                                        {0xFF00, 0xFF60},
                                        {0x1F300, 0x1FAFF},
                                        {0x20000, 0x3FFFD}}};
// C1 controls, soft hyphen, zero-width and direction marks, line separators, byte order mark,
// private interlinear marks, tags: invisible, or able to reorder what stands around them.
constexpr std::array<Range, 9> unsafe = {{{0x80, 0x9F},
                                          {0xAD, 0xAD},
                                          {0x61C, 0x61C},
                                          {0x200B, 0x200F},
                                          {0x2028, 0x202E},
                                          {0x2060, 0x206F},
                                          {0xFEFF, 0xFEFF},
                                          {0xFFF9, 0xFFFB},
                                          {0xE0000, 0xE0FFF}}};

struct Decoded {
  char32_t c = 0;
  std::size_t length = 1;
  bool valid = false;
};

// One character of UTF-8 (RFC 3629): overlong forms, surrogates and cut sequences are invalid and
// one byte long.
Decoded decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  std::size_t length = 0;
  char32_t c = 0;
  char32_t least = 0;
  if ((lead & 0xE0) == 0xC0) {
    length = 2, c = lead & 0x1F, least = 0x80;
  } else if ((lead & 0xF0) == 0xE0) {
    length = 3, c = lead & 0x0F, least = 0x800;
  } else if ((lead & 0xF8) == 0xF0) {
    length = 4, c = lead & 0x07, least = 0x10000;
  }
  if (length == 0 || text.size() < length) return {};
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    c = (c << 6) | (byte(i) & 0x3F);
  }
  if (c < least || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) return {};
  return {c, length, true};
}

std::size_t columns_of(const Decoded& d) {
  if (!d.valid) return 1;
  if (in(zero_width, d.c)) return 0;
  return in(wide, d.c) ? 2 : 1;
}

// The longest beginning of at most `width` columns: its bytes and its columns. Combining marks stay
// with their letter.
std::pair<std::size_t, std::size_t> fitting(std::string_view text, std::size_t width) {
  std::size_t bytes = 0;
  std::size_t used = 0;
  while (bytes < text.size()) {
    const Decoded d = decode(text.substr(bytes));
    const std::size_t w = columns_of(d);
    if (used + w > width) break;
    used += w;
    bytes += d.length;
  }
  return {bytes, used};
}

}  // namespace

std::string harmless(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Decoded d = decode(text);
    if (!d.valid || in(unsafe, d.c)) {
      out += '?';
    } else if (d.c == '\n' || d.c == '\t' || d.c == '\r') {
      out += ' ';
    } else if (d.c < 0x20 || d.c == 0x7F) {
      out += '?';
    } else {
      out += text.substr(0, d.length);
    }
    text.remove_prefix(d.length);
  }
  return out;
}

std::size_t columns(std::string_view text) {
  std::size_t used = 0;
  while (!text.empty()) {
    const Decoded d = decode(text);
    used += columns_of(d);
    text.remove_prefix(d.length);
  }
  return used;
}

std::string cut(std::string_view text, std::size_t width) {
  if (width == 0) return "";
  if (columns(text) <= width) return std::string(text);
  return std::string(text.substr(0, fitting(text, width - 1).first)) + "…";
}

std::string pad(std::string_view text, std::size_t width) {
  std::string out = cut(text, width);
  const std::size_t used = columns(out);
  return used < width ? out + std::string(width - used, ' ') : out;
}

std::string pad_left(std::string_view text, std::size_t width) {
  std::string out = cut(text, width);
  const std::size_t used = columns(out);
  return used < width ? std::string(width - used, ' ') + out : out;
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  width = width < 2 ? 2 : width;  // a wide character must fit
  std::string line;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    std::string_view word = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    if (word.empty()) continue;
    const std::size_t used = columns(line);
    if (!line.empty() && used + 1 + columns(word) <= width) {
      line += ' ';
      line += word;
      continue;
    }
    if (!line.empty()) lines.push_back(std::exchange(line, ""));
    while (columns(word) > width) {
      const std::size_t bytes = fitting(word, width).first;
      lines.emplace_back(word.substr(0, bytes));
      word.remove_prefix(bytes);
    }
    line = word;
  }
  if (!line.empty() || lines.empty()) lines.push_back(line);
  return lines;
}

std::string paragraph(std::string_view lead, std::string_view text, std::size_t width) {
  const std::size_t indent = columns(lead);
  std::string out;
  for (const std::string& line : wrap(text, width > indent + 20 ? width - indent : 20)) {
    out += out.empty() ? std::string(lead) : std::string(indent, ' ');
    out += line + "\n";
  }
  return out;
}

}  // namespace takt::report
