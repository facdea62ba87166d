#pragma once
// A 64-bit hash of values, the same on every machine: tells whether two states are equal. Not
// against malice. Mixing is the finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/ids.h"
#include "core/base/quantities.h"

namespace takt {

class Fingerprint {
 public:
  Fingerprint& add(std::uint64_t value) {
    state_ = mixed(state_ ^ mixed(value + 0x9E3779B97F4A7C15U));
    return *this;
  }
  // Eight bytes at a time; the length goes first, so that "ab","c" differs from "a","bc".
  Fingerprint& add(std::string_view text) {
    add(static_cast<std::uint64_t>(text.size()));
    while (!text.empty()) {
      std::uint64_t piece = 0;
      const std::size_t size = text.size() < 8 ? text.size() : 8;
      for (std::size_t i = 0; i < size; ++i)
        piece |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[i])) << (8 * i);
      add(piece);
      text.remove_prefix(size);
    }
    return *this;
  }
  Fingerprint& add(Instant at) { return add(static_cast<std::uint64_t>(at.us)); }
  Fingerprint& add(Duration span) { return add(static_cast<std::uint64_t>(span.us)); }
  Fingerprint& add(Bytes bytes) { return add(static_cast<std::uint64_t>(bytes.value)); }
  Fingerprint& add(JobId id) { return add(id.value); }
  Fingerprint& add(AttemptId id) { return add(id.job).add(std::uint64_t{id.number}); }
  template <class T>
  Fingerprint& add(const std::optional<T>& value) {
    add(std::uint64_t{value.has_value()});
    return value ? add(*value) : *this;
  }
  // Enums, int, bool.
  template <class T>
  Fingerprint& add_number(T value) {
    return add(static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
  }
  std::uint64_t value() const { return state_; }

 private:
  static std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
  }
  std::uint64_t state_ = 0;
};

}  // namespace takt
