#pragma once
// The controller's disk: the journal, its snapshots and the archive. What a sync acknowledged
// stays; what one refused may turn up after a crash, or not.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/base/result.h"
#include "core/control/state.h"

namespace takt::replay {

// Facts as the journal writes them. The simulator's core does not know the codec: who runs it hands
// in the real one.
struct FactText {
  std::function<std::string(const std::vector<control::Fact>&)> write;
  std::function<Result<std::vector<control::Fact>>(const std::string&)> read;
};

class Disk {
 public:
  Disk(FactText text, Duration fair_share_half_life, Random random);

  // ---- how it is today
  bool full = false;
  int failing_percent = 0;  // of syncs
  Duration slow_max;        // of one sync

  // All or none. On failure they may be on disk nevertheless, and nobody knows.
  Result<void> append(const std::vector<control::Fact>& facts);
  // The power goes, or the process: what a failed sync left behind is there afterwards, or is not.
  void crash();
  Duration last_sync() const { return last_sync_; }

  // Folds what is on disk: the newest snapshot and everything after it, both read from text.
  Result<control::State> recover() const;
  // The same from the first fact on.
  Result<control::State> replay() const;
  // Writes down `facts`, which fold to the state at the end of the journal.
  void keep_snapshot(const std::vector<control::Fact>& facts);
  std::size_t since_snapshot() const { return journal_.size() - snapshot_at_; }
  std::size_t size() const { return journal_.size(); }

  // What has been acknowledged as synced, folded beside the controller by nobody but the disk.
  const control::State& synced() const { return synced_; }
  std::string text(const control::State& state) const { return text_.write(facts_of(state)); }
  // Facts that were synced since the last call.
  std::vector<control::Fact> news();

  std::map<JobId, control::Finished> archive;

 private:
  Result<void> fold_text(control::State& state, const std::string& text) const;
  void keep(const std::vector<control::Fact>& facts);

  FactText text_;
  Duration half_life_;
  Random random_;
  std::vector<control::Fact> journal_;
  std::vector<control::Fact> unsure_;  // of the last failed sync
  std::string snapshot_;
  std::size_t snapshot_at_ = 0;
  control::State synced_;
  std::vector<control::Fact> news_;
  Duration last_sync_;
};

}  // namespace takt::replay
