#pragma once
// What several API documents have in common. Internal.
#include <string>
#include <utility>
#include <vector>

#include "core/base/measured.h"
#include "core/model/blocker.h"
#include "core/model/grant.h"
#include "edge/codec/api_json.h"
#include "edge/codec/json_writer.h"

namespace takt::codec {

// {"takt": ..., "warnings": [...] and the object stays open.
void begin_document(JsonWriter& out, const DocumentHead& head);

void put_time(JsonWriter& out, Instant at);
void time_field(JsonWriter& out, std::string_view name, const std::optional<Instant>& at);
void texts_field(JsonWriter& out, std::string_view name, const std::vector<std::string>& texts);
void blockers_field(JsonWriter& out, std::string_view name, const std::vector<Blocker>& blockers);

inline double in_seconds(Duration span) { return static_cast<double>(span.us) / 1e6; }

// Writes measured fields of one object and, at its end, why some are null:
//   "temperature_celsius": null, ..., "missing": {"temperature_celsius": "not permitted"}
class MeasuredFields {
 public:
  explicit MeasuredFields(JsonWriter& out) : out_(out) {}

  template <class T>
  void field(std::string_view name, const Measured<T>& value) {
    field(name, value, [this](const T& v) { put(v); });
  }
  template <class T, class Put>
  void field(std::string_view name, const Measured<T>& value, Put&& put_value) {
    out_.key(name);
    if (value) return put_value(*value);
    out_.null();
    reasons_.emplace_back(name, to_string(value.error()));
  }
  void null(std::string_view name, std::string reason) {
    out_.null_field(name);
    reasons_.emplace_back(name, std::move(reason));
  }
  void finish();

 private:
  void put(const std::string& v) { out_.text(v); }
  void put(bool v) { out_.boolean(v); }
  void put(int v) { out_.integer(v); }
  void put(unsigned v) { out_.natural(v); }
  void put(std::int64_t v) { out_.integer(v); }
  void put(double v) { out_.number(v); }
  void put(Bytes v) { out_.integer(v.value); }
  void put(Instant v) { put_time(out_, v); }
  void put(const std::vector<std::string>& v);

  JsonWriter& out_;
  std::vector<std::pair<std::string_view, std::string>> reasons_;
};

}  // namespace takt::codec
