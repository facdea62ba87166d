#pragma once
// The journal on disk: journal.db, SQLite in WAL mode with synchronous=FULL.
//
// Why that mode: a commit appends the batch's pages to the log file (journal.db-wal) and syncs that
// one file once; then the batch is on disk (https://www.sqlite.org/wal.html, "Performance
// Considerations"). A rollback journal would need two or three syncs (journal, database, delete).
// With synchronous=NORMAL WAL would not sync at commit at all. Every ~1000 log pages SQLite folds
// the log into the database, which costs that commit two syncs more. bench/journal_bench.cpp
// measures it against bare fdatasync.
//
// Damage is refused at open and leaves the files as they are. What SQLite would drop without a
// word, the damaged end of its log, is found by tail_note.h and wal_check.h;
// docs/formats/journal.md says which damage is noticed and which cannot be.
//
// One process at a time: a lock file (journal.db.lock) held with flock, and SQLite's exclusive
// locking mode behind it. All methods may be called from several threads; they exclude each other.
#include <memory>
#include <string>

#include "edge/store/journal_port.h"

namespace takt::store {

class Journal final : public JournalPort {
 public:
  struct Options {
    // Refuses to grow beyond so many pages of 4 KiB; 0: only the disk limits. Bounds the file.
    std::uint32_t pages_max = 0;
    // Opens although acknowledged records are missing at the end, or although it cannot be told:
    // somebody has read the sentence and said so.
    bool accept_loss = false;
  };

  // Opens or creates. Errors: conflict (another process has it open; names its pid), invalid
  // (written by a newer takt, not a journal, damaged or truncated: it is left as it is), not_found
  // and forbidden (folder missing, not writable), unavailable (disk full), io.
  static Result<std::unique_ptr<Journal>> open(const std::string& path);
  static Result<std::unique_ptr<Journal>> open(const std::string& path, Options options);
  ~Journal() override;
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  Result<void> append(const std::vector<Record>& batch) override;
  Result<void> replay(std::uint64_t after_sequence,
                      const std::function<Result<void>(const Record&)>& each) override;
  Result<void> save_snapshot(std::uint64_t sequence, int version, const std::string& body) override;
  Result<std::optional<Snapshot>> latest_snapshot() override;
  Result<std::optional<Snapshot>> snapshot_before(std::uint64_t sequence) override;
  Result<void> prune(std::uint64_t up_to_sequence) override;
  std::uint64_t last_sequence() const override;
  bool may_have_forgotten() const override;

  // A consistent copy in a new file (mode 0600, synced) while appending goes on. Opened in place of
  // a journal it says that it may have forgotten. Errors: conflict (the file exists), unavailable,
  // io; nothing is left of it then.
  Result<void> back_up(const std::string& to);

  // Not empty: what is missing and was accepted, or that this is a restored backup. For the log.
  const std::string& opening_note() const;

 private:
  struct Impl;
  explicit Journal(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace takt::store
