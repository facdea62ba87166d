#pragma once
// Arbitrary values of any type that exact_json.h describes, for property tests. Texts are now and
// then not UTF-8, numbers are often at their ends. All comes from one seed, which the property
// draws.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <string>

#include "edge/codec/exact_json.h"

namespace takt::codec::exact {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t any() { return engine_(); }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(engine_() % n); }
  bool flag() { return below(2) == 0; }
  std::string bytes() {
    std::string all(below(40), ' ');
    for (char& c : all) c = static_cast<char>(engine_() & 0xFFU);
    return all;
  }

 private:
  std::mt19937_64 engine_;
};

template <class T>
T arbitrary(Dice& dice);

struct Filler {
  Dice& dice;
  template <class T>
  void operator()(const char* /*name*/, T& to) {
    to = arbitrary<T>(dice);
  }
};

inline std::string arbitrary_text(Dice& dice) {
  switch (dice.below(5)) {
    case 0: return "";
    case 1: return "plain-ascii_42 /usr/bin/python3";
    case 2: return "gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80 \"quoted\" \\ \n\t\r\x01";
    case 3: return dice.bytes();
    default: return std::string("\xFF\x00 half \xE2\x82", 10);
  }
}

template <class T>
T arbitrary_number(Dice& dice) {
  switch (dice.below(6)) {
    case 0: return T{0};
    case 1: return T{1};
    case 2: return std::numeric_limits<T>::min();
    case 3: return std::numeric_limits<T>::max();
    case 4: return static_cast<T>(dice.below(100));
    default: return static_cast<T>(dice.any());
  }
}

inline double arbitrary_double(Dice& dice) {
  const double some[] = {0, 1, -1.5, 0.1, 1e300, 5e-324, 123456789.123456789, 1e22, -1e16};
  if (dice.flag()) return some[dice.below(std::size(some))];
  return (static_cast<double>(dice.any()) - 9e18) / static_cast<double>(1 + dice.below(1'000'000));
}

template <class T>
T arbitrary(Dice& dice) {
  if constexpr (std::is_same_v<T, bool>) {
    return dice.flag();
  } else if constexpr (std::is_enum_v<T>) {
    const auto& all = words(Tag<T>{});
    return all[dice.below(std::size(all))].value;
  } else if constexpr (std::is_integral_v<T>) {
    return arbitrary_number<T>(dice);
  } else if constexpr (std::is_floating_point_v<T>) {
    return arbitrary_double(dice);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return arbitrary_text(dice);
  } else if constexpr (std::is_same_v<T, Bytes>) {
    return Bytes{arbitrary_number<std::int64_t>(dice)};
  } else if constexpr (std::is_same_v<T, Duration> || std::is_same_v<T, Instant>) {
    return T{arbitrary_number<std::int64_t>(dice)};
  } else if constexpr (IsStrongId<T>::value) {
    return T(arbitrary<decltype(T::value)>(dice));
  } else if constexpr (IsOptional<T>::value) {
    if (dice.flag()) return std::nullopt;
    return arbitrary<typename T::value_type>(dice);
  } else if constexpr (IsMeasured<T>::value) {
    if (dice.flag()) return missing(arbitrary<MissingKind>(dice), arbitrary_text(dice));
    return arbitrary<typename T::value_type>(dice);
  } else if constexpr (IsShared<T>::value) {
    return std::make_shared<typename IsShared<T>::Value>(
        arbitrary<typename IsShared<T>::Value>(dice));
  } else if constexpr (IsVector<T>::value) {
    T all;
    for (std::size_t i = dice.below(4); i > 0; --i)
      all.push_back(arbitrary<typename T::value_type>(dice));
    return all;
  } else if constexpr (IsMap<T>::value) {
    T all;
    for (std::size_t i = dice.below(4); i > 0; --i)
      all[arbitrary<typename T::key_type>(dice)] = arbitrary<typename T::mapped_type>(dice);
    return all;
  } else {
    T value{};
    Filler filler{dice};
    fields(filler, value, Tag<T>{});
    if constexpr (requires { value.submission; }) {  // what readers insist on
      value.count = 1 + static_cast<int>(dice.below(3));
      value.group_index = static_cast<int>(dice.below(100));
      if (!value.parameters.empty()) value.parameters.resize(static_cast<std::size_t>(value.count));
    }
    return value;
  }
}

// Whether a description names every member of a struct, in order: each member must begin where the
// one before ends, up to alignment, and the last must reach the end. (A small member that fits into
// the padding between two others would escape.)
class MemberMap {
 public:
  explicit MemberMap(const void* base) : base_(static_cast<const char*>(base)) {}
  template <class T>
  void operator()(const char* name, T& member) {
    const auto at = static_cast<std::size_t>(reinterpret_cast<const char*>(&member) - base_);
    const std::size_t expected = (end_ + alignof(T) - 1) / alignof(T) * alignof(T);
    if (at != expected && gap.empty()) gap = name;
    end_ = at + sizeof(T);
  }
  std::string gap;  // the first member with something undescribed in front of it

  template <class T>
  static std::string first_gap() {
    T value{};
    MemberMap map(&value);
    fields(map, value, Tag<T>{});
    if (map.gap.empty() && (map.end_ + alignof(T) - 1) / alignof(T) * alignof(T) != sizeof(T))
      return "the end";
    return map.gap;
  }

 private:
  const char* base_;
  std::size_t end_ = 0;
};

}  // namespace takt::codec::exact
