#pragma once
// A JSON document as it was read: the only thing in the codec that a JSON parser fills. Internal.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace takt::codec {

struct JsonField;

struct JsonValue {
  enum class Kind { null, boolean, integer, natural, real, text, list, object };
  Kind kind = Kind::null;
  bool flag = false;
  std::int64_t integer = 0;  // below zero only; others are `natural`
  std::uint64_t natural = 0;
  double real = 0;
  std::string text;
  std::vector<JsonValue> items;
  std::vector<JsonField> fields;  // in the order of the document

  const JsonValue* find(std::string_view name) const;  // nullptr: not there
};

struct JsonField {
  JsonField(std::string field_name, JsonValue field_value)
      : name(std::move(field_name)), value(std::move(field_value)) {}
  std::string name;
  JsonValue value;
};

inline constexpr int json_depth_max = 32;

// Strict JSON (RFC 8259), one value and nothing behind it. Repeated names, nesting deeper than
// json_depth_max and texts longer than `bytes_max` are refused.
Result<JsonValue> parse_json(std::string_view text, std::size_t bytes_max);

// "a number", "a text", ...: for messages.
std::string describe(const JsonValue& value);

}  // namespace takt::codec
