#pragma once
// Values <-> JSON without loss, for the journal and the agent's protocol. Internal: only their .cpp
// files include it.
//
// Each struct is described once, by `fields(visitor, value, Tag<Struct>)`, and each enum by
// `words(Tag<Enum>)`; writing and reading both follow the description, so they cannot disagree.
//   text           a string, or {"b64": ...} when it is not UTF-8
//   optional       left out when empty
//   Measured       the value, or {"missing": kind, "detail": text}
//   shared_ptr     what it points to
//   map            a list of [key, value]
//   Bytes, times   integers (bytes, microseconds)
//   strong ids     what they hold
// Reading is strict: a missing, unknown or ill-typed field is an error that names the path.
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/ids.h"
#include "core/base/measured.h"
#include "core/base/quantities.h"
#include "core/base/result.h"
#include "edge/codec/base64.h"
#include "edge/codec/json_value.h"
#include "edge/codec/json_writer.h"
#include "edge/codec/utf8.h"

namespace takt::codec::exact {

template <class T>
struct Tag {};

template <class E>
struct Word {
  E value;
  std::string_view word;
};

// ---- which shape a type has ------------------------------------------------------------------

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsShared : std::false_type {};
template <class T>
struct IsShared<std::shared_ptr<const T>> : std::true_type {
  using Value = T;
};
template <class T>
struct IsMap : std::false_type {};
template <class K, class V>
struct IsMap<std::map<K, V>> : std::true_type {};
template <class T>
struct IsMeasured : std::false_type {};
template <class T>
struct IsMeasured<Measured<T>> : std::true_type {};
template <class T>
struct IsStrongId : std::false_type {};
template <class Tag, class Rep>
struct IsStrongId<StrongId<Tag, Rep>> : std::true_type {};

inline constexpr Word<MissingKind> missing_words[] = {
    {MissingKind::not_supported, "not_supported"}, {MissingKind::not_permitted, "not_permitted"},
    {MissingKind::not_found, "not_found"},         {MissingKind::no_sample_yet, "no_sample_yet"},
    {MissingKind::timed_out, "timed_out"},         {MissingKind::device_lost, "device_lost"},
    {MissingKind::out_of_range, "out_of_range"},   {MissingKind::driver_error, "driver_error"}};
inline constexpr auto& words(Tag<MissingKind>) { return missing_words; }

// ---- writing ---------------------------------------------------------------------------------

template <class T>
void put(JsonWriter& out, const T& value);

class FieldWriter {
 public:
  explicit FieldWriter(JsonWriter& out) : out_(out) {}
  template <class T>
  void operator()(const char* name, const T& value) {
    if constexpr (IsOptional<T>::value) {
      if (!value) return;
      out_.key(name);
      put(out_, *value);
    } else {
      out_.key(name);
      put(out_, value);
    }
  }

 private:
  JsonWriter& out_;
};

inline void put_text(JsonWriter& out, const std::string& value) {
  if (is_utf8(value)) return out.text(value);
  out.begin_object();
  out.key("b64");
  out.plain_text(base64_encode(value));
  out.end_object();
}

template <class T>
void put_measured(JsonWriter& out, const Measured<T>& value) {
  Missing why;
  if (value) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isfinite(*value)) return put(out, *value);
      why = {MissingKind::out_of_range, "not a finite number"};
    } else {
      return put(out, *value);
    }
  } else {
    why = value.error();
  }
  out.begin_object();
  out.key("missing");
  put(out, why.kind);
  if (!why.detail.empty()) {
    out.key("detail");
    put_text(out, why.detail);
  }
  out.end_object();
}

// JSON has no infinities; their names are texts, so that any double comes back.
inline void put_double(JsonWriter& out, double value) {
  if (std::isnan(value)) return out.plain_text("nan");
  if (std::isinf(value)) return out.plain_text(value > 0 ? "inf" : "-inf");
  out.number(value);
}

template <class E>
void put_word(JsonWriter& out, E value) {
  for (const Word<E>& entry : words(Tag<E>{}))
    if (entry.value == value) return out.plain_text(entry.word);
  TAKT_CHECK(false, "an enum value without a word in the codec");
}

template <class T>
void put(JsonWriter& out, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    out.boolean(value);
  } else if constexpr (std::is_enum_v<T>) {
    put_word(out, value);
  } else if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_signed_v<T>) {
      out.integer(value);
    } else {
      out.natural(value);
    }
  } else if constexpr (std::is_floating_point_v<T>) {
    put_double(out, value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    put_text(out, value);
  } else if constexpr (std::is_same_v<T, Bytes> || IsStrongId<T>::value) {
    put(out, value.value);
  } else if constexpr (std::is_same_v<T, Duration> || std::is_same_v<T, Instant>) {
    put(out, value.us);
  } else if constexpr (IsMeasured<T>::value) {
    put_measured(out, value);
  } else if constexpr (IsShared<T>::value) {
    put(out, *value);
  } else if constexpr (IsVector<T>::value) {
    out.begin_array();
    for (const auto& item : value) put(out, item);
    out.end_array();
  } else if constexpr (IsMap<T>::value) {
    out.begin_array();
    for (const auto& [key, item] : value) {
      out.begin_array();
      put(out, key);
      put(out, item);
      out.end_array();
    }
    out.end_array();
  } else {
    out.begin_object();
    FieldWriter writer(out);
    fields(writer, value, Tag<T>{});
    out.end_object();
  }
}

