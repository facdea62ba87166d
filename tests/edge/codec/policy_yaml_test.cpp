#include "edge/codec/policy_yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace takt::codec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string refusal(std::string_view yaml) {
  const auto policy = parse_policy_yaml(yaml, "p.yaml");
  return policy ? "it was accepted" : policy.error().message;
}

TEST(PolicyYaml, WithoutAnyFieldTheDefaultsHold) {
  for (const char* text : {"", "# only a remark\n", "{}\n", "version: 1\n"}) {
    auto policy = parse_policy_yaml(text, "p.yaml");
    ASSERT_TRUE(policy.has_value()) << policy.error().message;
    EXPECT_THAT(policy->revision, StartsWith("file-"));
    policy->revision = Policy{}.revision;
    EXPECT_EQ(policy_to_yaml(*policy), policy_to_yaml(Policy{})) << text;
  }
}

TEST(PolicyYaml, ANodeThatMayBeSilentForLongIsUnreachableAndLostLaterThanThat) {
  const auto policy = parse_policy_yaml("node_silent_max: 30m\n", "p.yaml");
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  EXPECT_EQ(policy->node_unreachable_after, hours(1));
  EXPECT_EQ(policy->node_lost_after, hours(2));
}

TEST(PolicyYaml, EveryFieldIsRead) {
  const auto policy = parse_policy_yaml(R"(version: 1
revision: winter
admin_groups: [ops, gpu-admins]
fair_share_half_life: 2d
ignored_programs: [Xorg]
ignored_memory_max: 256MiB
stop_grace: 30s
node_silent_max: 1m
node_unreachable_after: 3m
node_lost_after: 7m
kill_proof_max: 90s
kill_failures_max: 3
time_estimate: {serving: 100d, training: 12h, batch: 2h, experimental: 4h}
size_margin: 40%
finished: {live_max: 11, live_for: 10m, keep: 30h, archive_bytes_max: 20MiB}
logs: {keep: 20h, bytes_max: 3GiB}
limits:
  pending_jobs_max: 5
  array_tasks_max: 6
  spec_bytes_max: 64KiB
  environment_bytes_max: 32KiB
  pending_jobs_per_user_max: 7
  inputs_batch_max: 8
  engine_waiting_max: 12
  connections_max: 9
  replicas_max: 10
  log_bytes_max: 64MiB
)",
                                        "p.yaml");
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  EXPECT_EQ(policy->revision, "winter");
  EXPECT_THAT(policy->admin_groups, ElementsAre("ops", "gpu-admins"));
  EXPECT_EQ(policy->fair_share_half_life, hours(48));
  EXPECT_THAT(policy->ignored_programs, ElementsAre("Xorg"));
  EXPECT_EQ(policy->ignored_memory_max, mebibytes(256));
  EXPECT_EQ(policy->stop_grace, seconds(30));
  EXPECT_EQ(policy->node_silent_max, minutes(1));
  EXPECT_EQ(policy->node_unreachable_after, minutes(3));
  EXPECT_EQ(policy->node_lost_after, minutes(7));
  EXPECT_EQ(policy->kill_proof_max, seconds(90));
  EXPECT_EQ(policy->kill_failures_max, 3);
  EXPECT_EQ(policy->limits.engine_waiting_max, 12u);
  EXPECT_EQ(policy->time_estimate.at(Tier::serving), hours(2400));
  EXPECT_EQ(policy->time_estimate.at(Tier::training), hours(12));
  EXPECT_EQ(policy->time_estimate.at(Tier::batch), hours(2));
  EXPECT_EQ(policy->time_estimate.at(Tier::experimental), hours(4));
  EXPECT_EQ(policy->size_margin_percent, 40);
  EXPECT_EQ(policy->finished.live_max, 11u);
  EXPECT_EQ(policy->finished.live_for, minutes(10));
  EXPECT_EQ(policy->finished.keep, hours(30));
  EXPECT_EQ(policy->finished.archive_bytes_max, mebibytes(20));
  EXPECT_EQ(policy->logs.keep, hours(20));
  EXPECT_EQ(policy->logs.bytes_max, gibibytes(3));
  EXPECT_EQ(policy->limits.pending_jobs_max, 5u);
  EXPECT_EQ(policy->limits.array_tasks_max, 6u);
  EXPECT_EQ(policy->limits.spec_bytes_max, 65'536u);
  EXPECT_EQ(policy->limits.environment_bytes_max, 32'768u);
  EXPECT_EQ(policy->limits.pending_jobs_per_user_max, 7u);
  EXPECT_EQ(policy->limits.inputs_batch_max, 8u);
  EXPECT_EQ(policy->limits.connections_max, 9u);
  EXPECT_EQ(policy->limits.replicas_max, 10);
  EXPECT_EQ(policy->limits.log_bytes_max, mebibytes(64));
  const std::string written = policy_to_yaml(*policy);
  const auto again = parse_policy_yaml(written, "p.yaml");
  ASSERT_TRUE(again.has_value()) << again.error().message << written;
  EXPECT_EQ(policy_to_yaml(*again), written);
}

TEST(PolicyYaml, AnEmptyListSwitchesAListOff) {
  EXPECT_TRUE(parse_policy_yaml("admin_groups: []", "p.yaml")->admin_groups.empty());
}

TEST(PolicyYaml, TheRevisionFollowsTheText) {
  const auto a = parse_policy_yaml("stop_grace: 1s", "p.yaml");
  const auto b = parse_policy_yaml("stop_grace: 2s", "p.yaml");
  EXPECT_NE(a->revision, b->revision);
  EXPECT_EQ(a->revision, parse_policy_yaml("stop_grace: 1s", "q.yaml")->revision);
}

TEST(PolicyYaml, MistakesAreNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"stopgrace: 1s", "p.yaml: line 1: stopgrace: is not a field; did you mean 'stop_grace'?"},
      {"version: 2",
       "p.yaml: line 1: version: '2' is not a version that this takt reads; expected 1"},
      {"stop_grace: 10",
       "p.yaml: line 1: stop_grace: '10' is not a time span; expected numbers with d, h, m, s or "
       "ms, e.g. 8h, 1h30m, 120s"},
      {"stop_grace: 2h", "p.yaml: line 1: stop_grace: '2h' is out of range; expected 0s to 1h"},
      {"node_unreachable_after: 10s",
       "p.yaml: line 1: node_unreachable_after: 10s is not longer than node_silent_max, 15s"},
      {"node_lost_after: 2m",
       "p.yaml: line 1: node_lost_after: 2m is not longer than node_unreachable_after, 2m"},
      {"kill_proof_max: 0s",
       "p.yaml: line 1: kill_proof_max: '0s' is out of range; expected 1s to 1d"},
      {"node_silent_max: 1ms",
       "p.yaml: line 1: node_silent_max: '1ms' is out of range; expected 1s to 1h"},
      {"size_margin: 25",
       "p.yaml: line 1: size_margin: '25' is not a percentage; expected a whole number with %, "
       "e.g. "
       "30%"},
      {"size_margin: 2000%",
       "p.yaml: line 1: size_margin: '2000%' is out of range; expected 0% to 1000%"},
      {"limits: {log_bytes_max: 100KiB}",
       "p.yaml: line 1: limits.log_bytes_max: '100KiB' is out of range; expected 1MiB to 1TiB"},
      {"finished: {keep: 1s}",
       "p.yaml: line 1: finished.keep: '1s' is out of range; expected 1m to 3650d"},
      {"logs: {bytes_max: 1B}",
       "p.yaml: line 1: logs.bytes_max: '1B' is out of range; expected 1.0 MiB to 1024.0 TiB"},
      {"limits: {connections_max: 0}",
       "p.yaml: line 1: limits.connections_max: '0' is not a limit; expected a whole number from 1 "
       "to 100000"},
      {"limits: {spec_bytes_max: 1B}",
       "p.yaml: line 1: limits.spec_bytes_max: '1B' is out of range; expected 1KiB to 64.0 MiB"},
      {"limits: none", "p.yaml: line 1: limits: 'none' is not a mapping of fields"},
      {"admin_groups: {a: b}", "p.yaml: line 1: admin_groups: a mapping is not a single value"},
      {"revision: ''", "p.yaml: line 1: revision: has 0 bytes; expected 1 to 128"},
      {"- a", "p.yaml: line 1: a list is not a policy; expected fields such as stop_grace: 10s"},
      {"stop_grace: 1s\nstop_grace: 2s",
       "p.yaml: line 2: stop_grace: is given twice, first in line 1"}};
  for (const auto& [yaml, message] : cases) EXPECT_EQ(refusal(yaml), message) << yaml;
  EXPECT_THAT(refusal("time_estimate: {train: 1h}"),
              HasSubstr("is not a field; expected serving, training, batch"));
}

RC_GTEST_PROP(PolicyYaml, ArbitraryTextNeverCrashes, (const std::string& text)) {
  const auto policy = parse_policy_yaml(text, "p.yaml");
  RC_ASSERT(policy.has_value() || !policy.error().message.empty());
}

TEST(PolicyYaml, OneUserGetsAQuarterOfTheConnectionsUnlessTheFileSaysOtherwise) {
  EXPECT_EQ(Policy{}.limits.connections_per_user_max, Policy{}.limits.connections_max / 4);
  EXPECT_EQ(
      parse_policy_yaml("limits: {connections_max: 40}", "p.yaml")->limits.connections_per_user_max,
      10u);
  EXPECT_EQ(parse_policy_yaml("limits: {connections_per_user_max: 40}", "p.yaml")
                ->limits.connections_per_user_max,
            40u);
  const auto more =
      parse_policy_yaml("limits: {connections_max: 40, connections_per_user_max: 41}", "p.yaml");
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().message,
            "p.yaml: line 1: limits.connections_per_user_max: 41 is more than connections_max, 40");
}

}  // namespace
}  // namespace takt::codec
