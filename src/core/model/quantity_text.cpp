#include "core/model/quantity_text.h"

#include <array>
#include <limits>
#include <optional>
#include <utility>

namespace takt {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// A decimal number at the front of a text: digits, perhaps a point and up to nine more digits.
struct Decimal {
  std::int64_t whole = 0;
  std::int64_t fraction = 0;  // in units of 1 / scale
  std::int64_t scale = 1;     // a power of ten, at most 10^9
};

// Takes the number off `text`; nothing when there is none or it is too long.
std::optional<Decimal> take_decimal(std::string_view& text) {
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  Decimal number;
  while (!text.empty() && is_digit(text.front())) {
    const std::int64_t digit = text.front() - '0';
    if (number.whole > (kMax - digit) / 10) return std::nullopt;
    number.whole = number.whole * 10 + digit;
    text.remove_prefix(1);
  }
  if (text.empty() || text.front() != '.') return number;
  text.remove_prefix(1);
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  while (!text.empty() && is_digit(text.front())) {
    if (number.scale >= 1'000'000'000) return std::nullopt;
    number.fraction = number.fraction * 10 + (text.front() - '0');
    number.scale *= 10;
    text.remove_prefix(1);
  }
  return number;
}

// number x unit, cut off; nothing on overflow.
std::optional<std::int64_t> times(const Decimal& number, std::int64_t unit) {
  if (number.whole > kMax / unit) return std::nullopt;
  const std::int64_t whole = number.whole * unit;
  // fraction < scale, so this part is below `unit`; split the product to stay within 64 bits.
  const std::int64_t part = number.fraction * (unit / number.scale) +
                            number.fraction * (unit % number.scale) / number.scale;
  if (whole > kMax - part) return std::nullopt;
  return whole + part;
}

struct Unit {
  std::string_view name;
  std::int64_t value;
};

constexpr std::array<Unit, 9> kSizes = {{{"B", 1},
                                         {"KiB", 1LL << 10},
                                         {"MiB", 1LL << 20},
                                         {"GiB", 1LL << 30},
                                         {"TiB", 1LL << 40},
                                         {"KB", 1'000},
                                         {"MB", 1'000'000},
                                         {"GB", 1'000'000'000},
                                         {"TB", 1'000'000'000'000}}};

constexpr std::array<Unit, 6> kSpans = {{{"d", 86'400'000'000},
                                         {"h", 3'600'000'000},
                                         {"m", 60'000'000},
                                         {"s", 1'000'000},
                                         {"ms", 1'000},
                                         {"us", 1}}};

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

tl::unexpected<Error> not_a_size(std::string_view text) {
  return fail(ErrorKind::invalid,
              quoted(text) +
                  " is not a size; expected a number with KiB, MiB, GiB, TiB (or KB, MB, GB), "
                  "e.g. 12GiB");
}

tl::unexpected<Error> not_a_duration(std::string_view text) {
  return fail(ErrorKind::invalid,
              quoted(text) +
                  " is not a time span; expected numbers with d, h, m, s or ms, e.g. 8h, 1h30m, "
                  "120s");
}

tl::unexpected<Error> too_large(std::string_view text) {
  return fail(ErrorKind::invalid, quoted(text) + " is too large");
}

}  // namespace

Result<Bytes> parse_size(std::string_view text) {
  std::string_view rest = trimmed(text);
  const std::optional<Decimal> number = take_decimal(rest);
  if (!number) return not_a_size(text);
  rest = trimmed(rest);
  for (const Unit& unit : kSizes) {
    if (rest != unit.name) continue;
    const std::optional<std::int64_t> bytes = times(*number, unit.value);
    if (!bytes) return too_large(text);
    return Bytes{*bytes};
  }
  return not_a_size(text);
}

Result<Duration> parse_duration(std::string_view text) {
  std::string_view rest = trimmed(text);
  if (rest.empty()) return not_a_duration(text);
  std::int64_t total = 0;
  std::size_t next_unit = 0;
  bool fraction_seen = false;
  while (!rest.empty()) {
    const std::optional<Decimal> number = take_decimal(rest);
    if (!number || fraction_seen) return not_a_duration(text);
    fraction_seen = number->scale > 1;
    std::size_t letters = 0;
    while (letters < rest.size() && rest[letters] >= 'a' && rest[letters] <= 'z') ++letters;
    const std::string_view word = rest.substr(0, letters);
    while (next_unit < kSpans.size() && kSpans[next_unit].name != word) ++next_unit;
    if (next_unit == kSpans.size()) return not_a_duration(text);
    const std::optional<std::int64_t> part = times(*number, kSpans[next_unit].value);
    if (!part || *part > kMax - total) return too_large(text);
    total += *part;
    ++next_unit;
    rest.remove_prefix(letters);
  }
  return Duration{total};
}

Result<int> parse_percent(std::string_view text) {
  std::string_view rest = trimmed(text);
  const std::optional<Decimal> number = take_decimal(rest);
  if (!number || number->scale > 1 || trimmed(rest) != "%")
    return fail(ErrorKind::invalid, quoted(text) +
                                        " is not a percentage; expected a whole number with %, "
                                        "e.g. 30%");
  if (number->whole > std::numeric_limits<int>::max()) return too_large(text);
  return static_cast<int>(number->whole);
}

std::string format_size(Bytes size) {
  if (size.value < 0) {
    if (size.value == std::numeric_limits<std::int64_t>::min()) return "-8388608.0 TiB";
    return "-" + format_size(Bytes{-size.value});
  }
  if (size.value < 1024) return std::to_string(size.value) + " B";
  constexpr std::array<const char*, 4> names = {"KiB", "MiB", "GiB", "TiB"};
  std::int64_t unit = 1024;
  std::size_t name = 0;
  for (;;) {
    const std::int64_t whole = size.value / unit;
    const std::int64_t tenths = (size.value % unit * 10 + unit / 2) / unit;  // 0-10
    const std::int64_t all = whole * 10 + tenths;
    if (all >= 10'240 && name + 1 < names.size()) {
      unit *= 1024;
      ++name;
      continue;
    }
    return std::to_string(all / 10) + "." + std::to_string(all % 10) + " " + names[name];
  }
}

std::string format_duration(Duration span) {
  if (span.us < 0) {
    if (span.us == std::numeric_limits<std::int64_t>::min()) return "-106751991d4h";
    return "-" + format_duration(Duration{-span.us});
  }
  for (std::size_t i = 0; i < kSpans.size(); ++i) {
    if (span.us < kSpans[i].value) continue;
    std::string text = std::to_string(span.us / kSpans[i].value) + std::string(kSpans[i].name);
    // Below a second one unit is enough: "300ms", "2s".
    if (kSpans[i].value > 1'000'000) {
      const std::int64_t rest = span.us % kSpans[i].value / kSpans[i + 1].value;
      if (rest > 0) text += std::to_string(rest) + std::string(kSpans[i + 1].name);
    }
    return text;
  }
  return "0s";
}

}  // namespace takt
