#pragma once
// A node agent: the production rules (control::AgentBook) on a simulated machine.
#include <optional>
#include <string>

#include "core/control/agent_book.h"
#include "core/replay/engine.h"

namespace takt::replay {

class NodeAgent final : public Engine {
 public:
  // `lease`: see EngineInfo.
  NodeAgent(Node node, std::uint64_t seed, Instant truth, Witness& witness,
            std::optional<Duration> lease);

  Machine& machine() override { return machine_; }
  void advance(Instant truth, Network& network) override;
  void die(Instant truth, Duration pause) override;
  void heal(Instant truth) override;

 private:
  void begin(Instant truth);
  void carry_out(const control::Start& start, Instant truth);
  void carry_out(const control::Stop& stop, Instant truth);
  void carry_out(const control::Forget& forget, Instant truth);
  void carry_out(const control::Renew& renew, Instant truth);
  bool look(Instant truth);
  void report(Instant truth, Network& network);

  Machine machine_;
  std::optional<Duration> lease_;
  std::string boot_id_;          // of the machine when this agent began
  std::optional<Instant> away_;  // until then
  std::optional<control::AgentBook> book_;
  std::uint64_t looks_ = 0;
  bool look_asked_ = false;
  Instant next_look_;
  Node seen_;  // at the last look
  Instant seen_at_;
  // When this life's reports were made, by the time since boot: leases count from there.
  std::map<std::uint64_t, Duration> made_;
  std::uint64_t life_ = 0;
};

}  // namespace takt::replay
