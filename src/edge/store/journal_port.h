#pragma once
// What the server's loop needs of a journal: append facts durably, replay them, keep snapshots.
// Implementations: Journal (SQLite, journal.h), MemoryJournal and FailingJournal (fake_journal.h).
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace takt::store {

// One fact. Sequences count up from 1 without a gap, for the whole life of a journal.
struct Record {
  std::uint64_t sequence = 0;
  int version = 0;   // of the body's encoding, edge/codec knows it
  std::string kind;  // of the fact, e.g. "job_accepted"
  std::string body;  // JSON text made by edge/codec; opaque here
  bool operator==(const Record&) const = default;
};

// The state after the record `sequence`.
struct Snapshot {
  std::uint64_t sequence = 0;
  int version = 0;
  std::string body;
  // Not empty when this is not the newest one because the newest was damaged: a sentence for the
  // log.
  std::string warning;
  bool operator==(const Snapshot&) const = default;
};

class JournalPort {
 public:
  virtual ~JournalPort() = default;

  // All of the batch in one transaction with one sync: on return it is on disk. On an error nothing
  // of it counts and the same batch may be tried again. The first sequence must be last_sequence()
  // + 1 and the rest contiguous: else invalid. unavailable: the disk is full; io: it failed. An
  // empty batch does nothing.
  virtual Result<void> append(const std::vector<Record>& batch) = 0;

  // Calls `each` for the records after the sequence up to the last of now, in order; its error ends
  // the replay and is returned. A record that is damaged or missing (pruned) is an Error, never
  // skipped. Appending goes on meanwhile.
  virtual Result<void> replay(std::uint64_t after_sequence,
                              const std::function<Result<void>(const Record&)>& each) = 0;

  // Keeps it and the one before, deletes older ones. The sequence must be one that was appended
  // (or 0: before the first) and newer than the last snapshot's: else invalid.
  virtual Result<void> save_snapshot(std::uint64_t sequence, int version,
                                     const std::string& body) = 0;
  // The newest undamaged one; nullopt when none was ever saved; an Error when all are damaged.
  virtual Result<std::optional<Snapshot>> latest_snapshot() = 0;
  // The newest undamaged one older than the sequence, when the latest turns out to be of no use.
  virtual Result<std::optional<Snapshot>> snapshot_before(std::uint64_t sequence) = 0;

  // Deletes records up to the sequence, but never one that the older of the two kept snapshots
  // needs to be rolled forward: with fewer than two snapshots nothing is deleted.
  virtual Result<void> prune(std::uint64_t up_to_sequence) = 0;

  // Of the last record that is on disk, 0 for a new journal. Pruning does not change it.
  virtual std::uint64_t last_sequence() const = 0;

  // True after a loss was accepted or a backup restored: jobs and attempts may exist that it does
  // not know, and their numbers must not be given again. Until the first append.
  virtual bool may_have_forgotten() const { return false; }
};

}  // namespace takt::store
