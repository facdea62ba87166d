#pragma once
// The live loop: one thread that turns commands and reports into facts, decides, journals, and only
// then acknowledges, publishes and acts. Everything else reads what was published.
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
#include <variant>
#include <vector>

#include "app/report/wait_log.h"
#include "app/server/measurements.h"
#include "app/server/snapshotter.h"
#include "core/control/handle.h"
#include "core/control/reconcile.h"
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

class Controller {
 public:
  // `measurements` may be null (telemetry could not be opened): jobs do not depend on it.
  Controller(store::JournalPort& journal, Measurements& measurements, ControllerOptions options);
  ~Controller();
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
  using What = control::Command;
  struct Command {
    What what;
    std::promise<Result<control::Accepted>> reply;
  };
  using Input = std::variant<std::unique_ptr<Command>, control::NodeReport>;
  // What the batch at hand came to; released when it is on disk.
  struct Batch {
    std::vector<control::Fact> facts;
    std::vector<std::pair<std::unique_ptr<Command>, Result<control::Accepted>>> replies;
    std::vector<control::NodeReport> reports;
    std::shared_ptr<const schedule::Plan> plan;  // set when a pass was made
  };

  Result<control::Accepted> call(What what);
  void post(Input input);
  void run();
  std::vector<Input> next_inputs();
  void handle_input(Input input, Batch& batch);
  void handle_command(std::unique_ptr<Command> command, Batch& batch);
  void apply(std::vector<control::Fact> facts, Batch& batch);
  void look_at_clock(Batch& batch);
  void pass(Batch& batch);
  bool pass_needed(Instant now) const;
  Result<void> journal(const Batch& batch);
  Result<void> skip_forgotten_numbers();
  void roll_back(Batch& batch, const Error& error);
  void publish(Batch& batch);
  void release(Batch& batch);
  void act(const Batch& batch);
  void log_waits();

  store::JournalPort& journal_;
  Measurements& measurements_;
  ControllerOptions options_;
  SendEffects send_;

  // Only the loop's thread touches these.
  control::State state_;  // ahead of the journal while a batch is handled
  control::Cluster cluster_;
  std::uint64_t planned_version_ = 0;
  std::optional<Instant> next_retry_;

  // What is on disk, and what readers see.
  mutable std::shared_mutex published_mutex_;
  mutable std::condition_variable_any published_changed_;
  control::State published_;
  control::Cluster published_cluster_;
  std::shared_ptr<const schedule::Plan> plan_ = std::make_shared<schedule::Plan>();
  std::string problem_;
  std::uint64_t published_sequence_ = 0;

  mutable std::mutex waits_mutex_;
  report::WaitLog waits_;
  Instant waits_logged_;

  std::mutex inputs_mutex_;
  std::condition_variable inputs_changed_;
  std::deque<Input> inputs_;
  bool stopping_ = false;

  Snapshotter snapshotter_;

  std::thread loop_;
};

}  // namespace takt::server
