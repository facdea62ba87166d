#include "edge/codec/agent_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "arbitrary.h"
#include "edge/codec/exact_measurement.h"
#include "edge/codec/exact_report.h"
#include "edge/codec/telemetry_json.h"

namespace takt::codec {
namespace {

using exact::arbitrary;
using exact::MemberMap;
using testing::HasSubstr;

RC_GTEST_PROP(AgentFrames, AReportComesBackAsItWas, (std::uint64_t seed)) {
  exact::Dice dice(seed);
  const auto report = arbitrary<control::NodeReport>(dice);
  const std::string frame = encode_report(report);
  RC_ASSERT(frame.find('\n') == std::string::npos);
  RC_ASSERT(frame.rfind(R"({"protocol":4,"type":"report")", 0) == 0);
  const auto back = decode_report(frame + "\n");
  if (!back) RC_FAIL(back.error().message);
  RC_ASSERT(encode_report(*back) == frame);
  RC_ASSERT(back->sequence == report.sequence);
  RC_ASSERT(back->node.gpus.size() == report.node.gpus.size());
  for (std::size_t i = 0; i < report.node.gpus.size(); ++i) {
    RC_ASSERT(back->node.gpus[i].uuid == report.node.gpus[i].uuid);
    RC_ASSERT((back->node.gpus[i].memory_used == report.node.gpus[i].memory_used));
    RC_ASSERT((back->node.gpus[i].throttle_reasons == report.node.gpus[i].throttle_reasons));
    RC_ASSERT((back->node.gpus[i].power_watts == report.node.gpus[i].power_watts));
  }
}

RC_GTEST_PROP(AgentFrames, AnEffectComesBackAsItWas, (std::uint64_t seed)) {
  exact::Dice dice(seed);
  const auto start = arbitrary<control::Start>(dice);
  const auto stop = arbitrary<control::Stop>(dice);
  const auto forget = arbitrary<control::Forget>(dice);
  for (const control::Effect& effect : std::vector<control::Effect>{start, stop, forget}) {
    const std::string frame = encode_effect(effect);
    RC_ASSERT(frame.find('\n') == std::string::npos);
    const auto back = decode_effect(frame);
    if (!back) RC_FAIL(back.error().message);
    RC_ASSERT(back->index() == effect.index());
    RC_ASSERT(encode_effect(*back) == frame);
  }
  const auto effect = decode_effect(encode_effect(start));
  const auto& order = std::get<control::Start>(*effect).order;
  RC_ASSERT(order.argv == start.order.argv);
  RC_ASSERT(order.env == start.order.env);
  RC_ASSERT(order.identity == start.order.identity);
  RC_ASSERT(order.grant == start.order.grant);
  RC_ASSERT(order.workdir == start.order.workdir);
  RC_ASSERT(order.stdout_path == start.order.stdout_path);
  RC_ASSERT(order.log_max == start.order.log_max);
}

RC_GTEST_PROP(AgentFrames, DamagedFramesAreRefusedAndNeverCrash, (std::uint64_t seed)) {
  exact::Dice dice(seed);
  std::string frame = *rc::gen::arbitrary<bool>()
                          ? encode_report(arbitrary<control::NodeReport>(dice))
                          : encode_effect(arbitrary<control::Start>(dice));
  const auto at = *rc::gen::inRange<std::size_t>(0, frame.size());
  if (*rc::gen::arbitrary<bool>()) {
    frame.resize(at);  // a frame cut short is never taken for a whole one
    RC_ASSERT(!decode_frame(frame).has_value());
  } else {
    frame[at] = static_cast<char>(*rc::gen::arbitrary<std::uint8_t>());
    const auto decoded = decode_frame(frame);
    RC_ASSERT(decoded.has_value() || !decoded.error().message.empty());
  }
}

RC_GTEST_PROP(Measurements, ComeBackAsTheyWere, (std::uint64_t seed)) {
  exact::Dice dice(seed);
  const auto measurement = arbitrary<AttemptMeasurement>(dice);
  const std::string json = encode_measurement(measurement);
  const auto back = decode_measurement(json);
  if (!back) RC_FAIL(back.error().message);
  RC_ASSERT(encode_measurement(*back) == json);
  RC_ASSERT(back->sketches == measurement.sketches);
  RC_ASSERT(back->missing_samples == measurement.missing_samples);
  RC_ASSERT((back->memory_peak == measurement.memory_peak));
}

TEST(AgentFrames, EveryMemberIsDescribed) {
  EXPECT_EQ(MemberMap::first_gap<GpuProcess>(), "");
  EXPECT_EQ(MemberMap::first_gap<MigInstance>(), "");
  EXPECT_EQ(MemberMap::first_gap<MigState>(), "");
  EXPECT_EQ(MemberMap::first_gap<XidEvent>(), "");
  EXPECT_EQ(MemberMap::first_gap<Gpu>(), "");
  EXPECT_EQ(MemberMap::first_gap<GpuLink>(), "");
  EXPECT_EQ(MemberMap::first_gap<Node>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::AttemptSeen>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::NodeReport>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::LaunchOrder>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::Start>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::Stop>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::Forget>(), "");
  EXPECT_EQ(MemberMap::first_gap<AttemptMeasurement>(), "");
  EXPECT_EQ(MemberMap::first_gap<Quantiles>(), "");
  EXPECT_EQ(MemberMap::first_gap<SketchData>(), "");
}

std::string refusal(std::string_view frame) {
  const auto decoded = decode_frame(frame);
  return decoded ? "it was accepted" : decoded.error().message;
}

TEST(AgentFrames, GoldenFramesOfProtocol2) {
  EXPECT_EQ(encode_effect(control::Stop{{JobId(17), 1}, 3, seconds(10)}),
            R"({"protocol":4,"type":"stop","body":{"attempt":{"job":17,"number":1},)"
            R"("generation":3,"grace":10000000}})");
  EXPECT_EQ(encode_effect(control::Forget{{JobId(17), 1}}),
            R"({"protocol":4,"type":"forget","body":{"attempt":{"job":17,"number":1}}})");
  control::NodeReport report;
  report.sequence = 2;
  report.life = 5;
  report.node.boot_id = "a";
  report.node.id = NodeId("box");
  EXPECT_EQ(
      encode_report(report),
      R"({"protocol":4,"type":"report","body":{"life":5,"sequence":2,"at":0,"made":0,"node":{"id":"box",)"
      R"("boot_id":"a","cpus":0,"memory":0,"emulated":false,"driver_version":"",)"
      R"("driver_problem":"","gpus":[],"links":[],"notes":[]},"attempts":[]}})");
}

TEST(AgentFrames, MissingValuesKeepTheirReason) {
  control::NodeReport report;
  Gpu& gpu = report.node.gpus.emplace_back();
  gpu.temperature_celsius = missing(MissingKind::not_permitted, "needs root");
  gpu.power_watts = std::numeric_limits<double>::quiet_NaN();
  gpu.memory_used = gibibytes(3);
  const auto back = decode_report(encode_report(report));
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->node.gpus[0].temperature_celsius.error(),
            (Missing{MissingKind::not_permitted, "needs root"}));
  EXPECT_EQ(back->node.gpus[0].power_watts.error(),
            (Missing{MissingKind::out_of_range, "not a finite number"}));
  EXPECT_EQ(back->node.gpus[0].memory_used, gibibytes(3));
}

TEST(AgentFrames, RefusalsAreSentences) {
  const std::string good = encode_effect(control::Forget{{JobId(17), 1}});
  EXPECT_EQ(refusal(""), "agent frame: is empty");
  EXPECT_EQ(refusal("\n"), "agent frame: is empty");
  EXPECT_EQ(refusal("hello"), "agent frame: not JSON: stopped making sense at byte 1");
  EXPECT_EQ(refusal("[1]"), "agent frame: is not an object");
  EXPECT_EQ(refusal("{}"), "agent frame: has no protocol number");
  EXPECT_EQ(refusal(R"({"protocol":"1"})"), "agent frame: has no protocol number");
  EXPECT_EQ(refusal(R"({"protocol":5,"anything":true})"),
            "agent frame: speaks protocol 5 and this takt speaks 4; controller and agent are of "
            "different versions: restart both from the same installation");
  EXPECT_EQ(refusal(R"({"protocol":4,"body":{}})"), "agent frame: has no type");
  EXPECT_EQ(refusal(R"({"protocol":4,"type":"stop"})"), "agent frame: has no body");
  EXPECT_EQ(refusal(R"({"protocol":4,"type":"dance","body":{}})"),
            "agent frame: type 'dance' is not an effect (start, stop, forget, renew)");
  EXPECT_EQ(refusal(R"({"protocol":4,"type":"stop","body":{},"more":1})"),
            "agent frame: 'more' is not a field of a frame or has the wrong type");
  EXPECT_EQ(refusal(R"({"protocol":4,"type":"stop","body":{}})"),
            "agent frame: stop.attempt: is missing");
  EXPECT_EQ(refusal(R"({"protocol":4,"type":"stop","body":{"attempt":{"job":1,"number":1},)"
                    R"("generation":1,"grace":"10s"}})"),
            "agent frame: stop.grace: '10s' is not a whole number that fits here");
  EXPECT_THAT(refusal(good + good), HasSubstr("not JSON"));
  EXPECT_THAT(refusal(good + "\n" + good), HasSubstr("not JSON"));
}

std::string greeting(std::string_view frame) {
  const auto fits = check_hello(frame, "0.1.0", "the node agent", "this server");
  return fits ? "welcome" : fits.error().message;
}

TEST(AgentFrames, TheFirstFrameSaysWhoSpeaks) {
  EXPECT_EQ(encode_hello("0.1.0"), R"({"protocol":4,"type":"hello","takt":"0.1.0"})");
  EXPECT_EQ(greeting(encode_hello("0.1.0")), "welcome");
  EXPECT_EQ(greeting(encode_hello("0.9.0") + "\n"), "welcome") << "the protocol counts";
  EXPECT_EQ(greeting(R"({"protocol":7,"type":"hello","takt":"9.0.0","more":[1]})"),
            "the node agent is takt 9.0.0 with protocol 7, this server is takt 0.1.0 with protocol "
            "4: restart `takt serve`, so that both are of one installation; jobs go on");
  EXPECT_THAT(greeting(R"({"protocol":1,"type":"report","body":{}})"),
              HasSubstr("takt of an older release with protocol 1"));
  EXPECT_EQ(greeting(encode_report({})),
            "agent frame: the first one of the node agent is no hello");
  for (const char* frame : {"", "x", "{}", "[]", R"({"protocol":"2"})"})
    EXPECT_THAT(greeting(frame), HasSubstr("is no hello: is it takt?")) << frame;
}

TEST(AgentFrames, AReportIsNoEffectAndTheOtherWayRound) {
  const auto effect = decode_effect(encode_report({}));
  ASSERT_FALSE(effect.has_value());
  EXPECT_EQ(effect.error().message,
            "agent frame: type 'report' is not an effect (start, stop, forget, renew)");
  const auto report = decode_report(encode_effect(control::Forget{}));
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().message, "agent frame: type 'forget' is not a report");
  EXPECT_TRUE(std::holds_alternative<control::NodeReport>(*decode_frame(encode_report({}))));
}

TEST(AgentFrames, AHugeFrameIsRefusedUnread) {
  EXPECT_EQ(refusal(std::string(agent_frame_bytes_max + 1, ' ')),
            "agent frame: the document has 16777217 bytes; at most 16777216 are read");
}

TEST(Measurements, RefusalsAreSentences) {
  const auto refused = [](const char* json) { return decode_measurement(json).error().message; };
  EXPECT_EQ(refused("{}"), "measurement record: expected an object with version and body");
  EXPECT_EQ(refused(R"({"version":9,"body":{}})"),
            "measurement record: version 9 is not known to this version of takt (it reads 1)");
  EXPECT_EQ(refused(R"({"version":1,"body":{}})"), "measurement record: attempt: is missing");
  EXPECT_EQ(refused("nonsense"), "measurement record: not JSON: stopped making sense at byte 2");
}

}  // namespace
}  // namespace takt::codec
