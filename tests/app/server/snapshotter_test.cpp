// Snapshots are made from what is on disk and kept only when they fit what the loop noted.
#include "app/server/snapshotter.h"

#include <filesystem>
#include <fstream>

#include "edge/store/journal.h"
#include "fixture.h"

namespace takt::server {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FingerprintedSnapshots : public ::testing::Test {
 protected:
  // Some jobs on one node, run to their ends.
  void live_a_little(Life& life, int jobs = 5) {
    life.begin();
    life.hear(node_of("n1", 2, h100()));
    for (int i = 0; i < jobs; ++i) ASSERT_TRUE(life.submit(named(whole_gpus(1), "job")));
  }
  std::unique_ptr<Snapshotter> snapshotter(std::size_t facts_min = 1'000'000) {
    return std::make_unique<Snapshotter>(
        memory_, Snapshotter::Options{Policy{}.fair_share_half_life, facts_min,
                                      [this](const std::string& s) { notes_.push_back(s); }});
  }
  store::MemoryJournal memory_;
  std::vector<std::string> notes_;
};

TEST_F(FingerprintedSnapshots, HoldTheFingerprintOfTheStateAtTheirRecord) {
  {
    Life life(memory_);
    live_a_little(life);
  }
  ASSERT_THAT(memory_.snapshots, SizeIs(1));
  EXPECT_EQ(memory_.snapshots[0].version, 2);
  EXPECT_THAT(memory_.snapshots[0].body, HasSubstr("fingerprint "));
  auto maker = snapshotter();
  const auto recovered = maker->recover();
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_EQ(fingerprint(*recovered), fingerprint(replayed(memory_)));
  EXPECT_EQ(text_of(*recovered), text_of(replayed(memory_)));
}

TEST_F(FingerprintedSnapshots, ThatDoNotFitWhatTheLoopNotedAreNotKeptAndNothingIsPruned) {
  {
    Life life(memory_);
    live_a_little(life);
  }
  const auto records = memory_.records.size();
  memory_.snapshots.clear();
  auto maker = snapshotter();
  maker->appended(memory_.last_sequence(), records, fingerprint(replayed(memory_)) + 1);
  maker->keep();
  EXPECT_THAT(memory_.snapshots, IsEmpty());
  EXPECT_THAT(memory_.records, SizeIs(records));
  EXPECT_THAT(maker->problem(),
              HasSubstr("does not fold to the state that this server works with"));
  EXPECT_THAT(notes_, Contains(HasSubstr("no snapshot is kept")));

  maker->appended(memory_.last_sequence(), 1, fingerprint(replayed(memory_)));
  maker->keep();
  EXPECT_THAT(memory_.snapshots, SizeIs(1));
  EXPECT_EQ(maker->problem(), "");
}

TEST_F(FingerprintedSnapshots, OneThatDoesNotFitItsFingerprintGivesWayToTheOneBefore) {
  {
    Life life(memory_);
    live_a_little(life);
  }
  {
    Life life(memory_);
    live_a_little(life, 2);
  }
  ASSERT_THAT(memory_.snapshots, SizeIs(2));
  const std::string whole = text_of(snapshotter()->recover().value());
  std::string& newest = memory_.snapshots.back().body;
  const std::size_t digit = std::string("fingerprint 1 ").size();
  newest[digit] = newest[digit] == '0' ? '1' : '0';
  const auto recovered = snapshotter()->recover();
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_EQ(text_of(*recovered), whole);
  EXPECT_THAT(notes_, Contains(HasSubstr("does not fit its fingerprint")));
}

TEST_F(FingerprintedSnapshots, TheFirstThatDoesNotFitGivesWayToTheRecordsFromTheBeginning) {
  {
    Life life(memory_);
    live_a_little(life);
  }
  ASSERT_THAT(memory_.snapshots, SizeIs(1));
  std::string& body = memory_.snapshots.back().body;
  const std::size_t job = body.find("job-accepted");
  body.erase(job, body.find('\n', job) + 1 - job);
  const auto recovered = snapshotter()->recover();
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_EQ(text_of(*recovered), text_of(replayed(memory_)));
  EXPECT_THAT(notes_, Contains(HasSubstr("does not fit its fingerprint")));
}

TEST_F(FingerprintedSnapshots, OfVersionOneAreStillRead) {
  {
    Life life(memory_);
    live_a_little(life);
  }
  const std::string whole = text_of(replayed(memory_));
  memory_.snapshots = {{memory_.last_sequence(), 1, whole, ""}};
  const auto recovered = snapshotter()->recover();
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_EQ(text_of(*recovered), whole);
}

TEST_F(FingerprintedSnapshots, ALargeStateIsNotWrittenAnewForEveryFewFacts) {
  std::size_t snapshots = 0;
  {
    Life life(memory_, 20);
    live_a_little(life, 400);  // each a fact or more, all waiting but two
    life.controller->stop();
    for (const std::string& note : life.notes()) ADD_FAILURE() << note;
    snapshots = 400 / 20;
  }
  // 20, 40, 80, ...: as many facts as the last one held.
  std::set<std::uint64_t> kept;
  for (const store::Snapshot& s : memory_.snapshots) kept.insert(s.sequence);
  EXPECT_THAT(kept, SizeIs(2));
  EXPECT_GT(*kept.rbegin(), 400u);
  EXPECT_LT(memory_.snapshots_saved, snapshots);
  EXPECT_GE(memory_.snapshots_saved, 2u);
}

// What a later version of takt wrote on disk is refused, and keeps every byte.
TEST(JournalOfANewerTakt, IsRefusedWithASentenceAndLeftAsItIs) {
  std::string folder = (std::filesystem::temp_directory_path() / "takt-newer-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/journal.db";
  const auto whole = codec::encode_fact(control::CountersCarried{3, 4, 5});
  const auto bytes_of = [&](const std::string& end) {
    std::ifstream file(path + end, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  for (const store::Record& newer :
       {store::Record{2, whole.version + 1, whole.kind, whole.body},
        store::Record{2, 1, "moon-landed", "{}"}, store::Record{2, 1, "finished", "{\"job\":"}}) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
    ASSERT_TRUE(store::Journal::open(path).value()->append(
        {{1, whole.version, whole.kind, whole.body}, newer}));
    const std::string before = bytes_of("") + bytes_of(".tail");
    {
      const auto journal = store::Journal::open(path).value();
      const auto refused = Snapshotter(*journal, {}).recover();
      ASSERT_FALSE(refused) << newer.kind;
      EXPECT_THAT(refused.error().message, HasSubstr("record 2 of the journal"));
    }
    EXPECT_EQ(bytes_of("") + bytes_of(".tail"), before) << newer.kind;
    EXPECT_EQ(bytes_of("-wal"), "");
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace takt::server
