#pragma once
// A controller on a journal in memory, with an engine that only records what it is told.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "app/server/controller.h"
#include "edge/codec/journal_json.h"
#include "edge/codec/snapshot_text.h"
#include "edge/store/fake_journal.h"
#include "support/cluster_builder.h"

namespace takt::server {

using namespace takt::testing;

inline bool eventually(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

// What the journal's records fold to.
inline control::State replayed(const store::MemoryJournal& journal) {
  control::State state;
  for (const store::Record& record : journal.records) {
    auto fact = codec::decode_fact({record.kind, record.version, record.body});
    EXPECT_TRUE(fact) << fact.error().message;
    if (fact) fold(state, *fact, Policy{}.fair_share_half_life);
  }
  return state;
}
inline std::string text_of(const control::State& state) {
  return codec::snapshot_of(control::facts_of(state));
}

// Lets appends through only while it is open.
class GateJournal final : public store::JournalPort {
 public:
  explicit GateJournal(store::JournalPort& below) : below_(below) {}
  void close() {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }
  void open() {
    {
      const std::lock_guard lock(mutex_);
      open_ = true;
    }
    changed_.notify_all();
  }
  bool somebody_waits() const { return waiting_ > 0; }

  Result<void> append(const std::vector<store::Record>& batch) override {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.wait(lock, [&] { return open_; });
    --waiting_;
    return below_.append(batch);
  }
  Result<void> replay(std::uint64_t after,
                      const std::function<Result<void>(const store::Record&)>& each) override {
    return below_.replay(after, each);
  }
  Result<void> save_snapshot(std::uint64_t sequence, int version,
                             const std::string& body) override {
    return below_.save_snapshot(sequence, version, body);
  }
  Result<std::optional<store::Snapshot>> latest_snapshot() override {
    return below_.latest_snapshot();
  }
  Result<std::optional<store::Snapshot>> snapshot_before(std::uint64_t sequence) override {
    return below_.snapshot_before(sequence);
  }
  Result<void> prune(std::uint64_t up_to) override { return below_.prune(up_to); }
  std::uint64_t last_sequence() const override { return below_.last_sequence(); }

 private:
  store::JournalPort& below_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  std::atomic<int> waiting_{0};
};

// One life of a controller. Several may follow each other on one journal.
class Life {
 public:
  explicit Life(store::JournalPort& journal, std::size_t snapshot_every = 1'000'000,
                const std::string& logs = "/nowhere", const Policy& policy = Policy{}) {
    Measurements::Options measuring;
    measuring.note = [this](const std::string& s) { note(s); };
    measurements = std::make_unique<Measurements>(nullptr, measuring);
    ControllerOptions options;
    options.policy = policy;
    options.places = {logs, "/run/takt.sock"};
    options.clock = [this] { return Instant{clock_us}; };
    options.note = [this](const std::string& s) { note(s); };
    options.snapshot_every = snapshot_every;
    controller = std::make_unique<Controller>(journal, *measurements, std::move(options));
  }
  ~Life() { controller->stop(); }

  void begin() {
    const auto ok = controller->recover();
    ASSERT_TRUE(ok) << ok.error().message;
    controller->start([this](const std::vector<control::Effect>& effects) {
      if (on_effects) on_effects(effects);
      const std::lock_guard lock(mutex_);
      effects_.insert(effects_.end(), effects.begin(), effects.end());
    });
  }
  // The node tells what it has, and the loop has taken it in.
  void hear(const Node& node, std::vector<control::AttemptSeen> attempts = {}) {
    const Instant when{++clock_us};
    controller->report(report_of(node, when, std::move(attempts)));
    ASSERT_TRUE(controller->wait(
        [&](const control::Sight& sight) {
          const auto it = sight.cluster.nodes.find(node.id);
          return it != sight.cluster.nodes.end() && it->second.report.at >= when;
        },
        seconds(20), {}));
  }
  Result<JobId> submit(const JobSpec& spec, const control::Identity& who = alice()) {
    auto accepted = controller->submit({spec, who, Tier::batch, ""});
    if (!accepted) return tl::make_unexpected(accepted.error());
    return accepted->jobs.front();
  }
  control::State published() const {
    control::State state;
    controller->read([&](const control::Sight& sight) { state = sight.state; });
    return state;
  }
  control::JobState state_of(JobId id) const { return published().jobs.at(id).state(); }
  std::vector<control::Effect> effects() {
    const std::lock_guard lock(mutex_);
    return effects_;
  }
  std::vector<std::string> notes() {
    const std::lock_guard lock(mutex_);
    return notes_;
  }

  std::atomic<std::int64_t> clock_us{t0.us};
  std::function<void(const std::vector<control::Effect>&)> on_effects;
  std::unique_ptr<Measurements> measurements;
  std::unique_ptr<Controller> controller;

 private:
  void note(const std::string& sentence) {
    const std::lock_guard lock(mutex_);
    notes_.push_back(sentence);
  }
  std::mutex mutex_;
  std::vector<control::Effect> effects_;
  std::vector<std::string> notes_;
};

}  // namespace takt::server
