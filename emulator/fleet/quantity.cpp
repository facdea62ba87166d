#include "fleet/quantity.h"

#include <charconv>
#include <cmath>

#include "fleet/document.h"

namespace takt::emulator {
namespace {

struct Split {
  double number = 0;
  std::string unit;
};

std::optional<Split> split(std::string_view text) {
  std::string t = trimmed(text);
  Split out;
  auto [end, problem] = std::from_chars(t.data(), t.data() + t.size(), out.number);
  if (problem != std::errc() || end == t.data()) return std::nullopt;
  if (!std::isfinite(out.number) || out.number < 0) return std::nullopt;
  out.unit = trimmed(std::string_view(end, static_cast<std::size_t>(t.data() + t.size() - end)));
  return out;
}

std::optional<std::uint64_t> whole(double value) {
  if (value >= 18e18) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(value));
}

}  // namespace

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  auto s = split(text);
  if (!s) return std::nullopt;
  struct Unit {
    const char* name;
    double bytes;
  };
  constexpr Unit units[] = {{"", 1},
                            {"B", 1},
                            {"KiB", 1024.0},
                            {"MiB", 1048576.0},
                            {"GiB", 1073741824.0},
                            {"TiB", 1099511627776.0},
                            {"KB", 1e3},
                            {"MB", 1e6},
                            {"GB", 1e9},
                            {"TB", 1e12}};
  for (const auto& u : units)
    if (s->unit == u.name) return whole(s->number * u.bytes);
  return std::nullopt;
}

std::optional<double> parse_seconds(std::string_view text) {
  auto s = split(text);
  if (!s) return std::nullopt;
  if (s->unit.empty() || s->unit == "s") return s->number;
  if (s->unit == "ms") return s->number / 1000;
  if (s->unit == "m" || s->unit == "min") return s->number * 60;
  if (s->unit == "h") return s->number * 3600;
  return std::nullopt;
}

std::optional<std::uint64_t> parse_scaled(std::string_view text, std::string_view unit,
                                          double scale) {
  auto s = split(text);
  if (!s || (!s->unit.empty() && s->unit != unit)) return std::nullopt;
  return whole(s->number * scale);
}

std::optional<double> parse_ratio(std::string_view text) {
  auto s = split(text);
  if (!s) return std::nullopt;
  double value = s->unit == "%" ? s->number / 100 : s->number;
  if ((!s->unit.empty() && s->unit != "%") || value > 1) return std::nullopt;
  return value;
}

}  // namespace takt::emulator
