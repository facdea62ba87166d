#include "edge/codec/api_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "arbitrary.h"
#include "core/model/secret_names.h"
#include "edge/codec/exact_nouns.h"
#include "schema.h"

namespace takt::codec {
namespace {

using control::JobState;
using control::JobView;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const DocumentHead head = {"0.1.0", {}};
const Instant noon = *instant_from_iso8601("2026-01-31T12:00:00Z");

JobView waiting_job() {
  JobView job;
  job.id = JobId(17);
  job.name = "llama";
  job.user = "bob";
  job.uid = 1000;
  job.tier = Tier::batch;
  job.command = "python \"a b\".py";
  job.submitted = noon;
  job.request = "2 GPUs";
  job.waiting_for = {{BlockerKind::gpus_busy, "2 GPUs", "1 free of 4", "wait for job 16"}};
  job.expected_start_unknown = "job 16 has no estimate";
  job.decision = {"2 whole GPUs on one node"};
  job.stdout_path = "/s/17.1.out";
  job.stderr_path = "/s/17.1.err";
  job.environment_names = {"HF_TOKEN"};
  return job;
}

JobView failed_job() {
  JobView job = waiting_job();
  job.waiting_for.clear();
  job.expected_start_unknown.clear();
  job.state = JobState::failed;
  job.group = JobId(15);
  job.group_index = 2;
  job.group_size = 3;
  job.started = noon + milliseconds(1500);
  job.ended = noon + seconds(61) + microseconds(7);
  job.exit = ExitStatus{ExitCause::signalled, 0, 9, true, "", seconds(3), mebibytes(64)};
  job.reason = "OOM: asked 12 GiB";
  job.attempts = 1;
  job.grant =
      Grant{NodeId("box"),
            {{DeviceKind::share, DeviceUuid("GPU-a"), DeviceUuid("GPU-a"), gibibytes(12), 30}},
            8,
            gibibytes(32),
            Isolation::watched,
            "bob"};
  job.devices = {{job.grant->devices[0], "gpu1 12.0 GiB"}};
  job.expected_end = noon + hours(1);
  return job;
}

TEST(JobsJson, TheGoldenDocumentOfAWaitingAndAFailedJob) {
  EXPECT_EQ(
      jobs_json({"0.1.0", {"disk is nearly full"}}, {waiting_job(), failed_job()}),
      R"({"takt":"0.1.0","warnings":["disk is nearly full"],"jobs":[{"id":17,"name":"llama",)"
      R"("user":"bob","uid":1000,"tier":"batch","state":"waiting","command":"python \"a b\".py",)"
      R"("group":null,"submitted":"2026-01-31T12:00:00.000Z","started":null,"ended":null,)"
      R"("exit_code":null,"signal":null,"exit":null,"reason":"","attempts":0,"request":"2 GPUs",)"
      R"("grant":null,"devices":[],"waiting_for":[{"blocker":"gpus-busy","needed":"2 GPUs",)"
      R"("available":"1 free of 4","action":"wait for job 16"}],"expected_start":null,)"
      R"("expected_end":null,"stdout_path":"/s/17.1.out","stderr_path":"/s/17.1.err",)"
      R"("environment_names":["HF_TOKEN"],"missing":{"expected_start":"job 16 has no estimate"}},)"
      R"({"id":17,"name":"llama","user":"bob","uid":1000,"tier":"batch","state":"failed",)"
      R"("command":"python \"a b\".py","group":{"id":15,"index":2,"size":3},)"
      R"("submitted":"2026-01-31T12:00:00.000Z","started":"2026-01-31T12:00:01.500Z",)"
      R"("ended":"2026-01-31T12:01:01.000007Z","exit_code":null,"signal":9,)"
      R"x("exit":{"description":"killed by signal 9 (the host ran it out of memory)",)x"
      R"("out_of_memory":true,"cpu_seconds":3,"memory_peak_bytes":67108864},)"
      R"("reason":"OOM: asked 12 GiB","attempts":1,"request":"2 GPUs","grant":{"node":"box",)"
      R"("devices":[{"kind":"share","uuid":"GPU-a","gpu":"GPU-a","memory_bytes":12884901888,)"
      R"("compute_percent":30}],"cpus":8,"memory_bytes":34359738368,"isolation":"watched",)"
      R"("sharing_domain":"bob"},"devices":["gpu1 12.0 GiB"],"waiting_for":[],)"
      R"("expected_start":null,"expected_end":"2026-01-31T13:00:00.000Z",)"
      R"("stdout_path":"/s/17.1.out","stderr_path":"/s/17.1.err",)"
      R"("environment_names":["HF_TOKEN"]}]})");
}

