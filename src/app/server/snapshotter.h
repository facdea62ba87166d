#pragma once
// Snapshots of the state, made beside the loop: from what is on disk, not from what is in memory.
// The state that the last snapshot and the records after it fold to must have the fingerprint that
// the loop noted at that record; only then it is kept and older records may go. So a fault of the
// memory, of the disk or of `fold` is found while the records that could mend it are still there.
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/control/state.h"
#include "edge/store/journal_port.h"

namespace takt::server {

class Snapshotter {
 public:
  struct Options {
    Duration fair_share_half_life;
    // A snapshot is due after so many facts, or as many as the last one held: a state of 100,000
    // jobs is not written anew for every 10,000 facts.
    std::size_t facts_min = 10'000;
    std::function<void(const std::string&)> note;
  };
  Snapshotter(store::JournalPort& journal, Options options);
  ~Snapshotter();
  Snapshotter(const Snapshotter&) = delete;
  Snapshotter& operator=(const Snapshotter&) = delete;

  // What the newest snapshot that fits its fingerprint and the records after it fold to. Errors:
  // a damaged or missing record, or one of a newer takt.
  Result<control::State> recover();

  void start();
  // Ends the thread and keeps a last one if there is something new.
  void stop();
  // From the loop, after each batch that is on disk.
  void appended(std::uint64_t sequence, std::size_t facts, std::uint64_t fingerprint);

  // Makes the snapshot at the last batch now, and waits for it. For tests and for `stop`.
  void keep();
  // A sentence when the last snapshot did not fit what the loop noted; else empty.
  std::string problem() const;

 private:
  struct Mark {
    std::uint64_t sequence = 0;
    std::uint64_t fingerprint = 0;
  };
  struct Folded {
    control::State state;
    std::uint64_t after = 0;  // of the snapshot it began with
    std::size_t lines = 0;    // of that snapshot
  };
  Result<Folded> fold_up_to(std::uint64_t sequence);
  Result<bool> fold_snapshot(const store::Snapshot& snapshot, Folded& to);
  void keep(const Mark& mark);
  void say(const std::string& problem);
  void run();

  store::JournalPort& journal_;
  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Mark mark_;
  std::uint64_t kept_ = 0;      // sequence of the last snapshot
  std::size_t last_lines_ = 0;  // of the last snapshot
  std::size_t since_ = 0;       // facts
  bool wanted_ = false;
  bool stopping_ = false;
  std::string problem_;
  std::thread thread_;
};

}  // namespace takt::server
