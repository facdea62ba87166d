#pragma once
// For tests and benchmarks: a journal in memory that records its calls, a wrapper that fails on the
// n-th call, and one whose syncs take their time. The first is held to the same contract test as
// the real one.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "edge/store/journal_port.h"

namespace takt::store {

class MemoryJournal final : public JournalPort {
 public:
  Result<void> append(const std::vector<Record>& batch) override {
    const std::lock_guard lock(mutex_);
    std::uint64_t next = last_sequence_;
    for (const Record& record : batch) {
      if (record.sequence != ++next) {
        return fail(ErrorKind::invalid, "record " + std::to_string(record.sequence) +
                                            " does not follow " + std::to_string(next - 1));
      }
    }
    if (batch.empty()) return {};
    records.insert(records.end(), batch.begin(), batch.end());
    batches.push_back(batch.size());
    last_sequence_ = next;
    forgot = false;
    return {};
  }

  Result<void> replay(std::uint64_t after_sequence,
                      const std::function<Result<void>(const Record&)>& each) override {
    std::vector<Record> all;
    std::uint64_t last = 0;
    {
      const std::lock_guard lock(mutex_);
      all = records;
      last = last_sequence_;
    }
    std::uint64_t expected = after_sequence + 1;
    for (const Record& record : all) {
      if (record.sequence <= after_sequence) continue;
      if (record.sequence != expected) break;
      ++expected;
      if (auto done = each(record); !done) return done;
    }
    if (expected <= last) {
      return fail(ErrorKind::invalid, "record " + std::to_string(expected) + " is missing");
    }
    return {};
  }

  Result<void> save_snapshot(std::uint64_t sequence, int version,
                             const std::string& body) override {
    const std::lock_guard lock(mutex_);
    if (sequence > last_sequence_ ||
        (!snapshots.empty() && snapshots.back().sequence >= sequence)) {
      return fail(ErrorKind::invalid, "no snapshot can be kept at " + std::to_string(sequence));
    }
    snapshots.push_back(Snapshot{sequence, version, body, {}});
    ++snapshots_saved;
    if (snapshots.size() > 2) snapshots.erase(snapshots.begin());
    return {};
  }

  Result<std::optional<Snapshot>> latest_snapshot() override {
    const std::lock_guard lock(mutex_);
    if (snapshots.empty()) return std::optional<Snapshot>();
    return std::optional<Snapshot>(snapshots.back());
  }

  Result<std::optional<Snapshot>> snapshot_before(std::uint64_t sequence) override {
    const std::lock_guard lock(mutex_);
    for (auto it = snapshots.rbegin(); it != snapshots.rend(); ++it)
      if (it->sequence < sequence) return std::optional<Snapshot>(*it);
    return std::optional<Snapshot>();
  }

  Result<void> prune(std::uint64_t up_to_sequence) override {
    const std::lock_guard lock(mutex_);
    if (snapshots.size() < 2) return {};
    const std::uint64_t last = std::min(up_to_sequence, snapshots.front().sequence);
    std::erase_if(records, [last](const Record& record) { return record.sequence <= last; });
    return {};
  }

  std::uint64_t last_sequence() const override {
    const std::lock_guard lock(mutex_);
    return last_sequence_;
  }
  bool may_have_forgotten() const override { return forgot; }

  bool forgot = false;  // as after an accepted loss

  // What happened, for tests to look at while nobody calls.
  std::vector<Record> records;       // not pruned
  std::vector<std::size_t> batches;  // sizes, in the order they were appended
  std::vector<Snapshot> snapshots;   // oldest first, at most two
  std::size_t snapshots_saved = 0;   // in all

 private:
  mutable std::mutex mutex_;
  std::uint64_t last_sequence_ = 0;
};

// Passes calls on to another journal and fails chosen ones without touching it. Calls of append,
// replay, save_snapshot, latest_snapshot, snapshot_before and prune are counted together, from 1.
class FailingJournal final : public JournalPort {
 public:
  explicit FailingJournal(JournalPort& below) : below_(below) {}

