#pragma once
// Arbitrary values of any type that exact_json.h describes, for property tests. Texts are now and
// then not UTF-8, numbers are often at their ends.
#include <rapidcheck.h>

#include "edge/codec/exact_json.h"

namespace takt::codec::exact {

template <class T>
T arbitrary();

struct Filler {
  template <class T>
  void operator()(const char* /*name*/, T& to) {
    to = arbitrary<T>();
  }
};

inline std::string arbitrary_text() {
  switch (*rc::gen::inRange(0, 6)) {
    case 0: return "";
    case 1: return "plain-ascii_42 /usr/bin/python3";
    case 2: return "gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80 \"quoted\" \\ \n\t\r\x01";
    case 3: return *rc::gen::arbitrary<std::string>();
    case 4: {  // any bytes at all
      const auto bytes = *rc::gen::arbitrary<std::vector<std::uint8_t>>();
      return {bytes.begin(), bytes.end()};
    }
    default: return std::string("\xFF\x00 half \xE2\x82", 10);
  }
}

template <class T>
T arbitrary_number() {
  if (*rc::gen::inRange(0, 4) == 0)
    return *rc::gen::element(T{0}, T{1}, std::numeric_limits<T>::min(),
                             std::numeric_limits<T>::max());
  return *rc::gen::arbitrary<T>();
}

inline double arbitrary_double() {
  return *rc::gen::element(0.0, 1.0, -1.5, 0.1, 1e300, 5e-324, 123456789.123456789, 1.0 / 3,
                           *rc::gen::arbitrary<double>());
}

template <class T>
T arbitrary() {
  if constexpr (std::is_same_v<T, bool>) {
    return *rc::gen::arbitrary<bool>();
  } else if constexpr (std::is_enum_v<T>) {
    const auto& all = words(Tag<T>{});
    return all[*rc::gen::inRange<std::size_t>(0, std::size(all))].value;
  } else if constexpr (std::is_integral_v<T>) {
    return arbitrary_number<T>();
  } else if constexpr (std::is_floating_point_v<T>) {
    return arbitrary_double();
  } else if constexpr (std::is_same_v<T, std::string>) {
    return arbitrary_text();
  } else if constexpr (std::is_same_v<T, Bytes>) {
    return Bytes{arbitrary_number<std::int64_t>()};
  } else if constexpr (std::is_same_v<T, Duration> || std::is_same_v<T, Instant>) {
    return T{arbitrary_number<std::int64_t>()};
  } else if constexpr (IsStrongId<T>::value) {
    return T(arbitrary<decltype(T::value)>());
  } else if constexpr (IsOptional<T>::value) {
    if (*rc::gen::arbitrary<bool>()) return std::nullopt;
    return arbitrary<typename T::value_type>();
  } else if constexpr (IsMeasured<T>::value) {
    if (*rc::gen::arbitrary<bool>()) return missing(arbitrary<MissingKind>(), arbitrary_text());
    return arbitrary<typename T::value_type>();
  } else if constexpr (IsVector<T>::value) {
    T all;
    for (int i = *rc::gen::inRange(0, 4); i > 0; --i)
      all.push_back(arbitrary<typename T::value_type>());
    return all;
  } else if constexpr (IsMap<T>::value) {
    T all;
    for (int i = *rc::gen::inRange(0, 4); i > 0; --i)
      all[arbitrary<typename T::key_type>()] = arbitrary<typename T::mapped_type>();
    return all;
  } else {
    T value{};
    Filler filler;
    fields(filler, value, Tag<T>{});
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