TEST(JobsJson, WhyIsTheJobWithItsDecision) {
  const json document = json::parse(job_json(head, waiting_job()));
  EXPECT_EQ(document["id"], 17);
  EXPECT_EQ(document["takt"], "0.1.0");
  EXPECT_EQ(document["decision"], json::array({"2 whole GPUs on one node"}));
}

TEST(JobsJson, DocumentsAreAsTheOpenApiFileSays) {
  JobView lost = failed_job();
  lost.exit = ExitStatus{ExitCause::lost, 0, 0, false, "the host restarted", {}, {}};
  JobView done = failed_job();
  done.exit = ExitStatus{};
  EXPECT_THAT(
      schema_violations(jobs_json(head, {waiting_job(), failed_job(), lost, done}), "JobList"),
      IsEmpty());
  EXPECT_THAT(schema_violations(job_json(head, failed_job()), "JobWhy"), IsEmpty());
  const json document = json::parse(job_json(head, lost));
  EXPECT_EQ(document["exit_code"], nullptr);
  EXPECT_EQ(document["missing"]["exit_code"], "lost: the host restarted");
}

TEST(JobsJson, TextThatIsNotUtf8StaysReadableAndTheDocumentValid) {
  JobView job = waiting_job();
  job.command = "cat caf\xE9 \xF0\x9F\x98\x80 \x01\x7F\n\xED\xA0\x80";
  const json document = json::parse(job_json(head, job));
  EXPECT_EQ(document["command"],
            "cat caf\xEF\xBF\xBD \xF0\x9F\x98\x80 \x01\x7F\n\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

RC_GTEST_PROP(JobsJson, AnyTextGivesAValidDocument, (std::uint64_t seed)) {
  exact::Dice dice(seed);
  JobView job = waiting_job();
  job.command = exact::arbitrary_text(dice);
  job.name = exact::arbitrary_text(dice);
  job.reason = exact::arbitrary_text(dice);
  job.waiting_for[0].needed = exact::arbitrary_text(dice);
  const json document = json::parse(jobs_json(head, {job}));
  if (is_utf8(job.command)) RC_ASSERT(document["jobs"][0]["command"] == job.command);
  RC_ASSERT(document["jobs"].size() == 1u);
}

control::NodeView node_with_a_gpu() {
  control::NodeView view;
  view.seen = noon;
  Node& node = view.node;
  node.id = NodeId("box");
  node.cpus = 16;
  node.memory = gibibytes(64);
  node.emulated = true;
  node.driver_version = "550.54";
  node.notes = {"no cgroup"};
  Gpu& gpu = node.gpus.emplace_back();
  gpu.uuid = DeviceUuid("GPU-a");
  gpu.model = "NVIDIA A100";
  gpu.minor = 0U;
  gpu.memory_total = gibibytes(40);
  gpu.memory_used = gibibytes(3);
  gpu.utilization_percent = missing(MissingKind::not_supported);
  gpu.temperature_celsius = 41;
  gpu.power_watts = 61.5;
  gpu.throttle_reasons = std::vector<std::string>{"sw_power_cap"};
  gpu.mig.enabled = true;
  gpu.mig.pending = true;
  gpu.mig.instances.push_back({DeviceUuid("MIG-1"), "1g.5gb", 4, 1, 1, 7, 0, gibibytes(5),
                               missing(MissingKind::timed_out)});
  GpuProcess process;
  process.pid = 4242;
  process.name = "vllm";
  process.user = "bob";
  process.memory = gibibytes(3);
  GpuProcess own = process;
  own.attempt = AttemptId{JobId(17), 1};
  own.mig_instance = DeviceUuid("MIG-1");
  gpu.processes = std::vector<GpuProcess>{process, own};
  gpu.xids = {{79, noon}};
  node.links = {{DeviceUuid("GPU-a"), DeviceUuid("GPU-b"), LinkKind::nvlink, 12}};
  return view;
}

TEST(GpusJson, HoldsWhatOthersRelyOn) {
  const std::string text = gpus_json(head, {node_with_a_gpu()});
  EXPECT_THAT(schema_violations(text, "GpuList"), IsEmpty());
  const json document = json::parse(text);
  EXPECT_EQ(document["emulated"], true);
  EXPECT_EQ(document["coverage"], 1);
  EXPECT_EQ(document["source"], "NVML, emulated");
  const json gpu = document["nodes"][0]["gpus"][0];
  EXPECT_EQ(gpu["uuid"], "GPU-a");
  EXPECT_EQ(gpu["memory_total_bytes"], 40LL << 30);
  EXPECT_EQ(gpu["memory_used_bytes"], 3LL << 30);
  EXPECT_EQ(gpu["utilization_percent"], nullptr);
  EXPECT_EQ(gpu["missing"]["utilization_percent"], "not supported by this device or driver");
  EXPECT_EQ(gpu["missing"]["memory_reserved_bytes"], "not supported by this device or driver");
  EXPECT_FALSE(gpu["missing"].contains("temperature_celsius"));
  EXPECT_EQ(gpu["temperature_celsius"], 41);
  EXPECT_EQ(gpu["power_watts"], 61.5);
  EXPECT_EQ(gpu["throttle_reasons"], json::array({"sw_power_cap"}));
  EXPECT_EQ(gpu["mig"]["enabled"], true);
  EXPECT_EQ(gpu["mig"]["instances"][0]["profile"], "1g.5gb");
  EXPECT_EQ(gpu["mig"]["instances"][0]["start"], 4);
  EXPECT_EQ(gpu["mig"]["instances"][0]["missing"]["memory_used_bytes"],
            "the device did not answer in time");
  EXPECT_EQ(gpu["processes"][0]["pid"], 4242);
  EXPECT_EQ(gpu["processes"][0]["foreign"], true);
  EXPECT_EQ(gpu["processes"][1]["foreign"], false);
  EXPECT_EQ(gpu["processes"][1]["job"], 17);
}

TEST(GpusJson, EveryNullHasAReasonBesideIt) {
  control::NodeView view = node_with_a_gpu();
  view.node.gpus = {Gpu{}};  // nothing could be read
  const std::string text = gpus_json(head, {view});
  EXPECT_THAT(schema_violations(text, "GpuList"), IsEmpty());
  const json gpu = json::parse(text)["nodes"][0]["gpus"][0];
  int nulls = 0;
  for (const auto& [name, value] : gpu.items()) {
    if (!value.is_null()) continue;
    ++nulls;
    EXPECT_TRUE(gpu["missing"].contains(name)) << name;
  }
  EXPECT_GE(nulls, 20);
  EXPECT_EQ(gpu["missing"].size(), static_cast<std::size_t>(nulls));
}

TEST(GpusJson, WithoutAGpuTheCoverageIsMissingAndNotZero) {
  const std::string text = gpus_json(head, {});
  EXPECT_EQ(text, R"({"takt":"0.1.0","warnings":[],"emulated":false,"coverage":null,)"
                  R"("source":"NVML","nodes":[],"missing":{"coverage":"no GPU was reported"}})");
  EXPECT_THAT(schema_violations(text, "GpuList"), IsEmpty());
}

TEST(WorkloadsJson, HoldsWhatOthersRelyOn) {
  WorkloadSummary w;
  w.workload = "llama";
  w.users = {{"b\"ob", 3}};
  w.category = Category::training;
  w.confidence = "provisional";
  w.evidence = {"runs 3 h at 80 %"};
  w.memory_peak = gibibytes(11);
  w.quantiles["busy"] = {0.5, 0.6, 0.7, 0.8, 0.5, 0.9, 100};
  w.busy_source = BusySource::gpu_util;
  w.coverage = 0.5;
  w.samples = 100;
  w.gpu_seconds = 10;
  w.waited_mean = milliseconds(1500);
  w.advice = {{"memory", "80 GiB", "--memory 15GiB", "peak 11 GiB", "low", "drop the flag"}};
  w.notes = {"n"};
  w.missing_samples = {{"busy: not permitted", 3}};
  WorkloadSummary other;
  other.workload = "idle";
  other.gpu_seconds = 30;
  const std::string text = workloads_json(head, {w, other});
  EXPECT_THAT(schema_violations(text, "WorkloadList"), IsEmpty());
  const json document = json::parse(text);
  EXPECT_EQ(document["coverage"], 0.125);
  EXPECT_EQ(document["source"], "GPU_UTIL");
  const json first = document["workloads"][0];
  EXPECT_EQ(first["name"], "llama");
  EXPECT_EQ(first["category"], "training");
  EXPECT_EQ(first["users"]["b\"ob"], 3);
  EXPECT_EQ(first["memory"]["peak_bytes"], 11LL << 30);
  EXPECT_EQ(first["memory"]["needed_bytes"], nullptr);
  EXPECT_EQ(first["memory"]["missing"]["needed_bytes"], "no sample yet");
  EXPECT_EQ(first["quantiles"]["busy"]["p95"], 0.7);
  EXPECT_EQ(first["waited_mean_seconds"], 1.5);
  EXPECT_EQ(first["advice"][0]["to"], "--memory 15GiB");
  EXPECT_THAT(schema_violations(workloads_json(head, {}), "WorkloadList"), IsEmpty());
}

TEST(SmallDocuments, AreAsTheOpenApiFileSaysAndCanBeRead) {
  EXPECT_EQ(version_json(head), R"({"takt":"0.1.0","warnings":[],"api":"v1"})");
  EXPECT_EQ(*read_version(version_json(head)), "0.1.0");
  EXPECT_EQ(error_json("no \"job\" 17"), R"({"error":"no \"job\" 17"})");
  EXPECT_EQ(*read_error(error_json("no \"job\" 17")), "no \"job\" 17");
  EXPECT_EQ(changed_reply_json(head, "cancelled", {JobId(1), JobId(2)}),
            R"({"takt":"0.1.0","warnings":[],"cancelled":[1,2]})");
  EXPECT_THAT(
      read_changed_reply(changed_reply_json(head, "held", {JobId(1), JobId(2)}), "held")->ids,
      ElementsAre(JobId(1), JobId(2)));
  ServerStatus status;
  status.pid = 77;
  status.started = noon;
  status.caller = "bob";
  status.counts.running = 3;
  status.counts.cancelled = 9;
  status.gpus = 4;
  status.emulated = true;
  status.problem = "the disk is full";
  const std::string text = status_json(head, status);
  for (const auto& [document, name] : std::vector<std::pair<std::string, std::string>>{
           {version_json(head), "Version"},
           {error_json("x"), "Error"},
           {changed_reply_json(head, "cancelled", {}), "CancelReply"},
           {changed_reply_json(head, "held", {}), "HoldReply"},
           {changed_reply_json(head, "released", {}), "ReleaseReply"},
           {text, "Status"}})
    EXPECT_THAT(schema_violations(document, name), IsEmpty()) << name;
  const auto back = read_status(text);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->started, noon);
  EXPECT_EQ(back->counts.running, 3);
  EXPECT_EQ(back->counts.cancelled, 9);
  EXPECT_EQ(status_json(head, *back), text);
}