// ---- reading ---------------------------------------------------------------------------------

// Where in the document a value stands; made into text only when something is wrong.
struct Place {
  const Place* parent = nullptr;
  std::string_view name;

  std::string path() const {
    if (parent == nullptr) return std::string(name);
    const std::string above = parent->path();
    return above.empty() ? std::string(name) : above + "." + std::string(name);
  }
};

// The first thing that was wrong; what follows it is not looked at.
struct Fault {
  std::string sentence;
  bool any() const { return !sentence.empty(); }
  void set(const Place& place, const std::string& what) {
    if (any()) return;
    const std::string path = place.path();
    sentence = path.empty() ? what : path + ": " + what;
  }
  void expected(const Place& place, const char* what, const JsonValue& found) {
    set(place, describe(found) + " is not " + what);
  }
};

template <class T>
void get(const JsonValue& from, const Place& place, Fault& fault, T& to);

class FieldReader {
 public:
  FieldReader(const JsonValue& object, const Place& place, Fault& fault)
      : object_(object), place_(place), fault_(fault) {}

  template <class T>
  void operator()(const char* name, T& to) {
    if (fault_.any()) return;
    const JsonValue* value = next(name);
    if constexpr (IsOptional<T>::value) {
      to.reset();
      if (value == nullptr) return;
      to.emplace();
      get(*value, Place{&place_, name}, fault_, *to);
    } else {
      if (value == nullptr) return fault_.set(Place{&place_, name}, "is missing");
      get(*value, Place{&place_, name}, fault_, to);
    }
  }

  // Everything that was there must have been asked for.
  void done() {
    if (fault_.any() || taken_ == object_.fields.size()) return;
    for (const auto& field : object_.fields)
      if (!was_asked(field.name))
        return fault_.set(Place{&place_, field.name}, "is not a field of this record");
  }

 private:
  // Fields come in the order they were written in, so the next one is nearly always right.
  const JsonValue* next(std::string_view name) {
    asked_.push_back(name);
    if (cursor_ < object_.fields.size() && object_.fields[cursor_].name == name) {
      ++taken_;
      return &object_.fields[cursor_++].value;
    }
    for (std::size_t i = 0; i < object_.fields.size(); ++i) {
      if (object_.fields[i].name != name) continue;
      cursor_ = i + 1;
      ++taken_;
      return &object_.fields[i].value;
    }
    return nullptr;
  }
  bool was_asked(std::string_view name) const {
    for (const std::string_view a : asked_)
      if (a == name) return true;
    return false;
  }

  const JsonValue& object_;
  const Place& place_;
  Fault& fault_;
  std::vector<std::string_view> asked_;
  std::size_t cursor_ = 0;
  std::size_t taken_ = 0;
};

inline void get_text(const JsonValue& from, const Place& place, Fault& fault, std::string& to) {
  if (from.kind == JsonValue::Kind::text) {
    to = from.text;
    return;
  }
  if (from.kind == JsonValue::Kind::object && from.fields.size() == 1 &&
      from.fields[0].name == "b64" && from.fields[0].value.kind == JsonValue::Kind::text) {
    std::optional<std::string> bytes = base64_decode(from.fields[0].value.text);
    if (!bytes) return fault.set(place, "the base64 text is damaged");
    to = std::move(*bytes);
    return;
  }
  fault.expected(place, "a text", from);
}

template <class T>
void get_integer(const JsonValue& from, const Place& place, Fault& fault, T& to) {
  if (from.kind == JsonValue::Kind::natural &&
      from.natural <= static_cast<std::uint64_t>(std::numeric_limits<T>::max())) {
    to = static_cast<T>(from.natural);
    return;
  }
  if constexpr (std::is_signed_v<T>) {
    if (from.kind == JsonValue::Kind::integer &&
        from.integer >= static_cast<std::int64_t>(std::numeric_limits<T>::min())) {
      to = static_cast<T>(from.integer);
      return;
    }
  }
  fault.expected(place, "a whole number that fits here", from);
}

