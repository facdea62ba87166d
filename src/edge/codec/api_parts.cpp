#include "edge/codec/api_parts.h"

#include <array>
#include <cstring>

namespace takt::codec {
namespace {

struct Civil {
  std::int64_t year;
  unsigned month;
  unsigned day;
};

// Days since 1970-01-01 <-> date in the proleptic Gregorian calendar: years begin in March, eras
// have 400 years (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
Civil civil_from_days(std::int64_t days) {
  days += 719'468;
  const std::int64_t era = (days >= 0 ? days : days - 146'096) / 146'097;
  const auto doe = static_cast<unsigned>(days - era * 146'097);
  const unsigned yoe = (doe - doe / 1460 + doe / 36'524 - doe / 146'096) / 365;
  const unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
  const unsigned mp = (5 * doy + 2) / 153;
  const unsigned day = doy - (153 * mp + 2) / 5 + 1;
  const unsigned month = mp < 10 ? mp + 3 : mp - 9;
  return {static_cast<std::int64_t>(yoe) + era * 400 + (month <= 2 ? 1 : 0), month, day};
}

std::int64_t days_from_civil(std::int64_t year, unsigned month, unsigned day) {
  year -= month <= 2 ? 1 : 0;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const auto yoe = static_cast<unsigned>(year - era * 400);
  const unsigned doy = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  const unsigned doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
  return era * 146'097 + static_cast<std::int64_t>(doe) - 719'468;
}

// Appends at least `width` digits.
char* digits(char* to, std::uint64_t value, int width) {
  std::array<char, 20> reversed;
  int count = 0;
  do {
    reversed[static_cast<std::size_t>(count++)] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value > 0 || count < width);
  while (count > 0) *to++ = reversed[static_cast<std::size_t>(--count)];
  return to;
}

// Writes at most 40 characters.
char* write_iso8601(char* to, Instant at) {
  constexpr std::int64_t day_us = 86'400'000'000;
  std::int64_t days = at.us / day_us;
  std::int64_t rest = at.us % day_us;
  if (rest < 0) {
    rest += day_us;
    --days;
  }
  const Civil date = civil_from_days(days);
  if (date.year < 0) *to++ = '-';
  to = digits(to, static_cast<std::uint64_t>(date.year < 0 ? -date.year : date.year), 4);
  *to++ = '-';
  to = digits(to, date.month, 2);
  *to++ = '-';
  to = digits(to, date.day, 2);
  *to++ = 'T';
  const auto us = static_cast<std::uint64_t>(rest);
  to = digits(to, us / 3'600'000'000, 2);
  *to++ = ':';
  to = digits(to, us / 60'000'000 % 60, 2);
  *to++ = ':';
  to = digits(to, us / 1'000'000 % 60, 2);
  *to++ = '.';
  to = us % 1000 == 0 ? digits(to, us / 1000 % 1000, 3) : digits(to, us % 1'000'000, 6);
  *to++ = 'Z';
  return to;
}

}  // namespace

std::string iso8601(Instant at) {
  std::array<char, 64> text;
  return {text.data(), write_iso8601(text.data(), at)};
}

Result<Instant> instant_from_iso8601(std::string_view text) {
  const auto bad = [&] {
    return fail(ErrorKind::invalid, "'" + std::string(text.substr(0, 60)) +
                                        "' is not a time; expected for instance "
                                        "2026-01-31T07:00:00Z");
  };
  constexpr std::string_view form = "0000-00-00T00:00:00";
  if (text.size() < form.size() + 1 || text.back() != 'Z') return bad();
  std::array<unsigned, 6> parts{};
  std::size_t part = 0;
  for (std::size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '0') {
      if (text[i] != form[i]) return bad();
      ++part;
      continue;
    }
    if (text[i] < '0' || text[i] > '9') return bad();
    parts[part] = parts[part] * 10 + static_cast<unsigned>(text[i] - '0');
  }
  const auto [year, month, day, hour, minute, second] = parts;
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  constexpr std::array<unsigned, 12> lengths = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 59) return bad();
  if (day > lengths[month - 1] + (month == 2 && leap ? 1 : 0)) return bad();
  std::int64_t fraction = 0;
  std::string_view rest = text.substr(form.size(), text.size() - form.size() - 1);
  if (!rest.empty()) {
    if (rest.front() != '.' || rest.size() < 2 || rest.size() > 7) return bad();
    for (std::size_t i = 1; i <= 6; ++i) {
      const char c = i < rest.size() ? rest[i] : '0';
      if (c < '0' || c > '9') return bad();
      fraction = fraction * 10 + (c - '0');
    }
  }
  const std::int64_t in_day = (std::int64_t{hour} * 60 + minute) * 60 + second;
  return Instant{(days_from_civil(year, month, day) * 86'400 + in_day) * 1'000'000 + fraction};
}

void begin_document(JsonWriter& out, const DocumentHead& head) {
  out.begin_object();
  out.field("takt", head.takt_version);
  texts_field(out, "warnings", head.warnings);
}

void put_time(JsonWriter& out, Instant at) {
  std::array<char, 64> text;
  char* const end = write_iso8601(text.data(), at);
  out.plain_text({text.data(), static_cast<std::size_t>(end - text.data())});
}

void time_field(JsonWriter& out, std::string_view name, const std::optional<Instant>& at) {
  out.key(name);
  if (at)
    put_time(out, *at);
  else
    out.null();
}

void texts_field(JsonWriter& out, std::string_view name, const std::vector<std::string>& texts) {
  out.key(name);
  out.begin_array();
  for (const std::string& text : texts) out.text(text);
  out.end_array();
}

void blockers_field(JsonWriter& out, std::string_view name, const std::vector<Blocker>& blockers) {
  out.key(name);
  out.begin_array();
  for (const Blocker& blocker : blockers) {
    out.begin_object();
    out.field("blocker", to_string(blocker.kind));
    out.field("needed", blocker.needed);
    out.field("available", blocker.available);
    out.field("action", blocker.action);
    out.end_object();
  }
  out.end_array();
}

void MeasuredFields::put(const std::vector<std::string>& v) {
  out_.begin_array();
  for (const std::string& text : v) out_.text(text);
  out_.end_array();
}

void MeasuredFields::finish() {
  if (reasons_.empty()) return;
  out_.key("missing");
  out_.begin_object();
  for (const auto& [name, reason] : reasons_) out_.field(name, reason);
  out_.end_object();
}

}  // namespace takt::codec