// ---- submitting ------------------------------------------------------------------------------

JobSpec small_spec() {
  JobSpec spec;
  spec.name = "a";
  spec.argv = {"/bin/sh", "-c", "true"};
  spec.command_text = "true";
  spec.workdir = "/home/bob";
  spec.env = {{"HF_TOKEN", "hunter2", true}, {"A", "1", false}};
  return spec;
}

// A spec that obeys all rules, otherwise arbitrary.
JobSpec sound_spec(exact::Dice& dice) {
  JobSpec spec = small_spec();
  const auto maybe = [] { return *rc::gen::arbitrary<bool>(); };
  const auto span = [] { return Duration{*rc::gen::inRange<std::int64_t>(1, hours(9000).us)}; };
  std::string bytes = exact::arbitrary_text(dice);
  bytes.erase(std::remove(bytes.begin(), bytes.end(), '\0'), bytes.end());
  spec.argv = {"/bin/echo", bytes, ""};
  spec.command_text = bytes;
  spec.env.push_back({"B", bytes, maybe()});
  spec.workdir += "/" + bytes;
  if (maybe()) spec.name.clear();
  if (maybe()) spec.tier = exact::arbitrary<Tier>(dice);
  if (maybe()) spec.gpus.count = *rc::gen::inRange(1, 9);
  if (maybe()) spec.gpus.memory = Bytes{*rc::gen::inRange<std::int64_t>(1, INT64_MAX)};
  if (spec.gpus.memory && !spec.gpus.count && maybe())
    spec.gpus.compute_percent = *rc::gen::inRange(1, 101);
  if ((spec.gpus.memory || spec.gpus.count) && maybe()) spec.gpus.types = {"h100", "a100"};
  if (spec.gpus.count.value_or(0) > 1 && maybe()) spec.gpus.link = LinkNeed::nvlink;
  if (maybe()) spec.slo = ServiceLevel{span(), std::nullopt, span()};
  if (maybe()) spec.min_speed = 0.8;
  if (maybe()) spec.deadline = "07:00";
  if (maybe()) spec.isolation = Isolation::strict;
  if (maybe()) spec.cpus = 7;
  if (maybe()) spec.memory = gibibytes(3);
  if (maybe()) spec.time = span();
  if (maybe()) spec.kill_after = spec.time.value_or(Duration{0}) + span();
  if (spec.kill_after && *spec.kill_after > hours(9000)) spec.kill_after.reset();
  if (maybe()) spec.checkpoint = CheckpointSpec{"TERM", span()};
  if (maybe()) spec.retry = {{RetryCause::oom, RetryCause::node_lost}, 3};
  if (maybe()) spec.array = {{"lr", {"1e-4", bytes}}, {"seed", {"0"}}};
  if (spec.tier == Tier::serving && spec.array.empty() && maybe()) spec.replicas = 3;
  spec.wait_for_capacity = maybe();
  return spec;
}

