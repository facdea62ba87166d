// Journals as earlier versions of takt wrote them, as text under golden/: every later version must
// read them and come to the same state.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "core/control/state.h"
#include "edge/codec/journal_json.h"
#include "edge/codec/snapshot_text.h"
#include "edge/store/fixture.h"
#include "edge/store/journal.h"
#include "edge/store/tail_note.h"
#include "support/places.h"

namespace takt::store {
namespace {

using control::State;

constexpr Instant at(std::int64_t second) { return {1'790'000'000'000'000 + second * 1'000'000}; }

void make_database(const std::string& path, const std::string& golden) {
  const std::string text =
      read_file(testing::source_folder() + "/tests/edge/store/golden/" + golden);
  ASSERT_FALSE(text.empty()) << golden;
  sqlite3* db = nullptr;
  ASSERT_EQ(::sqlite3_open(path.c_str(), &db), SQLITE_OK);
  char* error = nullptr;
  ::sqlite3_exec(db, text.c_str(), nullptr, nullptr, &error);
  EXPECT_EQ(error, nullptr) << error;
  ::sqlite3_close(db);
}

State folded(Journal& journal, bool from_snapshot) {
  State state;
  std::uint64_t after = 0;
  if (from_snapshot) {
    const auto snapshot = journal.latest_snapshot().value();
    EXPECT_TRUE(snapshot && snapshot->warning.empty());
    const auto facts = codec::facts_from_snapshot(snapshot->body);
    EXPECT_TRUE(facts) << facts.error().message;
    for (const control::Fact& fact : *facts) fold(state, fact, hours(24 * 7));
    after = snapshot->sequence;
  }
  const auto done = journal.replay(after, [&](const Record& record) -> Result<void> {
    const auto fact = codec::decode_fact({record.kind, record.version, record.body});
    if (!fact) return tl::make_unexpected(fact.error());
    fold(state, *fact, hours(24 * 7));
    return {};
  });
  EXPECT_TRUE(done) << done.error().message;
  return state;
}

void expect_what_happened(const State& state) {
  ASSERT_EQ(state.jobs.size(), 5u);
  EXPECT_EQ(state.next_job, 6u);
  EXPECT_EQ(state.next_generation, 5u);
  EXPECT_EQ(state.waiting, std::set<JobId>{JobId(5)});
  EXPECT_EQ(state.holding, std::set<JobId>{JobId(4)});
  const std::set<std::pair<Instant, JobId>> ends = {
      {at(9100), JobId(1)}, {at(9102), JobId(2)}, {at(9104), JobId(3)}};
  EXPECT_EQ(state.finished, ends);

  const control::Job& train = state.jobs.at(JobId(1));
  EXPECT_EQ(train.state(), control::JobState::failed);
  EXPECT_EQ(train.finished->reason, "ran longer than its kill_after of 2h30m");
  EXPECT_EQ(train.attempts, 2u);
  EXPECT_EQ(train.attempt->exit->signal, 9);
  EXPECT_TRUE(train.attempt->exit->oom);
  EXPECT_EQ(train.attempt->stop->reason, control::StopReason::kill_after);
  EXPECT_EQ(train.attempt->grant.devices.size(), 2u);
  EXPECT_EQ(train.submitter().user, "alice");
  EXPECT_EQ(train.spec().retry.max, 1);
  const control::Environment& environment = state.environment_of(train);
  ASSERT_EQ(environment.size(), 3u);
  EXPECT_TRUE(environment[1].secret);
  EXPECT_EQ(environment[2].value, std::string("\xFF\x01 half \xE2\x82", 11));

  const control::Job& sweep = state.jobs.at(JobId(2));
  EXPECT_EQ(sweep.state(), control::JobState::cancelled);
  EXPECT_EQ(sweep.finished->reason, "cancelled by alice");
  EXPECT_EQ(state.jobs.at(JobId(3)).state(), control::JobState::failed);
  EXPECT_EQ(state.jobs.at(JobId(3)).attempt->exit->message, "cannot execute /bin/sh: no such file");
  const control::Job& running = state.jobs.at(JobId(4));
  EXPECT_EQ(running.state(), control::JobState::running);
  EXPECT_EQ(running.attempt->pid, 5000);
  EXPECT_EQ(running.attempt->generation, 4u);
  EXPECT_EQ(running.attempt->started, at(9107));
  EXPECT_EQ(running.attempt->grant.devices[0].uuid, DeviceUuid("MIG-4"));
  EXPECT_EQ(state.jobs.at(JobId(5)).spec().slo->ttft_p95, milliseconds(200));

  ASSERT_EQ(state.usage.size(), 1u);
  EXPECT_EQ(state.usage.at("alice").amount, 18'161'660);
  EXPECT_EQ(state.usage.at("alice").at, at(9105));
}

TEST(GoldenJournal, WhatRelease01WroteIsReadFromItsRecordsAndFromItsSnapshot) {
  const TempFolder folder;
  const std::string path = folder / "journal.db";
  make_database(path, "journal-v1.sql");
  const auto journal = Journal::open(path);
  ASSERT_TRUE(journal) << journal.error().message;
  EXPECT_EQ((*journal)->last_sequence(), 24u);
  expect_what_happened(folded(**journal, false));
  expect_what_happened(folded(**journal, true));
  EXPECT_EQ(fingerprint(folded(**journal, false)), fingerprint(folded(**journal, true)));
  EXPECT_EQ(fingerprint(folded(**journal, false)), fingerprint_anew(folded(**journal, false)));
}

TEST(GoldenJournal, WhatRelease01WroteGoesOnUnderThisVersion) {
  const TempFolder folder;
  const std::string path = folder / "journal.db";
  make_database(path, "journal-v1.sql");
  const auto fact = codec::encode_fact(control::JobCancelled{JobId(5), at(9300)});
  ASSERT_TRUE(Journal::open(path).value()->append({{25, fact.version, fact.kind, fact.body}}));
  const auto journal = Journal::open(path);
  ASSERT_TRUE(journal) << journal.error().message;
  EXPECT_EQ(folded(**journal, true).jobs.at(JobId(5)).state(), control::JobState::cancelled);
}

TEST(GoldenJournal, WhatRelease02WroteIsReadFromItsRecordsAndFromItsSnapshot) {
  const TempFolder folder;
  const std::string path = folder / "journal.db";
  make_database(path, "journal-v2.sql");
  ASSERT_TRUE(TailNote::create(path, 27));
  const auto journal = Journal::open(path);
  ASSERT_TRUE(journal) << journal.error().message;
  for (const bool from_snapshot : {false, true}) {
    const State state = folded(**journal, from_snapshot);
    EXPECT_EQ(state.identity, "0123456789abcdef");
    EXPECT_EQ(state.next_job, 6u);
    EXPECT_EQ(state.next_generation, 4u);
    EXPECT_EQ(state.jobs.size(), 4u) << "job 2 has left for the archive";
    EXPECT_EQ(state.waiting, (std::set<JobId>{JobId(1), JobId(5)}));
    EXPECT_EQ(state.holding, std::set<JobId>{JobId(4)});
    EXPECT_EQ(state.finished, (std::set<std::pair<Instant, JobId>>{{at(160), JobId(3)}}));
    EXPECT_EQ(state.usage.at("alice").amount, 294'000);
    EXPECT_EQ(state.clock.offset, seconds(1'789'993'600));
    const control::Job& train = state.jobs.at(JobId(1));
    EXPECT_FALSE(train.hold);
    EXPECT_EQ(train.kill_failures, 1u);
    EXPECT_EQ(train.attempt->kill_failed, "process 4711 outlives KILL");
    EXPECT_EQ(state.environment_of(train).size(), 3u);
    EXPECT_EQ(state.jobs.at(JobId(3)).parameters.at("x"), "two");
    EXPECT_EQ(state.jobs.at(JobId(4)).attempt->boot_id, "boot-1");
    EXPECT_EQ(state.jobs.at(JobId(5)).hold->reason, "later");
    EXPECT_EQ(fingerprint(state), fingerprint_anew(state));
  }
  EXPECT_EQ(fingerprint(folded(**journal, false)), fingerprint(folded(**journal, true)));
}

TEST(GoldenJournal, EveryKindOfRecordIsInOneOfThem) {
  std::string all;
  for (const char* golden : {"journal-v1.sql", "journal-v2.sql"})
    all += read_file(testing::source_folder() + "/tests/edge/store/golden/" + golden);
  for (const std::string& kind : codec::fact_kinds()) {
    const bool record = all.find("'" + kind + "'") != std::string::npos;
    const bool in_snapshot = all.find(kind + " ") != std::string::npos;
    EXPECT_TRUE(record || in_snapshot) << kind << ": write a golden journal that has it";
  }
}

}  // namespace
}  // namespace takt::store
