#include "edge/codec/journal_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "arbitrary.h"
#include "edge/codec/exact_facts.h"

namespace takt::codec {
namespace {

using exact::arbitrary;
using exact::MemberMap;
using testing::HasSubstr;
using testing::Not;

template <std::size_t I = 0>
control::Fact fact_number(std::size_t index, exact::Dice& dice) {
  if constexpr (I == std::variant_size_v<control::Fact>) {
    throw std::out_of_range("no such fact");
  } else {
    if (index == I) return arbitrary<std::variant_alternative_t<I, control::Fact>>(dice);
    return fact_number<I + 1>(index, dice);
  }
}

control::Finished finished() {
  return {JobId(17), control::Finished::Outcome::failed, "OOM", Instant{5}};
}

RC_GTEST_PROP(Journal, EveryFactComesBackAsItWas, (std::uint64_t seed)) {
  exact::Dice dice(seed);
  for (std::size_t i = 0; i < std::variant_size_v<control::Fact>; ++i) {
    const control::Fact fact = fact_number(i, dice);
    const JournalRecord record = encode_fact(fact);
    RC_ASSERT(record.version >= 1);
    RC_ASSERT(record.body.find('\n') == std::string::npos);
    RC_ASSERT(is_utf8(record.body));
    const auto back = decode_fact(record);
    if (!back) RC_FAIL(back.error().message);
    RC_ASSERT(back->index() == fact.index());
    RC_ASSERT(encode_fact(*back) == record);
  }
}

RC_GTEST_PROP(Journal, AnAcceptedJobIsEqualMemberByMember, (std::uint64_t seed)) {
  exact::Dice dice(seed);
  const auto before = arbitrary<control::JobAccepted>(dice);
  const auto fact = decode_fact(encode_fact(before));
  if (!fact) RC_FAIL(fact.error().message);
  const auto& after = std::get<control::JobAccepted>(*fact);
  RC_ASSERT(after.job == before.job);
  RC_ASSERT(after.count == before.count);
  RC_ASSERT(after.group_index == before.group_index);
  RC_ASSERT(after.parameters == before.parameters);
  const control::Submission& a = *after.submission;
  const control::Submission& b = *before.submission;
  RC_ASSERT(a.spec == b.spec);
  RC_ASSERT(a.environment == b.environment);
  RC_ASSERT(a.submitter == b.submitter);
  RC_ASSERT(a.at == b.at);
  RC_ASSERT(a.policy_revision == b.policy_revision);
  RC_ASSERT(a.group == b.group);
  RC_ASSERT(a.group_size == b.group_size);
  RC_ASSERT(a.request == b.request);
}

RC_GTEST_PROP(Journal, GrantsAndExitsAreEqualMemberByMember, (std::uint64_t seed)) {
  exact::Dice dice(seed);
  const auto granted = arbitrary<control::Granted>(dice);
  const auto exited = arbitrary<control::Exited>(dice);
  const auto granted_back = decode_fact(encode_fact(granted));
  const auto exited_back = decode_fact(encode_fact(exited));
  RC_ASSERT(granted_back.has_value() && exited_back.has_value());
  RC_ASSERT(std::get<control::Granted>(*granted_back).attempt == granted.attempt);
  RC_ASSERT(std::get<control::Granted>(*granted_back).generation == granted.generation);
  RC_ASSERT(std::get<control::Granted>(*granted_back).grant == granted.grant);
  RC_ASSERT(std::get<control::Exited>(*exited_back).exit == exited.exit);
  RC_ASSERT(std::get<control::Exited>(*exited_back).at == exited.at);
}

RC_GTEST_PROP(Journal, TheNounsOfSnapshotsComeBack, (std::uint64_t seed)) {
  exact::Dice dice(seed);
  const auto spec = arbitrary<JobSpec>(dice);
  const auto grant = arbitrary<Grant>(dice);
  const auto exit = arbitrary<ExitStatus>(dice);
  const auto identity = arbitrary<control::Identity>(dice);
  RC_ASSERT(*decode_job_spec(encode_job_spec(spec)) == spec);
  RC_ASSERT(*decode_grant(encode_grant(grant)) == grant);
  RC_ASSERT(*decode_exit(encode_exit(exit)) == exit);
  RC_ASSERT(*decode_identity(encode_identity(identity)) == identity);
}

RC_GTEST_PROP(Journal, ADamagedRecordIsRefusedAndNeverCrashes, (std::uint64_t seed)) {
  exact::Dice dice(seed);
  JournalRecord record = encode_fact(
      fact_number(*rc::gen::inRange<std::size_t>(0, std::variant_size_v<control::Fact>), dice));
  const auto at = *rc::gen::inRange<std::size_t>(0, record.body.size());
  if (*rc::gen::arbitrary<bool>())
    record.body.resize(at);
  else
    record.body[at] = static_cast<char>(*rc::gen::arbitrary<std::uint8_t>());
  const auto fact = decode_fact(record);  // may still be well-formed: then it encodes again
  if (fact)
    encode_fact(*fact);
  else
    RC_ASSERT(!fact.error().message.empty());
}

TEST(Journal, EveryMemberOfEveryFactIsDescribed) {
  EXPECT_EQ(MemberMap::first_gap<control::JobAccepted>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::CancelRequested>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::JobCancelled>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::Granted>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::StopRequested>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::Started>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::Exited>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::Released>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::Requeued>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::Finished>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::UsageCarried>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::CountersCarried>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::Submission>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::StateCreated>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::EnvironmentKept>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::Placed>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::KillFailed>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::JobHeld>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::HoldLifted>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::Archived>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::ClockSet>(), "");
}

TEST(Journal, EveryMemberOfTheNounsIsDescribed) {
  EXPECT_EQ(MemberMap::first_gap<JobSpec>(), "");
  EXPECT_EQ(MemberMap::first_gap<GpuRequest>(), "");
  EXPECT_EQ(MemberMap::first_gap<ServiceLevel>(), "");
  EXPECT_EQ(MemberMap::first_gap<CheckpointSpec>(), "");
  EXPECT_EQ(MemberMap::first_gap<RetrySpec>(), "");
  EXPECT_EQ(MemberMap::first_gap<EnvironmentVariable>(), "");
  EXPECT_EQ(MemberMap::first_gap<DeviceGrant>(), "");
  EXPECT_EQ(MemberMap::first_gap<Grant>(), "");
  EXPECT_EQ(MemberMap::first_gap<ExitStatus>(), "");
  EXPECT_EQ(MemberMap::first_gap<control::Identity>(), "");
  EXPECT_EQ(MemberMap::first_gap<AttemptId>(), "");
}

struct WithHole {
  int a = 0;
  std::string forgotten;
  int b = 0;
};
struct WithHoleAtEnd {
  int a = 0;
  std::string forgotten;
};
}  // namespace
namespace exact {
template <class V>
void fields(V& v, WithHole& x, Tag<WithHole>) {
  v("a", x.a);
  v("b", x.b);
}
template <class V>
void fields(V& v, WithHoleAtEnd& x, Tag<WithHoleAtEnd>) {
  v("a", x.a);
}
}  // namespace exact
namespace {

TEST(Journal, TheCheckOfDescriptionsFindsAForgottenMember) {
  EXPECT_EQ(MemberMap::first_gap<WithHole>(), "b");
  EXPECT_EQ(MemberMap::first_gap<WithHoleAtEnd>(), "the end");
}

TEST(Journal, KindsAreTwentyDifferentWords) {
  const auto kinds = fact_kinds();
  EXPECT_EQ(kinds.size(), 20u);
  EXPECT_EQ(std::set<std::string>(kinds.begin(), kinds.end()).size(), 20u);
}

// Version 1 as it is on disks: these texts never change. A new shape gets a new version.
TEST(Journal, TheGoldenRecordsOfVersion1) {
  EXPECT_EQ(
      encode_fact(finished()),
      (JournalRecord{"finished", 1, R"({"job":17,"outcome":"failed","reason":"OOM","at":5})"}));
  EXPECT_EQ(encode_fact(control::Started{{JobId(3), 1}, 4242, Instant{9}}),
            (JournalRecord{"started", 1, R"({"attempt":{"job":3,"number":1},"pid":4242,"at":9})"}));
  EXPECT_EQ(
      encode_fact(control::Requeued{JobId(3), RetryCause::node_lost, Instant{1}, Instant{2}}),
      (JournalRecord{"requeued", 1, R"({"job":3,"cause":"node-lost","at":1,"not_before":2})"}));
  control::StopRequested stop{
      {JobId(3), 2}, control::StopReason::kill_after, "over", seconds(1), Instant{7}};
  EXPECT_EQ(encode_fact(stop),
            (JournalRecord{"stop-requested", 1,
                           R"({"attempt":{"job":3,"number":2},"reason":"kill-after",)"
                           R"("detail":"over","grace":1000000,"at":7})"}));
  control::Granted granted{{JobId(1), 1}, 8, {}, Instant{3}, "b"};
  granted.grant.node = NodeId("box");
  granted.grant.devices = {
      {DeviceKind::share, DeviceUuid("GPU-a"), DeviceUuid("GPU-a"), Bytes{1024}, 30}};
  granted.grant.isolation = Isolation::watched;
  EXPECT_EQ(encode_fact(granted).body,
            R"({"attempt":{"job":1,"number":1},"generation":8,"grant":{"node":"box","devices":[)"
            R"({"kind":"share","uuid":"GPU-a","gpu":"GPU-a","memory":1024,"compute_percent":30}],)"
            R"("cpus":0,"memory":0,"isolation":"watched","domain":""},"at":3,"boot_id":"b"})");
  EXPECT_EQ(encode_fact(control::Exited{{JobId(1), 1}, {}, Instant{3}}).body,
            R"({"attempt":{"job":1,"number":1},"exit":{"cause":"exited","code":0,"signal":0,)"
            R"("oom":false,"message":"","cpu_time":0},"at":3})");
}

// What 0.1 wrote is read for ever.
TEST(Journal, RecordsOfVersion1AreLifted) {
  const auto granted = decode_fact(
      {"granted", 1,
       R"({"attempt":{"job":1,"number":1},"generation":8,"grant":{"node":"box","devices":[],)"
       R"("cpus":2,"memory":0,"isolation":"watched","domain":""},"at":3})"});
  ASSERT_TRUE(granted) << granted.error().message;
  EXPECT_EQ(std::get<control::Granted>(*granted).boot_id, "");
  EXPECT_EQ(std::get<control::Granted>(*granted).grant.cpus, 2);

  JobSpec spec;
  spec.name = "train";
  spec.env = {{"A", "caf\xE9", true}};
  control::Identity who;
  who.user = "alice";
  const auto accepted = decode_fact(
      {"job-accepted", 1,
       R"({"job":7,"spec":)" + encode_job_spec(spec) + R"(,"submitter":)" + encode_identity(who) +
           R"(,"at":5,"policy_revision":"r","group":6,"group_index":1,"group_size":3,)"
           R"("parameters":[["lr","0.1"]],"seed":7})"});
  ASSERT_TRUE(accepted) << accepted.error().message;
  const auto& job = std::get<control::JobAccepted>(*accepted);
  EXPECT_EQ(job.job, JobId(7));
  EXPECT_EQ(job.count, 1);
  EXPECT_EQ(job.group_index, 1);
  EXPECT_EQ(job.submission->group, JobId(6));
  EXPECT_EQ(job.submission->group_size, 3);
  EXPECT_EQ(job.submission->spec, spec);
  EXPECT_EQ(job.submission->environment, 0u);
  EXPECT_EQ(job.submission->submitter, who);
  ASSERT_EQ(job.parameters.size(), 1u);
  EXPECT_EQ(job.parameters[0].at("lr"), "0.1");

  const auto counters =
      decode_fact({"counters-carried", 1, R"({"next_job":9,"next_generation":4})"});
  ASSERT_TRUE(counters) << counters.error().message;
  EXPECT_EQ(std::get<control::CountersCarried>(*counters).next_environment, 1u);
}

TEST(Journal, AnArrayWhosePartsDoNotFitIsRefused) {
  control::JobAccepted fact;
  fact.submission = std::make_shared<control::Submission>();
  fact.count = 2;
  fact.parameters.resize(1);
  EXPECT_FALSE(decode_fact(encode_fact(fact)));
  fact.parameters.resize(2);
  EXPECT_TRUE(decode_fact(encode_fact(fact)));
  fact.count = 0;
  fact.parameters.clear();
  EXPECT_FALSE(decode_fact(encode_fact(fact)));
}

TEST(Journal, BytesThatAreNotUtf8AreKeptAsBase64) {
  control::Finished fact = finished();
  fact.reason = "caf\xE9";  // Latin-1
  const auto record = encode_fact(fact);
  EXPECT_THAT(record.body, HasSubstr(R"("reason":{"b64":"Y2Fm6Q=="})"));
  EXPECT_EQ(std::get<control::Finished>(*decode_fact(record)).reason, fact.reason);
}

TEST(Journal, ATextThatLooksLikeTheMarkIsNotMistakenForIt) {
  control::Finished fact = finished();
  fact.reason = R"({"b64":"Y2Fm6Q=="})";
  EXPECT_EQ(std::get<control::Finished>(*decode_fact(encode_fact(fact))).reason, fact.reason);
}

std::string refusal(const JournalRecord& record, const std::vector<Upcaster>& upcasters = {}) {
  const auto fact = decode_fact(record, upcasters);
  return fact ? "it was accepted" : fact.error().message;
}

TEST(Journal, RefusalsAreSentences) {
  const std::string good = encode_fact(finished()).body;
  EXPECT_EQ(refusal({"teleported", 1, good}),
            "journal record 'teleported' version 1 is of a kind that this version of takt does not "
            "know; start the takt version that wrote it");
  EXPECT_EQ(
      refusal({"finished", 2, good}),
      "journal record 'finished' version 2 is newer than this version of takt (it reads up to "
      "1); start the takt version that wrote it");
  EXPECT_EQ(refusal({"finished", 0, good}),
            "journal record 'finished' version 0 is too old: this version of takt reads version 1 "
            "and has no way up from 0; start the takt version in between once, then this one");
  EXPECT_EQ(refusal({"finished", 1, "{"}),
            "journal record 'finished' version 1: not JSON: stopped making sense at byte 2");
  EXPECT_EQ(refusal({"finished", 1, "[]"}),
            "journal record 'finished' version 1: a list is not an object");
  EXPECT_EQ(refusal({"finished", 1, R"({"job":17,"outcome":"failed","reason":"x"})"}),
            "journal record 'finished' version 1: at: is missing");
  EXPECT_EQ(refusal({"finished", 1, R"({"job":-1,"outcome":"failed","reason":"x","at":5})"}),
            "journal record 'finished' version 1: job: -1 is not a whole number that fits here");
  EXPECT_EQ(refusal({"finished", 1, R"({"job":1,"outcome":"gone","reason":"x","at":5})"}),
            "journal record 'finished' version 1: outcome: 'gone' is not one of done, failed, "
            "cancelled");
  EXPECT_EQ(refusal({"finished", 1, R"({"job":1,"outcome":"done","reason":"","at":5,"b":1})"}),
            "journal record 'finished' version 1: b: is not a field of this record");
  EXPECT_EQ(refusal({"finished", 1, R"({"job":1,"job":1,"outcome":"done","reason":"","at":5})"}),
            "journal record 'finished' version 1: the field 'job' is there twice");
  EXPECT_EQ(refusal({"finished", 1, R"({"job":1,"outcome":"done","reason":{"b64":"?"},"at":5})"}),
            "journal record 'finished' version 1: reason: the base64 text is damaged");
  EXPECT_EQ(refusal({"started", 1, R"({"attempt":{"job":1,"number":5000000000},"pid":1,"at":1})"}),
            "journal record 'started' version 1: attempt.number: 5000000000 is not a whole number "
            "that fits here");
}

// An invented past: version 0 called the field "why", and version -1 had no time.
std::vector<Upcaster> invented() {
  const auto replace = [](std::string body, const std::string& from,
                          const std::string& to) -> Result<std::string> {
    const std::size_t at = body.find(from);
    if (at == std::string::npos) return fail(ErrorKind::invalid, "no " + from + " in it");
    return body.replace(at, from.size(), to);
  };
  return {
      {"finished", 0, [=](std::string_view b) { return replace(std::string(b), "why", "reason"); }},
      {"finished", -1,
       [=](std::string_view b) { return replace(std::string(b), "}", ",\"at\":0}"); }},
      {"started", 0, [=](std::string_view b) { return replace(std::string(b), "x", "y"); }}};
}

TEST(Journal, OldRecordsAreLiftedStepByStep) {
  const JournalRecord older{"finished", 0, R"({"job":17,"outcome":"done","why":"w","at":5})"};
  const JournalRecord oldest{"finished", -1, R"({"job":17,"outcome":"done","why":"w"})"};
  const auto fact = decode_fact(older, invented());
  ASSERT_TRUE(fact.has_value()) << fact.error().message;
  EXPECT_EQ(std::get<control::Finished>(*fact).reason, "w");
  const auto other = decode_fact(oldest, invented());
  ASSERT_TRUE(other.has_value()) << other.error().message;
  EXPECT_EQ(std::get<control::Finished>(*other).at, Instant{0});
  EXPECT_EQ(std::get<control::Finished>(*other).reason, "w");
}

TEST(Journal, AnUpcasterThatFailsIsNamed) {
  EXPECT_EQ(refusal({"finished", 0, "{}"}, invented()),
            "journal record 'finished' version 0: no why in it");
  EXPECT_THAT(refusal({"released", 0, "{}"}, invented()), HasSubstr("has no way up from 0"));
}

TEST(Journal, AbsurdNestingIsRefused) {
  const std::string deep = std::string(10'000, '[') + std::string(10'000, ']');
  EXPECT_EQ(refusal({"finished", 1, deep}),
            "journal record 'finished' version 1: nested deeper than 32 levels");
}

TEST(Journal, DoublesThatJsonDoesNotHaveComeBack) {
  JobSpec spec;
  spec.min_speed = std::numeric_limits<double>::infinity();
  EXPECT_EQ(decode_job_spec(encode_job_spec(spec))->min_speed, spec.min_speed);
  spec.min_speed = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(decode_job_spec(encode_job_spec(spec))->min_speed, spec.min_speed);
  spec.min_speed = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(*decode_job_spec(encode_job_spec(spec))->min_speed));
}

}  // namespace
}  // namespace takt::codec