inline void get_double(const JsonValue& from, const Place& place, Fault& fault, double& to) {
  if (from.kind == JsonValue::Kind::real) {
    to = from.real;
  } else if (from.kind == JsonValue::Kind::natural) {
    to = static_cast<double>(from.natural);
  } else if (from.kind == JsonValue::Kind::integer) {
    to = static_cast<double>(from.integer);
  } else if (from.kind == JsonValue::Kind::text && from.text == "nan") {
    to = std::numeric_limits<double>::quiet_NaN();
  } else if (from.kind == JsonValue::Kind::text && (from.text == "inf" || from.text == "-inf")) {
    to = from.text == "inf" ? std::numeric_limits<double>::infinity()
                            : -std::numeric_limits<double>::infinity();
  } else {
    fault.expected(place, "a number", from);
  }
}

template <class E>
void get_word(const JsonValue& from, const Place& place, Fault& fault, E& to) {
  std::string all;
  for (const Word<E>& entry : words(Tag<E>{})) {
    if (from.kind == JsonValue::Kind::text && from.text == entry.word) {
      to = entry.value;
      return;
    }
    all += (all.empty() ? "" : ", ") + std::string(entry.word);
  }
  fault.set(place, describe(from) + " is not one of " + all);
}

template <class T>
void get_measured(const JsonValue& from, const Place& place, Fault& fault, Measured<T>& to) {
  const JsonValue* kind = from.find("missing");
  if (from.kind != JsonValue::Kind::object || kind == nullptr) {
    T value{};
    get(from, place, fault, value);
    to = std::move(value);
    return;
  }
  Missing why;
  std::optional<std::string> detail;
  FieldReader reader(from, place, fault);
  reader("missing", why.kind);
  reader("detail", detail);
  reader.done();
  if (detail) why.detail = std::move(*detail);
  to = tl::make_unexpected(std::move(why));
}

template <class T>
void get_list(const JsonValue& from, const Place& place, Fault& fault, std::vector<T>& to) {
  to.clear();
  if (from.kind != JsonValue::Kind::list) return fault.expected(place, "a list", from);
  to.reserve(from.items.size());
  for (std::size_t i = 0; i < from.items.size() && !fault.any(); ++i) {
    T item{};
    const std::string number = std::to_string(i);
    get(from.items[i], Place{&place, number}, fault, item);
    to.push_back(std::move(item));
  }
}

template <class K, class V>
void get_map(const JsonValue& from, const Place& place, Fault& fault, std::map<K, V>& to) {
  to.clear();
  if (from.kind != JsonValue::Kind::list) return fault.expected(place, "a list of pairs", from);
  for (const JsonValue& pair : from.items) {
    if (pair.kind != JsonValue::Kind::list || pair.items.size() != 2)
      return fault.expected(place, "a pair of key and value", pair);
    K key{};
    V value{};
    get(pair.items[0], place, fault, key);
    get(pair.items[1], place, fault, value);
    if (fault.any()) return;
    if (!to.emplace(std::move(key), std::move(value)).second)
      return fault.set(place, "a key is there twice");
  }
}

template <class T>
void get(const JsonValue& from, const Place& place, Fault& fault, T& to) {
  if constexpr (std::is_same_v<T, bool>) {
    if (from.kind != JsonValue::Kind::boolean) return fault.expected(place, "true or false", from);
    to = from.flag;
  } else if constexpr (std::is_enum_v<T>) {
    get_word(from, place, fault, to);
  } else if constexpr (std::is_integral_v<T>) {
    get_integer(from, place, fault, to);
  } else if constexpr (std::is_floating_point_v<T>) {
    get_double(from, place, fault, to);
  } else if constexpr (std::is_same_v<T, std::string>) {
    get_text(from, place, fault, to);
  } else if constexpr (std::is_same_v<T, Bytes> || IsStrongId<T>::value) {
    get(from, place, fault, to.value);
  } else if constexpr (std::is_same_v<T, Duration> || std::is_same_v<T, Instant>) {
    get(from, place, fault, to.us);
  } else if constexpr (IsMeasured<T>::value) {
    get_measured(from, place, fault, to);
  } else if constexpr (IsShared<T>::value) {
    auto value = std::make_shared<typename IsShared<T>::Value>();
    get(from, place, fault, *value);
    to = std::move(value);
  } else if constexpr (IsVector<T>::value) {
    get_list(from, place, fault, to);
  } else if constexpr (IsMap<T>::value) {
    get_map(from, place, fault, to);
  } else {
    if (from.kind != JsonValue::Kind::object) return fault.expected(place, "an object", from);
    FieldReader reader(from, place, fault);
    fields(reader, to, Tag<T>{});
    reader.done();
  }
}

// ---- whole documents -------------------------------------------------------------------------

template <class T>
std::string to_json(const T& value) {
  JsonWriter out;
  put(out, value);
  return out.take();
}

template <class T>
Result<T> from_json(std::string_view text, std::size_t bytes_max) {
  Result<JsonValue> document = parse_json(text, bytes_max);
  if (!document) return tl::make_unexpected(document.error());
  Fault fault;
  T value{};
  get(*document, Place{}, fault, value);
  if (fault.any()) return fail(ErrorKind::invalid, fault.sentence);
  return value;
}

}  // namespace takt::codec::exact
