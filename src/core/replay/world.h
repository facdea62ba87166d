#pragma once
// Everything that is simulated, and the order in which its parts act. One step is a moment of up to
// some seconds: something goes wrong, people ask, machines work, messages arrive, the controller
// takes its turns, checkers look.
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/replay/checker.h"
#include "core/replay/disk.h"
#include "core/replay/engine.h"
#include "core/replay/network.h"
#include "core/replay/scenario.h"
#include "core/replay/server.h"
#include "core/replay/users.h"

namespace takt::replay {

struct Violation {
  std::string checker;
  std::string sentence;
  int step = 0;
};

// Something that acts on the world in each step: a workload, a fault.
struct Actor {
  std::string name;
  void (*act)(World&, Random&) = nullptr;
  Random random;
};

class World final : private Witness, private ServerPort {
 public:
  World(Scenario scenario, FactText text);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // One moment with faults and people.
  void step();
  // One moment in which everything works again and nobody asks for anything new.
  void calm_step();
  bool all_over() const;
  // After the calm: what must hold at the end.
  void finish();

  const Scenario scenario;
  Policy policy;
  control::EngineInfo engine_info;
  Instant now;  // the true time
  Disk disk;
  Network network;
  Server server;
  Users users;
  std::vector<std::unique_ptr<Engine>> engines;
  HostClock head_clock;              // of the controller's host, unless that is the only node's
  std::deque<Execution> executions;  // of all time, in the order in which they began
  std::optional<Violation> violation;
  std::function<void(Duration, const std::vector<control::Fact>&)> trace;  // may be empty
  int steps = 0;
  std::optional<Instant> calm_since;
  std::uint64_t launches = 0;
  std::uint64_t crashes = 0;
  // Of everything that was synced and began: equal runs have equal ones.
  std::uint64_t print() const { return print_; }

  void fail(const char* checker, const std::string& sentence);
  const Execution* execution(AttemptId attempt) const;  // the last one
  HostClock& server_clock();
  bool local() const { return scenario.engine == EngineKind::local; }
  void kill_server(Duration pause);
  void kill_engine(Engine& engine, Duration pause);
  void crash_host(Engine& engine, Duration down);

 private:
  Execution* began(Execution execution) override;
  void told_to_stop(const Execution& execution) override;
  void synced() override;
  void published() override;
  void answered(std::uint64_t token, const Result<control::Accepted>& answer) override;
  void told(const NodeId& node, const std::vector<control::Effect>& effects) override;
  void recovered() override;
  void passes(Duration time) override;
  void mistake(const std::string& sentence) override;
  void work();
  void become_calm();

  std::vector<std::unique_ptr<Checker>> checkers_;
  std::vector<Actor> workloads_;
  std::vector<Actor> faults_;
  Random random_;
  std::map<AttemptId, const Execution*> last_;
  std::uint64_t print_ = 0;
  int gpus_max_ = 0;  // whole ones of one node
};

}  // namespace takt::replay
