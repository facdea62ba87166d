#include "edge/codec/json_value.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <set>

#include "edge/codec/utf8.h"

namespace takt::codec {
namespace {

// Builds the tree from the parser's events. Every method returns false to stop.
class Builder {
 public:
  explicit Builder(JsonValue& root) : root_(root) {}

  std::string problem;

  bool null() { return place() != nullptr; }
  bool boolean(bool value) {
    JsonValue* v = place();
    v->kind = JsonValue::Kind::boolean;
    v->flag = value;
    return true;
  }
  bool number_integer(std::int64_t value) {
    JsonValue* v = place();
    if (value >= 0) {
      v->kind = JsonValue::Kind::natural;
      v->natural = static_cast<std::uint64_t>(value);
    } else {
      v->kind = JsonValue::Kind::integer;
      v->integer = value;
    }
    return true;
  }
  bool number_unsigned(std::uint64_t value) {
    JsonValue* v = place();
    v->kind = JsonValue::Kind::natural;
    v->natural = value;
    return true;
  }
  bool number_float(double value, const std::string& /*digits*/) {
    JsonValue* v = place();
    v->kind = JsonValue::Kind::real;
    v->real = value;
    return true;
  }
  bool string(std::string& value) {
    JsonValue* v = place();
    v->kind = JsonValue::Kind::text;
    v->text = std::move(value);
    return true;
  }
  bool binary(std::vector<std::uint8_t>& /*bytes*/) { return false; }
  bool start_object(std::size_t /*size*/) { return start(JsonValue::Kind::object); }
  bool start_array(std::size_t /*size*/) { return start(JsonValue::Kind::list); }
  bool key(std::string& name) {
    JsonValue& object = *open_.back();
    // A linear search is quickest for the few fields of our objects; a flood of names goes by set.
    bool repeated = false;
    if (object.fields.size() < 64) {
      repeated = object.find(name) != nullptr;
    } else {
      std::set<std::string>& names = many_names_[open_.size()];
      if (object.fields.size() == 64) {
        names.clear();
        for (const auto& field : object.fields) names.insert(field.name);
      }
      repeated = !names.insert(name).second;
    }
    if (repeated) {
      problem = "the field '" + printable(name) + "' is there twice";
      return false;
    }
    object.fields.emplace_back(std::move(name), JsonValue{});
    return true;
  }
  bool end_object() { return end(); }
  bool end_array() { return end(); }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) {
    problem = "not JSON: stopped making sense at byte " + std::to_string(position);
    return false;
  }

 private:
  // Where the next value goes.
  JsonValue* place() {
    if (open_.empty()) return &root_;
    JsonValue& parent = *open_.back();
    if (parent.kind == JsonValue::Kind::object) return &parent.fields.back().value;
    parent.items.emplace_back();
    return &parent.items.back();
  }
  bool start(JsonValue::Kind kind) {
    if (open_.size() >= static_cast<std::size_t>(json_depth_max)) {
      problem = "nested deeper than " + std::to_string(json_depth_max) + " levels";
      return false;
    }
    JsonValue* v = place();
    v->kind = kind;
    // Stays valid: a list grows only while none of its elements is open.
    open_.push_back(v);
    return true;
  }
  bool end() {
    open_.pop_back();
    return true;
  }

  JsonValue& root_;
  std::vector<JsonValue*> open_;
  std::map<std::size_t, std::set<std::string>> many_names_;
};

}  // namespace

const JsonValue* JsonValue::find(std::string_view name) const {
  for (const auto& field : fields)
    if (field.name == name) return &field.value;
  return nullptr;
}

Result<JsonValue> parse_json(std::string_view text, std::size_t bytes_max) {
  if (text.size() > bytes_max)
    return fail(ErrorKind::invalid, "the document has " + std::to_string(text.size()) +
                                        " bytes; at most " + std::to_string(bytes_max) +
                                        " are read");
  JsonValue root;
  Builder builder(root);
  const bool fine = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  if (!fine)
    return fail(ErrorKind::invalid, builder.problem.empty() ? "not JSON" : builder.problem);
  return root;
}

std::string describe(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::null: return "null";
    case JsonValue::Kind::boolean: return value.flag ? "true" : "false";
    case JsonValue::Kind::integer: return std::to_string(value.integer);
    case JsonValue::Kind::natural: return std::to_string(value.natural);
    case JsonValue::Kind::real: return "the number " + fmt::format("{}", value.real);
    case JsonValue::Kind::text: return "'" + printable(value.text) + "'";
    case JsonValue::Kind::list: return "a list";
    case JsonValue::Kind::object: break;
  }
  return "an object";
}

}  // namespace takt::codec
