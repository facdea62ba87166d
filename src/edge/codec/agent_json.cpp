#include "edge/codec/agent_json.h"

#include <utility>

#include "edge/codec/exact_report.h"

namespace takt::codec {
namespace {

template <class T>
struct FrameType;
template <>
struct FrameType<control::NodeReport> {
  static constexpr const char* name = "report";
};
template <>
struct FrameType<control::Start> {
  static constexpr const char* name = "start";
};
template <>
struct FrameType<control::Stop> {
  static constexpr const char* name = "stop";
};
template <>
struct FrameType<control::Forget> {
  static constexpr const char* name = "forget";
};
template <>
struct FrameType<control::Renew> {
  static constexpr const char* name = "renew";
};

template <class T>
std::string frame(const T& value) {
  JsonWriter out(std::is_same_v<T, control::NodeReport> ? 16'384 : 1'024);
  out.begin_object();
  out.field("protocol", agent_protocol);
  out.field("type", FrameType<T>::name);
  out.key("body");
  exact::put(out, value);
  out.end_object();
  return out.take();
}

struct Envelope {
  std::string type;
  JsonValue body;
};

tl::unexpected<Error> bad(const std::string& sentence) {
  return fail(ErrorKind::invalid, "agent frame: " + sentence);
}

Result<Envelope> open_frame(std::string_view text) {
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  if (text.empty()) return bad("is empty");
  Result<JsonValue> document = parse_json(text, agent_frame_bytes_max);
  if (!document) return bad(document.error().message);
  if (document->kind != JsonValue::Kind::object) return bad("is not an object");
  const JsonValue* protocol = document->find("protocol");
  if (protocol == nullptr || protocol->kind != JsonValue::Kind::natural)
    return bad("has no protocol number");
  // Looked at first: the rest of another protocol's frame means nothing to us.
  if (protocol->natural != static_cast<std::uint64_t>(agent_protocol))
    return bad("speaks protocol " + std::to_string(protocol->natural) + " and this takt speaks " +
               std::to_string(agent_protocol) +
               "; controller and agent are of different versions: restart both from the same "
               "installation");
  Envelope envelope;
  for (auto& [name, value] : document->fields) {
    if (name == "protocol") continue;
    if (name == "type" && value.kind == JsonValue::Kind::text) {
      envelope.type = value.text;
    } else if (name == "body" && value.kind == JsonValue::Kind::object) {
      envelope.body = std::move(value);
    } else {
      return bad("'" + printable(name) + "' is not a field of a frame or has the wrong type");
    }
  }
  if (envelope.type.empty()) return bad("has no type");
  if (envelope.body.kind != JsonValue::Kind::object) return bad("has no body");
  return envelope;
}

template <class T, class Out>
Result<Out> read_body(const Envelope& envelope) {
  exact::Fault fault;
  T value{};
  exact::get(envelope.body, exact::Place{nullptr, envelope.type}, fault, value);
  if (fault.any()) return bad(fault.sentence);
  return Out(std::move(value));
}

Result<control::Effect> effect_of(const Envelope& envelope) {
  if (envelope.type == FrameType<control::Start>::name)
    return read_body<control::Start, control::Effect>(envelope);
  if (envelope.type == FrameType<control::Stop>::name)
    return read_body<control::Stop, control::Effect>(envelope);
  if (envelope.type == FrameType<control::Forget>::name)
    return read_body<control::Forget, control::Effect>(envelope);
  if (envelope.type == FrameType<control::Renew>::name)
    return read_body<control::Renew, control::Effect>(envelope);
  return bad("type '" + printable(envelope.type) +
             "' is not an effect (start, stop, forget, renew)");
}

}  // namespace

std::string encode_report(const control::NodeReport& report) { return frame(report); }

std::string encode_hello(const std::string& takt_version) {
  JsonWriter out(128);
  out.begin_object();
  out.field("protocol", agent_protocol);
  out.field("type", "hello");
  out.field("takt", takt_version);
  out.end_object();
  return out.take();
}

Result<void> check_hello(std::string_view text, const std::string& takt_version, const char* other,
                         const char* self) {
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  const Result<JsonValue> document = parse_json(text, agent_frame_bytes_max);
  const bool is_object = document && document->kind == JsonValue::Kind::object;
  const JsonValue* const protocol = is_object ? document->find("protocol") : nullptr;
  if (protocol == nullptr || protocol->kind != JsonValue::Kind::natural)
    return bad(std::string("the first one of ") + other + " is no hello: is it takt?");
  const JsonValue* const type = document->find("type");
  const JsonValue* const takt = document->find("takt");
  const bool is_hello = type != nullptr && type->kind == JsonValue::Kind::text &&
                        type->text == "hello" && takt != nullptr &&
                        takt->kind == JsonValue::Kind::text;
  if (protocol->natural == static_cast<std::uint64_t>(agent_protocol))
    return is_hello ? Result<void>{}
                    : bad(std::string("the first one of ") + other + " is no hello");
  return fail(ErrorKind::conflict,
              std::string(other) + " is takt " +
                  (is_hello ? printable(takt->text) : std::string("of an older release")) +
                  " with protocol " + std::to_string(protocol->natural) + ", " + self +
                  " is takt " + takt_version + " with protocol " + std::to_string(agent_protocol) +
                  ": restart `takt serve`, so that both are of one installation; jobs go on");
}

std::string encode_effect(const control::Effect& effect) {
  return std::visit([](const auto& alternative) { return frame(alternative); }, effect);
}

Result<control::NodeReport> decode_report(std::string_view text) {
  const Result<Envelope> envelope = open_frame(text);
  if (!envelope) return tl::make_unexpected(envelope.error());
  if (envelope->type != FrameType<control::NodeReport>::name)
    return bad("type '" + printable(envelope->type) + "' is not a report");
  return read_body<control::NodeReport, control::NodeReport>(*envelope);
}

Result<control::Effect> decode_effect(std::string_view text) {
  const Result<Envelope> envelope = open_frame(text);
  if (!envelope) return tl::make_unexpected(envelope.error());
  return effect_of(*envelope);
}

Result<AgentFrame> decode_frame(std::string_view text) {
  const Result<Envelope> envelope = open_frame(text);
  if (!envelope) return tl::make_unexpected(envelope.error());
  if (envelope->type == FrameType<control::NodeReport>::name)
    return read_body<control::NodeReport, AgentFrame>(*envelope);
  Result<control::Effect> effect = effect_of(*envelope);
  if (!effect) return tl::make_unexpected(effect.error());
  return AgentFrame(std::move(*effect));
}

}  // namespace takt::codec