  // Calls `first` to `first + count - 1` from now on fail with the error.
  void fail_calls(std::uint64_t first, std::uint64_t count, Error error) {
    first_ = calls_ + first;
    end_ = first_ + count;
    error_ = std::move(error);
  }
  std::uint64_t calls() const { return calls_; }

  Result<void> append(const std::vector<Record>& batch) override {
    if (fails_now()) return tl::make_unexpected(error_);
    return below_.append(batch);
  }
  Result<void> replay(std::uint64_t after_sequence,
                      const std::function<Result<void>(const Record&)>& each) override {
    if (fails_now()) return tl::make_unexpected(error_);
    return below_.replay(after_sequence, each);
  }
  Result<void> save_snapshot(std::uint64_t sequence, int version,
                             const std::string& body) override {
    if (fails_now()) return tl::make_unexpected(error_);
    return below_.save_snapshot(sequence, version, body);
  }
  Result<std::optional<Snapshot>> latest_snapshot() override {
    if (fails_now()) return tl::make_unexpected(error_);
    return below_.latest_snapshot();
  }
  Result<std::optional<Snapshot>> snapshot_before(std::uint64_t sequence) override {
    if (fails_now()) return tl::make_unexpected(error_);
    return below_.snapshot_before(sequence);
  }
  Result<void> prune(std::uint64_t up_to_sequence) override {
    if (fails_now()) return tl::make_unexpected(error_);
    return below_.prune(up_to_sequence);
  }
  std::uint64_t last_sequence() const override { return below_.last_sequence(); }
  bool may_have_forgotten() const override { return below_.may_have_forgotten(); }

 private:
  bool fails_now() {
    ++calls_;
    return calls_ >= first_ && calls_ < end_;
  }

  JournalPort& below_;
  std::uint64_t calls_ = 0;
  std::uint64_t first_ = 0;
  std::uint64_t end_ = 0;
  Error error_;
};

// Passes calls on and takes its time over each sync, like a busy disk. One sync at a time.
class SlowJournal final : public JournalPort {
 public:
  SlowJournal(JournalPort& below, std::chrono::microseconds sync_time)
      : below_(below), sync_time_(sync_time) {}

  // The next appends take their time and then fail, as when the device gives the write up.
  void fail_appends(int count, Error error) {
    error_ = std::move(error);
    failures_ = count;
  }
  int syncs() const { return syncs_; }

  Result<void> append(const std::vector<Record>& batch) override {
    if (!batch.empty()) sync();
    if (failures_ > 0) {
      --failures_;
      return tl::make_unexpected(error_);
    }
    return below_.append(batch);
  }
  Result<void> replay(std::uint64_t after_sequence,
                      const std::function<Result<void>(const Record&)>& each) override {
    return below_.replay(after_sequence, each);
  }
  Result<void> save_snapshot(std::uint64_t sequence, int version,
                             const std::string& body) override {
    sync();
    return below_.save_snapshot(sequence, version, body);
  }
  Result<std::optional<Snapshot>> latest_snapshot() override { return below_.latest_snapshot(); }
  Result<std::optional<Snapshot>> snapshot_before(std::uint64_t sequence) override {
    return below_.snapshot_before(sequence);
  }
  Result<void> prune(std::uint64_t up_to_sequence) override {
    sync();
    return below_.prune(up_to_sequence);
  }
  std::uint64_t last_sequence() const override { return below_.last_sequence(); }
  bool may_have_forgotten() const override { return below_.may_have_forgotten(); }

 private:
  void sync() {
    ++syncs_;
    std::this_thread::sleep_for(sync_time_);
  }

  JournalPort& below_;
  const std::chrono::microseconds sync_time_;
  std::atomic<int> syncs_{0};
  std::atomic<int> failures_{0};
  Error error_;
};

}  // namespace takt::store