RC_GTEST_PROP(Submissions, ASpecComesBackAsItWas, (std::uint64_t seed)) {
  exact::Dice dice(seed);
  const JobSpec spec = sound_spec(dice);
  const auto back = job_spec_from_json(job_spec_json(spec), Limits{});
  if (!back) RC_FAIL(back.error().message);
  RC_ASSERT(*back == spec);
  const SubmitRequest request{spec, Tier::experimental, "0a-Z_9"};
  const std::string body = submit_request_json(request);
  RC_ASSERT(schema_violations(body, "SubmitRequest").empty());
  const auto again = submit_request_from_json(body, Limits{});
  RC_ASSERT(again.has_value());
  RC_ASSERT(again->spec == spec);
  RC_ASSERT(again->default_tier == Tier::experimental);
  RC_ASSERT(again->request_id == "0a-Z_9");
}

RC_GTEST_PROP(Submissions, DamagedBodiesNeverCrash, (std::uint64_t seed)) {
  exact::Dice dice(seed);
  std::string body = submit_request_json({sound_spec(dice), Tier::batch});
  const auto at = *rc::gen::inRange<std::size_t>(0, body.size());
  body[at] = static_cast<char>(*rc::gen::arbitrary<std::uint8_t>());
  const auto request = submit_request_from_json(body, Limits{});
  RC_ASSERT(request.has_value() || !request.error().message.empty());
}

