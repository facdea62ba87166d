#pragma once
// Quantities with their unit in the type. Resource arithmetic is in integers only.
#include <compare>
#include <cstdint>

namespace takt {

struct Bytes {
  std::int64_t value = 0;
  auto operator<=>(const Bytes&) const = default;
  Bytes operator+(Bytes other) const { return {value + other.value}; }
  Bytes operator-(Bytes other) const { return {value - other.value}; }
  Bytes& operator+=(Bytes other) {
    value += other.value;
    return *this;
  }
  Bytes& operator-=(Bytes other) {
    value -= other.value;
    return *this;
  }
};
inline constexpr Bytes kibibytes(std::int64_t n) { return {n * 1024}; }
inline constexpr Bytes mebibytes(std::int64_t n) { return {n * 1024 * 1024}; }
inline constexpr Bytes gibibytes(std::int64_t n) { return {n * 1024 * 1024 * 1024}; }

// A time span in microseconds.
struct Duration {
  std::int64_t us = 0;
  auto operator<=>(const Duration&) const = default;
  Duration operator+(Duration other) const { return {us + other.us}; }
  Duration operator-(Duration other) const { return {us - other.us}; }
};
inline constexpr Duration microseconds(std::int64_t n) { return {n}; }
inline constexpr Duration milliseconds(std::int64_t n) { return {n * 1000}; }
inline constexpr Duration seconds(std::int64_t n) { return {n * 1'000'000}; }
inline constexpr Duration minutes(std::int64_t n) { return seconds(n * 60); }
inline constexpr Duration hours(std::int64_t n) { return minutes(n * 60); }

// A point in time: microseconds since 1970-01-01T00:00:00Z. Only edges read a clock.
struct Instant {
  std::int64_t us = 0;
  auto operator<=>(const Instant&) const = default;
  Instant operator+(Duration d) const { return {us + d.us}; }
  Instant operator-(Duration d) const { return {us - d.us}; }
  Duration operator-(Instant other) const { return {us - other.us}; }
};

}  // namespace takt
