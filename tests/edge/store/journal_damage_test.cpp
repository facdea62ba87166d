// Damage by machine: the files of a journal, as a killed process leaves them, are cut at every byte
// of their ends and get a bit flipped in every byte. Whatever is opened has everything that was
// acknowledged; whatever has not is refused with a sentence and keeps every byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "edge/store/fixture.h"
#include "edge/store/journal.h"

namespace takt::store {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// Thousands of files are written: in memory where that is possible.
std::filesystem::path fast_folder() {
  return ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path();
}

using Files = std::map<std::string, std::string>;  // ending -> bytes

class JournalDamage : public ::testing::Test {
 protected:
  // Some batches with a snapshot between, and what a kill -9 would leave. With `folded` the log was
  // folded into the database once, and goes on from its beginning.
  Files killed(bool folded) {
    TempFolder folder(fast_folder());
    const std::string path = folder / "journal.db";
    if (folded) {
      const auto journal = Journal::open(path).value();
      append(*journal, 30, 300);
    }
    const auto journal = Journal::open(path).value();
    append(*journal, 12, 100);
    append(*journal, 1, 40);
    EXPECT_TRUE(journal->save_snapshot(last_, 1, "state at " + std::to_string(last_)));
    append(*journal, 3, 2000);
    append(*journal, 2, 40);
    append(*journal, 1, 40);
    return read(path);
  }
  // What a proper end leaves.
  Files closed() {
    TempFolder folder(fast_folder());
    const std::string path = folder / "journal.db";
    {
      const auto journal = Journal::open(path).value();
      append(*journal, 12, 100);
      EXPECT_TRUE(journal->save_snapshot(last_, 1, "state at " + std::to_string(last_)));
      append(*journal, 3, 2000);
    }
    return read(path);
  }
  void append(Journal& journal, std::uint64_t count, std::size_t bytes) {
    ASSERT_TRUE(journal.append(records_of(last_ + 1, last_ + count, bytes)));
    for (std::uint64_t i = last_ + 1; i <= last_ + count; ++i) sizes_[i] = bytes;
    last_ += count;
    ends_.insert(last_);
  }
  static Files read(const std::string& path) {
    Files files;
    for (const char* end : {"", "-wal", ".tail"})
      if (std::string bytes = read_file(path + end); !bytes.empty()) files[end] = std::move(bytes);
    return files;
  }
  void put(const Files& files) {
    for (const char* end : {"", "-wal", ".tail"}) {
      const auto it = files.find(end);
      if (it == files.end())
        std::filesystem::remove(path_ + end);
      else
        write_file(path_ + end, it->second);
    }
  }

  // Opens it and reads everything. The last sequence when all of it is right; nullopt when it was
  // refused, with the sentence in refusal_.
  std::optional<std::uint64_t> recovered(bool accept_loss = false) {
    Journal::Options options;
    options.accept_loss = accept_loss;
    auto journal = Journal::open(path_, options);
    if (!journal) return refused(journal.error());
    const auto snapshot = (*journal)->latest_snapshot();
    if (!snapshot) return refused(snapshot.error());
    if (*snapshot) {
      EXPECT_EQ((*snapshot)->body, "state at " + std::to_string((*snapshot)->sequence));
    }
    std::uint64_t seen = 0;
    const auto replayed = (*journal)->replay(0, [&](const Record& record) -> Result<void> {
      ++seen;
      EXPECT_EQ(record, record_of(seen, sizes_[seen]));
      return {};
    });
    if (!replayed) return refused(replayed.error());
    EXPECT_EQ(seen, (*journal)->last_sequence());
    return seen;
  }
  std::optional<std::uint64_t> refused(const Error& error) {
    refusal_ = error.message;
    EXPECT_THAT(refusal_, HasSubstr(path_));
    EXPECT_THAT(refusal_, AnyOf(HasSubstr("left as it is"), HasSubstr("left as they are"),
                                HasSubstr("put it back"), HasSubstr("nothing was touched")));
    return std::nullopt;
  }
  // All or nothing: true when it was opened.
  bool whole_or_refused(const Files& files) {
    put(files);
    const auto found = recovered();
    if (found) {
      EXPECT_EQ(*found, last_) << "a silent loss";
      return true;
    }
    EXPECT_TRUE(read(path_) == files) << "a refused file was changed: " << refusal_;
    return false;
  }
  // With the loss accepted: whole batches, from the first on. True when it could be opened.
  bool prefix_or_refused(const Files& files) {
    put(files);
    const auto found = recovered(true);
    if (!found) return false;
    EXPECT_TRUE(*found == 0 || ends_.count(*found) != 0) << "half a batch, up to " << *found;
    return true;
  }
  // One random bit of every byte; of long runs of zeroes, which no page uses, some bytes only.
  void flip_everywhere(const Files& files, const std::string& end, std::size_t step = 1) {
    std::mt19937 random(20260101);
    const std::string& bytes = files.at(end);
    int opened = 0;
    int refusals = 0;
    std::size_t zeroes = 0;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      zeroes = bytes[at] == '\0' ? zeroes + 1 : 0;
      if (zeroes > 16 && random() % 64 != 0) continue;
      Files changed = files;
      changed[end][at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
      SCOPED_TRACE("byte " + std::to_string(at) + " of journal.db" + end);
      ++(whole_or_refused(changed) ? opened : refusals);
      if (HasFailure()) return;
    }
    EXPECT_GT(refusals, 100);
    RecordProperty("opened", opened);
    RecordProperty("refused", refusals);
  }