std::string refusal(std::string_view spec) {
  const auto request = submit_request_from_json("{\"spec\":" + std::string(spec) + "}", Limits{});
  return request ? "it was accepted" : request.error().message;
}

TEST(Submissions, MistakesAreNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({})", "run: nothing to run; expected a command, e.g. run: python3 train.py"},
      {R"([])", "a list is not an object"},
      {R"({"run":"x","gpu":2})", "gpu: is not a field; did you mean 'gpus'?"},
      {R"({"run":"x","gpus":2})", "gpus: 2 is not an object"},
      {R"({"run":"x","gpus":{"count":"2"}})", "gpus.count: '2' is not a whole number"},
      {R"({"run":"x","gpus":{"count":1e99}})",
       "gpus.count: the number 1e+99 is not a whole number"},
      {R"({"run":"x","gpus":{"count":-1}})",
       "gpus.count: '-1' is not a number of GPUs; expected 0 to 65536"},
      {R"({"run":"x","gpus":{"link":"ib"}})",
       "gpus.link: 'ib' is not a link; expected any or nvlink"},
      {R"({"run":"x","cpus":5000000000})", "cpus: 5000000000 is too large"},
      {R"({"run":"x","tier":"gold"})", "tier: 'gold' is not a tier"},
      {R"({"run":"x","tier":"batch","tier":"batch"})", "the field 'tier' is there twice"},
      {R"({"run":"x","argv":["x"]})", "argv and run are both given; keep one of them"},
      {R"({"argv":"x"})", "argv: 'x' is not a list of texts"},
      {R"({"argv":[1]})", "argv: 1 is not a text"},
      {R"({"argv":[{"b64":"?"}]})", "argv: the b64 text is not base64"},
      {R"({"run":"x","env":{"A":"hunter2"}})",
       "env: is not a list; expected [{\"name\": ..., \"value\": ...}, ...]"},
      {R"({"run":"x","env":[{"name":"A","value":{"hunter2":1}}]})", "env.value: is not a text"},
      {R"({"run":"x","env":[{"name":"A=hunter2","value":""}]})",
       "env: 'A...' is not a variable name; expected letters, digits and _, no digit first"},
      {R"({"run":"x","retry":{"on":["rain"],"max":1}})", "retry.on: 'rain' is not a cause"},
      {R"({"run":"x","array":{"a":"0-4"}})", "array.a: '0-4' is not a list of texts"},
      {R"({"run":"x","nodes":2})",
       "nodes: this version of takt cannot run a job on more than one node yet; remove the field "
       "or use nodes: 1"},
      {R"({"run":"x","image":"docker://x"})", "image: is not a field"},
      {R"({"run":"x","wait_for_capacity":1})", "wait_for_capacity: 1 is not true or false"},
      {R"({"run":"x","cpus":"a","tier":1})",
       "cpus: 'a' is not a whole number\ntier: 1 is not a tier"}};
  for (const auto& [spec, message] : cases) EXPECT_EQ(refusal(spec), message) << spec;
}

