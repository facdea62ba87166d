#pragma once
// The live loop's surroundings: the thread that takes turns (core/control/loop.h has their order),
// the queue of inputs, the journal, and the lock behind which everything else reads what was
// published.
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "app/report/wait_log.h"
#include "app/server/measurements.h"
#include "app/server/snapshotter.h"
#include "core/control/loop.h"
#include "core/control/views.h"
#include "edge/store/journal_port.h"

namespace takt::server {

using Clock = std::function<Instant()>;
using SendEffects = std::function<void(const std::vector<control::Effect>&)>;
using Note = std::function<void(const std::string&)>;

struct ControllerOptions {
  Policy policy;
  control::Places places;
  Clock clock;
  // Both clocks of the host, to notice when one is set. Empty: not looked at.
  std::function<control::ClockReading()> clocks;
  // For a new state folder.
  std::string identity;
  control::EngineInfo engine;
  Note note;
  std::size_t snapshot_every = 10'000;  // facts, at least
};

// What a dry run answers.
struct Trial {
  JobSpec spec;  // resolved
  int count = 1;
  bool would_start = false;
  std::vector<Blocker> waiting_for;
  std::vector<std::string> decision;
  std::vector<std::string> warnings;
};

class Controller final : private control::LoopPort {
 public:
  // `measurements` may be null (telemetry could not be opened): jobs do not depend on it.
  Controller(store::JournalPort& journal, Measurements& measurements, ControllerOptions options);
  ~Controller() override;
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // Folds the newest snapshot and everything after it. Before `start`.
  Result<void> recover();
  void start(SendEffects send);
  // Handles what is queued, then ends the loop and keeps a snapshot. Jobs go on.
  void stop();

  // Commands wait until they are on disk, or refused. From any thread.
  Result<control::Accepted> submit(control::Submit command);
  Result<control::Accepted> cancel(control::Cancel command);
  Result<control::Accepted> cancel(control::CancelAll command);
  Result<control::Accepted> hold(control::HoldJob command);
  Result<control::Accepted> release(control::ReleaseJob command);
  Result<control::Accepted> archive(control::Archive command);
  Result<Trial> try_out(const control::Submit& command);
  void report(control::NodeReport report);

  // Calls `look` with what is published; it must be quick and must not call back.
  void read(const std::function<void(const control::Sight&)>& look) const;
  // Waits until `done` holds of what is published, at most so long. True: it holds.
  bool wait(const std::function<bool(const control::Sight&)>& done, Duration at_most,
            std::stop_token stop) const;
  // What jobs have waited for since this server runs.
  report::WaitLog waits() const;
  // A sentence when nothing can be acknowledged at present, or when the journal does not fold to
  // the state that is worked with; else empty.
  std::string problem() const;
  const Policy& policy() const { return options_.policy; }

 private:
  using Reply = std::promise<Result<control::Accepted>>;

  Result<control::Accepted> call(control::Command command);
  void run();
  std::vector<control::Input> next_inputs();
  Result<void> skip_forgotten_numbers();
  void log_waits();

  // LoopPort, called by the loop's thread.
  Result<void> append(const std::vector<control::Fact>& facts) override;
  void publish(const std::function<void()>& change) override;
  void reply(std::uint64_t token, Result<control::Accepted> answer) override;
  void send(const NodeId& node, const std::vector<control::Effect>& effects) override;
  void note(const std::string& sentence) override;

  store::JournalPort& journal_;
  Measurements& measurements_;
  ControllerOptions options_;
  SendEffects send_;

  // Turns are taken by the loop's thread alone; others read it under the lock.
  control::Loop turns_;
  mutable std::shared_mutex published_mutex_;
  mutable std::condition_variable_any published_changed_;
  std::string problem_;
  std::size_t appended_ = 0;  // facts of the turn at hand that are on disk

  mutable std::mutex waits_mutex_;
  report::WaitLog waits_;
  Instant waits_logged_;

  std::mutex inputs_mutex_;
  std::condition_variable inputs_changed_;
  std::deque<control::Input> inputs_;
  std::unordered_map<std::uint64_t, Reply> awaited_;  // by token; looked up, never walked
  std::uint64_t next_token_ = 1;
  bool stopping_ = false;

  Snapshotter snapshotter_;

  std::thread loop_;
};

}  // namespace takt::server
