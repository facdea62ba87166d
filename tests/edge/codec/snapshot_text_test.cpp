// Snapshots as text: what goes in comes out, and damage is named with its line.
#include "edge/codec/snapshot_text.h"

#include <gmock/gmock.h>

#include "core/control/state.h"
#include "support/cluster_builder.h"

namespace takt::codec {
namespace {

using namespace takt::testing;
using ::testing::HasSubstr;

// A job that was granted, started, stopped and has ended, and what else a snapshot holds.
std::vector<control::Fact> some_of_all() {
  const AttemptId id{JobId(3), 1};
  control::JobAccepted accepted;
  accepted.job = JobId(3);
  control::Submission submission;
  submission.spec = whole_gpus(1);
  submission.spec.env = {{"TEXT", "two\nlines and a \"quote\" \xFF", false}};
  submission.submitter = alice();
  submission.at = t0;
  accepted.submission = std::make_shared<control::Submission>(submission);
  const Node node = node_of("n1", 1, h100());
  return {accepted,
          control::CancelRequested{JobId(3), "alice", at(1)},
          control::Granted{id, 7, whole_grant(node, {0}), at(2), "boot"},
          control::Started{id, 4711, at(3)},
          control::StopRequested{id, control::StopReason::cancelled, "why", seconds(10), at(4)},
          control::Exited{id, exit_code(3), at(5)},
          control::Released{id, at(6)},
          control::Requeued{JobId(3), RetryCause::failed, at(6), at(8)},
          control::Finished{JobId(3), control::Finished::Outcome::failed, "a reason", at(9)},
          control::JobCancelled{JobId(4), at(9)},
          control::UsageCarried{"alice", 123'456, at(10)},
          control::CountersCarried{12, 34, 56}};
}

TEST(SnapshotText, WhatGoesInComesOut) {
  const auto facts = some_of_all();
  const std::string text = snapshot_of(facts);
  const auto read = facts_from_snapshot(text);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), facts.size());
  for (std::size_t i = 0; i < facts.size(); ++i) EXPECT_EQ((*read)[i].index(), facts[i].index());
  EXPECT_EQ(snapshot_of(*read), text);
  EXPECT_EQ(std::get<control::JobAccepted>((*read)[0]).submission->spec.env,
            std::get<control::JobAccepted>(facts[0]).submission->spec.env);
}

TEST(SnapshotText, IsOneLineAFact) {
  const std::string text = snapshot_of(some_of_all());
  EXPECT_EQ(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')),
            some_of_all().size());
}

TEST(SnapshotText, TheFingerprintStandsInFrontAndComesOut) {
  const auto facts = some_of_all();
  const Fingerprint print{3, 0xFEDC'BA98'7654'3210};
  const std::string text = snapshot_of(facts, print);
  EXPECT_EQ(text, "fingerprint 3 fedcba9876543210\n" + snapshot_of(facts));
  std::size_t seen = 0;
  const auto read = read_snapshot(text, [&](control::Fact) {
    ++seen;
    return Result<void>();
  });
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, print);
  EXPECT_EQ(seen, facts.size());
  EXPECT_EQ(facts_from_snapshot(text)->size(), facts.size());
  const auto none = read_snapshot(snapshot_of(facts), [](control::Fact) { return Result<void>(); });
  EXPECT_EQ(*none, std::nullopt);
}

TEST(SnapshotText, ADamagedFingerprintIsNamed) {
  for (const char* text : {"fingerprint 1 xyz\n", "fingerprint 1\n", "fingerprint  12\n",
                           "fingerprint 1 12", "fingerprint 1 12 \n", "fingerprint "}) {
    const auto read = facts_from_snapshot(text);
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().message, HasSubstr("line 1 is not a fingerprint")) << text;
  }
}

TEST(SnapshotText, OfNothingIsNothing) {
  EXPECT_EQ(snapshot_of({}), "");
  const auto read = facts_from_snapshot("");
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->empty());
}

TEST(SnapshotText, CutOffAnywhereItIsRefusedOrEndsAtAWholeLine) {
  const std::string text = snapshot_of(some_of_all());
  for (std::size_t length = 1; length < text.size(); ++length) {
    const auto read = facts_from_snapshot(std::string_view(text).substr(0, length));
    if (text[length - 1] == '\n') {
      EXPECT_TRUE(read) << length;
    } else {
      ASSERT_FALSE(read) << length;
      EXPECT_THAT(read.error().message, HasSubstr("cut off"));
    }
  }
}

TEST(SnapshotText, DamageIsNamedWithItsLine) {
  std::string text = snapshot_of(some_of_all());
  const std::size_t third = text.find('\n', text.find('\n') + 1) + 1;
  const struct {
    const char* what;
    std::string line;
  } rows[] = {
      {"an empty line", ""},
      {"no version", "granted"},
      {"no number", "granted one {}"},
      {"a newer version", "granted 99 {}"},
      {"an unknown kind", "promoted 1 {}"},
      {"half a body", "granted 1 {\"attempt\": "},
      {"another body", "granted 1 {}"},
  };
  for (const auto& row : rows) {
    std::string damaged = text.substr(0, third) + row.line + text.substr(text.find('\n', third));
    const auto read = facts_from_snapshot(damaged);
    ASSERT_FALSE(read) << row.what;
    EXPECT_THAT(read.error().message, HasSubstr("snapshot: line 3")) << row.what;
  }
}

TEST(SnapshotText, FoldsToTheStateItWasMadeOf) {
  control::State state;
  for (const control::Fact& f : some_of_all()) fold(state, f, hours(1));
  const auto read = facts_from_snapshot(snapshot_of(control::facts_of(state)));
  ASSERT_TRUE(read);
  control::State again;
  for (const control::Fact& f : *read) fold(again, f, hours(1));
  EXPECT_EQ(snapshot_of(control::facts_of(again)), snapshot_of(control::facts_of(state)));
  EXPECT_EQ(again.next_job, state.next_job);
  EXPECT_EQ(again.next_generation, state.next_generation);
  EXPECT_EQ(again.usage, state.usage);
}

}  // namespace
}  // namespace takt::codec