TEST(Submissions, TheBodyAroundTheSpecIsStrictToo) {
  const auto message = [](std::string_view body) {
    return submit_request_from_json(body, Limits{}).error().message;
  };
  EXPECT_EQ(message("{}"), "spec: is missing");
  EXPECT_THAT(message(""), HasSubstr("not JSON"));
  EXPECT_EQ(message(R"({"spec":{"run":"x"},"default_tier":"serving"})"),
            "default_tier: 'serving' is not experimental or batch");
  EXPECT_EQ(message(R"({"spec":{"run":"x"},"sepc":1})"),
            "sepc: is not a field; did you mean 'spec'?");
  Limits limits;
  limits.spec_bytes_max = 10;
  EXPECT_EQ(submit_request_from_json(R"({"spec":{"run":"x"}})", limits).error().message,
            "the document has 20 bytes; at most 10 are read");
}

TEST(Submissions, SecretsAreMarkedByNameEvenIfTheClientDidNot) {
  const auto request = submit_request_from_json(
      R"({"spec":{"run":"x","env":[{"name":"API_KEY","value":"k"},{"name":"A","value":"b"}]}})",
      Limits{});
  ASSERT_TRUE(request.has_value()) << request.error().message;
  EXPECT_TRUE(request->spec.env[0].secret);
  EXPECT_FALSE(request->spec.env[1].secret);
  EXPECT_EQ(request->default_tier, Tier::batch);
}