  TempFolder folder_{fast_folder()};
  std::string path_ = folder_ / "journal.db";
  std::uint64_t last_ = 0;
  std::set<std::uint64_t> ends_;  // of batches
  std::map<std::uint64_t, std::size_t> sizes_;
  std::string refusal_;
};

TEST_F(JournalDamage, WithoutDamageAKilledJournalIsWhole) {
  const Files files = killed(false);
  ASSERT_EQ(files.size(), 3u);
  EXPECT_TRUE(whole_or_refused(files));
}

TEST_F(JournalDamage, ALogCutAtAnyByteOfItsEndIsToldWithTheNumberOfMissingRecords) {
  const Files files = killed(false);
  const std::string& wal = files.at("-wal");
  for (std::size_t cut = 1; cut <= 4096; ++cut) {
    Files changed = files;
    changed["-wal"].resize(wal.size() - cut);
    SCOPED_TRACE("cut by " + std::to_string(cut));
    ASSERT_FALSE(whole_or_refused(changed));
    ASSERT_THAT(refusal_, AllOf(HasSubstr("the acknowledged record 19 is missing"),
                                HasSubstr("takt serve --accept-loss")));
    if (cut % 16 != 0) continue;
    ASSERT_TRUE(prefix_or_refused(changed));
  }
}

TEST_F(JournalDamage, ALogCutAnywhereIsNeverHalfABatchNorASilentLoss) {
  for (const bool folded : {false, true}) {
    const Files files = killed(folded);
    for (std::size_t left = 1; left < files.at("-wal").size(); left += 61) {
      Files changed = files;
      changed["-wal"].resize(left);
      SCOPED_TRACE("cut to " + std::to_string(left));
      ASSERT_FALSE(whole_or_refused(changed));
      prefix_or_refused(changed);
      ASSERT_FALSE(HasFailure());
    }
    last_ = 0;
    ends_.clear();
  }
}

TEST_F(JournalDamage, ALogThatIsGoneIsTold) {
  Files files = killed(false);
  files.erase("-wal");
  EXPECT_FALSE(whole_or_refused(files));
  EXPECT_THAT(refusal_, HasSubstr("19 acknowledged records are missing, 1 to 19"));
}

TEST_F(JournalDamage, ADatabaseCutAtAnyByteOfItsEndIsRefused) {
  const Files files = closed();
  for (std::size_t cut = 1; cut <= 4096; ++cut) {
    Files changed = files;
    changed[""].resize(files.at("").size() - cut);
    SCOPED_TRACE("cut by " + std::to_string(cut));
    ASSERT_FALSE(whole_or_refused(changed));
    ASSERT_THAT(refusal_, HasSubstr("its header promises"));
  }
}

TEST_F(JournalDamage, ADatabaseCutBesideItsLogIsWholeOrRefused) {
  const Files files = killed(true);
  for (std::size_t cut = 1; cut <= 4096; cut += 7) {
    Files changed = files;
    changed[""].resize(files.at("").size() - cut);
    SCOPED_TRACE("cut by " + std::to_string(cut));
    whole_or_refused(changed);
    ASSERT_FALSE(HasFailure());
  }
}

TEST_F(JournalDamage, AFlippedBitInTheDatabaseIsHarmlessOrRefused) {
  flip_everywhere(closed(), "");
}

TEST_F(JournalDamage, AFlippedBitInTheDatabaseBesideItsLogIsHarmlessOrRefused) {
  flip_everywhere(killed(true), "", 3);
}

TEST_F(JournalDamage, AFlippedBitInTheLogIsHarmlessOrRefused) {
  flip_everywhere(killed(false), "-wal");
}

TEST_F(JournalDamage, ABitFlippedInTheNoteIsHarmless) {
  const Files files = killed(false);
  for (std::size_t at = 0; at < files.at(".tail").size(); ++at) {
    Files changed = files;
    changed[".tail"][at] = static_cast<char>(changed[".tail"][at] ^ 4);
    ASSERT_TRUE(whole_or_refused(changed)) << at << ": the other slot is there";
  }
}

TEST_F(JournalDamage, ANoteThatIsGoneOrCannotBeReadIsToldAndCanBeAccepted) {
  const Files files = killed(false);
  Files none = files;
  none.erase(".tail");
  EXPECT_FALSE(whole_or_refused(none));
  EXPECT_THAT(refusal_, HasSubstr("journal.db.tail is not there"));
  Files noise = files;
  noise[".tail"] = std::string(1024, 'x');
  EXPECT_FALSE(whole_or_refused(noise));
  EXPECT_THAT(refusal_, HasSubstr("journal.db.tail is damaged"));
  EXPECT_TRUE(prefix_or_refused(noise));
  // Only looked at: it must be accepted again, until something is written.
  EXPECT_FALSE(recovered());
  {
    Journal::Options options;
    options.accept_loss = true;
    const auto journal = Journal::open(path_, options).value();
    EXPECT_TRUE(journal->may_have_forgotten());
    EXPECT_THAT(journal->opening_note(), HasSubstr("this was accepted"));
    append(*journal, 1, 40);
    EXPECT_FALSE(journal->may_have_forgotten());
  }
  EXPECT_EQ(recovered(), last_);
}

TEST_F(JournalDamage, AnAcceptedLossGoesOnFromTheLastWholeBatch) {
  Files files = killed(false);
  files["-wal"].resize(files["-wal"].size() - 1);
  put(files);
  {
    Journal::Options options;
    options.accept_loss = true;
    const auto journal = Journal::open(path_, options).value();
    EXPECT_EQ(journal->last_sequence(), 18u);
    EXPECT_TRUE(journal->may_have_forgotten());
    EXPECT_THAT(journal->opening_note(), HasSubstr("the acknowledged record 19 is missing"));
    last_ = 18;
    append(*journal, 1, 77);
  }
  EXPECT_EQ(recovered(), 19u) << "and nothing needs to be accepted any more";
}

// After a power failure the note may be behind; then only the log itself can tell.

TEST_F(JournalDamage, WithANoteThatIsBehindDamageBeforeTheLastBatchIsStillTold) {
  Files files = killed(false);
  const std::string& wal = files.at("-wal");
  const std::size_t frame = 24 + 8192;
  const std::size_t frames = (wal.size() - 32) / frame;
  ASSERT_EQ(wal.size(), 32 + frames * frame);
  TempFolder other(fast_folder());
  files[".tail"] = [&] {
    const auto journal = Journal::open(other / "journal.db").value();
    EXPECT_TRUE(journal->append(records_of(1, 1)));
    return read_file(other / "journal.db.tail");
  }();
  for (std::size_t i = 0; i + 2 < frames; ++i) {
    Files changed = files;
    changed["-wal"][32 + i * frame + 24 + 777] ^= 1;
    ASSERT_FALSE(whole_or_refused(changed)) << "frame " << i << " of " << frames;
    ASSERT_THAT(refusal_, HasSubstr("although commits follow"));
  }
  files["-wal"][32 + (frames - 1) * frame + 24 + 777] ^= 1;
  put(files);
  EXPECT_EQ(recovered(), 18u) << "what a power failure leaves of a batch that nobody was told of";
}

TEST_F(JournalDamage, AJournalOfBeforeTheNoteIsReadAndGetsOne) {
  Files files = closed();
  files.erase(".tail");
  put(files);
  sqlite3* db = nullptr;
  ASSERT_EQ(::sqlite3_open(path_.c_str(), &db), SQLITE_OK);
  ::sqlite3_exec(db, "PRAGMA user_version = 1", nullptr, nullptr, nullptr);
  ::sqlite3_close(db);
  EXPECT_EQ(recovered(), last_);
  EXPECT_TRUE(std::filesystem::exists(path_ + ".tail"));
  append(*Journal::open(path_).value(), 1, 40);
  std::filesystem::remove(path_ + ".tail");
  EXPECT_FALSE(recovered()) << "it is of this format now";
}

TEST_F(JournalDamage, WhatAFullDiskLeavesInTheLogIsNoDamage) {
  Journal::Options options;
  options.pages_max = 12;
  TempFolder folder(fast_folder());
  const std::string path = folder / "journal.db";
  const auto journal = Journal::open(path, options).value();
  append(*journal, 2, 40);
  for (const std::size_t bytes : {9000u, 3000u, 6000u, 2500u})
    EXPECT_FALSE(journal->append(records_of(last_ + 1, last_ + 60, bytes)));
  append(*journal, 1, 40);
  EXPECT_FALSE(journal->append(records_of(last_ + 1, last_ + 60, 4000)));
  append(*journal, 1, 40);
  EXPECT_TRUE(whole_or_refused(read(path)));
}

TEST_F(JournalDamage, AForeignRollbackLogBesideItIsNotApplied) {
  Files files = closed();
  put(files);
  write_file(path_ + "-journal", "whatever this is");
  EXPECT_FALSE(recovered());
  EXPECT_THAT(refusal_, HasSubstr("journal.db-journal is not takt's"));
  EXPECT_TRUE(read(path_) == files);
}

}  // namespace
}  // namespace takt::store
