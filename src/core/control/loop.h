#pragma once
// One turn of the live loop: inputs become facts, a pass decides, the facts go to disk, and only
// then commands are answered, views change and engines act. The order is kept here, once: the
// server and the fault simulator drive the same code and differ only in what lies behind LoopPort.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/control/handle.h"
#include "core/control/reconcile.h"
#include "core/control/views.h"
#include "core/schedule/snapshot.h"

namespace takt::control {

// A command with the number under which its answer is awaited.
struct Asked {
  std::uint64_t token = 0;
  Command command;
};
using Input = std::variant<Asked, NodeReport>;

class LoopPort {
 public:
  virtual ~LoopPort() = default;
  // All of them or none, and on disk on return.
  virtual Result<void> append(const std::vector<Fact>& facts) = 0;
  // Calls `change` while nobody reads what is published.
  virtual void publish(const std::function<void()>& change) = 0;
  virtual void reply(std::uint64_t token, Result<Accepted> answer) = 0;
  virtual void send(const NodeId& node, const std::vector<Effect>& effects) = 0;
  virtual void note(const std::string& sentence) = 0;
};

// What is told while facts cannot be put on disk.
std::string cannot_acknowledge(const Error& error);

// What a turn came to, for those who measure and archive.
struct Turn {
  std::vector<Fact> facts;
  std::vector<NodeReport> reports;  // those that told something new
  // Why nothing of it counts: the facts could not be put on disk. A sentence; else empty.
  std::string problem;
};

class Loop {
 public:
  // The policy outlives it.
  Loop(const Policy& policy, Places places, EngineInfo engine);

  // Starts from what the journal folds to. Leases that an earlier controller gave count from `now`.
  void begin(State recovered, Instant now);
  // Facts that come of no input: the identity of a new state, numbers that are skipped.
  Result<void> append(std::vector<Fact> facts, LoopPort& port);
  Turn turn(std::vector<Input> inputs, const std::optional<ClockReading>& clocks, Instant now,
            LoopPort& port);

  // What is on disk, and what was last seen and planned. They change only within LoopPort::publish.
  const State& state() const { return published_; }
  const Cluster& cluster() const { return published_cluster_; }
  const schedule::Plan& plan() const { return *plan_; }
  Sight sight(Instant now) const;

 private:
  struct Batch {
    std::vector<Fact> facts;
    std::vector<std::pair<std::uint64_t, Result<Accepted>>> replies;
    std::vector<NodeReport> reports;
    std::shared_ptr<const schedule::Plan> plan;  // set when a pass was made
  };

  void apply(std::vector<Fact> facts, Batch& batch);
  void look_at_clock(const ClockReading& reading, Batch& batch, LoopPort& port);
  void take(Input input, Instant now, Batch& batch);
  bool pass_needed(Instant now) const;
  void pass(Instant now, Batch& batch, LoopPort& port);
  std::string roll_back(Batch& batch, const Error& error, LoopPort& port);
  void publish(const Batch& batch, LoopPort& port);
  void reply(Batch& batch, LoopPort& port);
  void act(const Batch& batch, Instant now, LoopPort& port);
  void renew_lease(SeenReport& seen, Instant now, std::vector<Effect>& effects) const;

  const Policy& policy_;
  const Places places_;

  State state_;  // ahead of the disk during a turn
  Cluster cluster_;
  std::uint64_t planned_version_ = 0;
  std::optional<Instant> next_retry_;

  State published_;
  Cluster published_cluster_;
  std::shared_ptr<const schedule::Plan> plan_ = std::make_shared<schedule::Plan>();
};

}  // namespace takt::control