TEST(Submissions, WhatIsShownHoldsNoValueOfTheEnvironment) {
  JobSpec spec = small_spec();
  spec.env[1].value = "visible-secret";
  SubmitReply reply;
  reply.ids = {JobId(17), JobId(18)};
  reply.count = 2;
  reply.spec = spec;
  for (const std::string& shown :
       {job_spec_shown_json(spec), submit_reply_json({"0.1.0", {"w"}}, reply)}) {
    EXPECT_THAT(shown, Not(HasSubstr("hunter2")));
    EXPECT_THAT(shown, Not(HasSubstr("visible-secret")));
    EXPECT_THAT(shown, HasSubstr(R"("env":[{"name":"HF_TOKEN","secret":true},{"name":"A"}])"));
  }
  EXPECT_THAT(job_spec_json(spec), HasSubstr("hunter2"));  // the server must have it
}

TEST(Submissions, TheReplyCanBeRead) {
  SubmitReply reply;
  reply.ids = {JobId(17), JobId(18)};
  reply.count = 2;
  reply.spec = small_spec();
  const std::string text = submit_reply_json({"0.1.0", {"slo: recorded"}}, reply);
  EXPECT_THAT(schema_violations(text, "SubmitReply"), IsEmpty());
  const auto receipt = read_submit_reply(text);
  ASSERT_TRUE(receipt.has_value()) << receipt.error().message;
  EXPECT_THAT(receipt->ids, ElementsAre(JobId(17), JobId(18)));
  EXPECT_THAT(receipt->warnings, ElementsAre("slo: recorded"));
  reply.dry_run = true;
  reply.ids.clear();
  reply.waiting_for = waiting_job().waiting_for;
  reply.decision = {"rule 1"};
  const std::string dry = submit_reply_json(head, reply);
  EXPECT_THAT(schema_violations(dry, "SubmitReply"), IsEmpty());
  EXPECT_EQ(read_submit_reply(dry)->waiting_for, reply.waiting_for);
  EXPECT_THAT(read_submit_reply(dry)->decision, ElementsAre("rule 1"));
}

TEST(Reading, AJobIsReadFromItsDocument) {
  const auto job = read_job(job_json({"0.1.0", {"w"}}, failed_job()));
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_EQ(job->id, JobId(17));
  EXPECT_EQ(job->state, JobState::failed);
  EXPECT_EQ(job->signal, 9);
  EXPECT_EQ(job->exit_code, std::nullopt);
  EXPECT_THAT(job->devices, ElementsAre("gpu1 12.0 GiB"));
  EXPECT_THAT(job->warnings, ElementsAre("w"));
  const auto jobs = read_jobs(jobs_json(head, {waiting_job(), failed_job()}));
  ASSERT_EQ(jobs->size(), 2u);
  EXPECT_EQ((*jobs)[0].waiting_for, waiting_job().waiting_for);
}

