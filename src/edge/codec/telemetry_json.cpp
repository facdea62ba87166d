#include "edge/codec/telemetry_json.h"

#include "edge/codec/exact_measurement.h"

namespace takt::codec {
namespace {
constexpr std::size_t kBytesMax = std::size_t{4} << 20;
constexpr std::uint64_t kVersion = 1;
}  // namespace

std::string encode_measurement(const AttemptMeasurement& measurement) {
  JsonWriter out(2048);
  out.begin_object();
  out.field("version", kVersion);
  out.key("body");
  exact::put(out, measurement);
  out.end_object();
  return out.take();
}

Result<AttemptMeasurement> decode_measurement(std::string_view json) {
  const auto bad = [](const std::string& sentence) {
    return fail(ErrorKind::invalid, "measurement record: " + sentence);
  };
  const Result<JsonValue> document = parse_json(json, kBytesMax);
  if (!document) return bad(document.error().message);
  const JsonValue* version = document->find("version");
  const JsonValue* body = document->find("body");
  if (version == nullptr || version->kind != JsonValue::Kind::natural || body == nullptr ||
      document->fields.size() != 2)
    return bad("expected an object with version and body");
  if (version->natural != kVersion)
    return bad("version " + std::to_string(version->natural) +
               " is not known to this version of takt (it reads " + std::to_string(kVersion) + ")");
  exact::Fault fault;
  AttemptMeasurement value;
  exact::get(*body, exact::Place{}, fault, value);
  if (fault.any()) return bad(fault.sentence);
  return value;
}

}  // namespace takt::codec
