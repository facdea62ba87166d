#pragma once
// Seeded randomness for simulations: the same seed gives the same numbers on every machine, which
// the standard library's distributions do not promise. splitmix64 (Steele, Lea, Flood, OOPSLA
// 2014). Not for secrets.
#include <cstdint>
#include <string_view>

#include "core/base/fingerprint.h"
#include "core/base/quantities.h"

namespace takt {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
  }
  // 0 ... n-1; n > 0. Its bias is below n / 2^64.
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  int below(int n) { return static_cast<int>(below(static_cast<std::uint64_t>(n))); }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  bool chance(int percent) { return below(100) < percent; }
  // Both ends included.
  Duration between(Duration least, Duration most) {
    return {least.us +
            static_cast<std::int64_t>(below(static_cast<std::uint64_t>(most.us - least.us) + 1))};
  }
  // A stream of its own for a part, which does not shift when other parts draw more or less.
  Random fork(std::string_view part) const {
    return Random(Fingerprint().add(state_).add(part).value());
  }

 private:
  std::uint64_t state_;
};

}  // namespace takt