TEST(Reading, EveryStateAndBlockerHasItsWay) {
  for (const JobState state :
       {JobState::waiting, JobState::starting, JobState::running, JobState::stopping,
        JobState::done, JobState::failed, JobState::cancelled}) {
    JobView job = waiting_job();
    job.state = state;
    EXPECT_EQ(read_job(job_json(head, job))->state, state);
  }
  for (const BlockerKind kind :
       {BlockerKind::no_agent, BlockerKind::no_gpu, BlockerKind::no_such_type,
        BlockerKind::larger_than_cluster, BlockerKind::gpus_busy, BlockerKind::memory_short,
        BlockerKind::foreign_process, BlockerKind::device_unhealthy, BlockerKind::draining,
        BlockerKind::behind_reservation, BlockerKind::isolation_unavailable, BlockerKind::held,
        BlockerKind::backing_off, BlockerKind::engine_queue_full}) {
    JobView job = waiting_job();
    job.waiting_for[0].kind = kind;
    EXPECT_EQ(read_job(job_json(head, job))->waiting_for[0].kind, kind);
  }
}

TEST(Reading, AnswersOfSomethingElseAreRefusedWithASentence) {
  for (const char* text : {"", "<html>", "{}", "[]", "null", R"({"id":"x"})",
                           R"({"id":1,"name":"a","state":"flying","reason":"","devices":[],)"
                           R"("waiting_for":[],"warnings":[]})"}) {
    const auto job = read_job(text);
    ASSERT_FALSE(job.has_value()) << text;
    EXPECT_EQ(job.error().kind, ErrorKind::io);
    EXPECT_THAT(job.error().message, HasSubstr("cannot read the server's answer: "));
    EXPECT_THAT(job.error().message, HasSubstr("different versions"));
  }
  EXPECT_FALSE(read_status("{}").has_value());
  EXPECT_FALSE(read_jobs(R"({"jobs":[1]})").has_value());
  EXPECT_FALSE(read_submit_reply("{}").has_value());
  EXPECT_FALSE(read_error("{}").has_value());
}

TEST(Iso8601, IsUtcWithMillisecondsOrMicroseconds) {
  EXPECT_EQ(iso8601(Instant{0}), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(iso8601(Instant{1'000}), "1970-01-01T00:00:00.001Z");
  EXPECT_EQ(iso8601(Instant{1}), "1970-01-01T00:00:00.000001Z");
  EXPECT_EQ(iso8601(Instant{-1}), "1969-12-31T23:59:59.999999Z");
  EXPECT_EQ(iso8601(Instant{951'782'400'000'000}), "2000-02-29T00:00:00.000Z");
  EXPECT_EQ(iso8601(Instant{4'102'444'799'000'000}), "2099-12-31T23:59:59.000Z");
  EXPECT_EQ(iso8601(Instant{std::numeric_limits<std::int64_t>::max()}),
            "294247-01-10T04:00:54.775807Z");
  EXPECT_EQ(iso8601(Instant{std::numeric_limits<std::int64_t>::min()}),
            "-290308-12-21T19:59:05.224192Z");
}

TEST(Iso8601, ImpossibleTimesAreRefused) {
  for (const char* text :
       {"", "2026-01-31", "2026-01-31T07:00:00", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00.1234567Z",
        "2026-01-01T00:00:00.xZ", "2026-01-01 00:00:00Z", "x026-01-01T00:00:00Z"})
    EXPECT_FALSE(instant_from_iso8601(text).has_value()) << text;
  EXPECT_TRUE(instant_from_iso8601("2024-02-29T23:59:59.5Z").has_value());
}

RC_GTEST_PROP(Iso8601, ComesBackForFourDigitYears, ()) {
  const Instant at{
      *rc::gen::inRange<std::int64_t>(-62'167'219'200'000'000, 253'402'300'799'999'999)};
  const auto back = instant_from_iso8601(iso8601(at));
  RC_ASSERT(back.has_value());
  RC_ASSERT(*back == at);
}

}  // namespace
}  // namespace takt::codec
