#pragma once
// The controller process: the production loop (control::Loop) between a simulated disk, network and
// people. It may die at any moment between two of its steps, and another one recovers.
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/control/loop.h"
#include "core/replay/disk.h"
#include "core/replay/host_clock.h"

namespace takt::replay {

// Where the process may be killed.
enum class Moment {
  before_append,
  after_append,
  before_publish,
  after_publish,
  before_reply,
  after_reply,
  before_send,
  after_send,
  between_turns
};
inline constexpr int kMoments = 9;

// What the world does for the server, and looks at.
class ServerPort {
 public:
  virtual ~ServerPort() = default;
  virtual void synced() = 0;     // facts reached the disk
  virtual void published() = 0;  // what others see has changed
  virtual void answered(std::uint64_t token, const Result<control::Accepted>& answer) = 0;
  virtual void told(const NodeId& node, const std::vector<control::Effect>& effects) = 0;
  virtual void recovered() = 0;
  virtual void passes(Duration time) = 0;  // a slow disk holds the loop up
  virtual void mistake(const std::string& sentence) = 0;
};

class Server final : private control::LoopPort {
 public:
  Server(const Policy& policy, control::EngineInfo engine, Disk& disk, ServerPort& port,
         Random random);

  bool up() const { return loop_ != nullptr; }
  const control::Loop& loop() const { return *loop_; }
  // False: nobody listens, or the connection broke.
  bool ask(std::uint64_t token, control::Command command);
  void hear(control::NodeReport report);

  // Takes what has come in, in batches; or recovers, when it is time for that.
  void advance(Instant truth, HostClock& clock, const std::string& boot_id);
  // The process ends now. Another one begins after `pause`.
  void die(Instant truth, Duration pause);
  // The process ends when it next comes to this.
  void die_at(Moment moment, Duration pause);
  void heal(Instant truth);
  std::uint64_t lives() const { return lives_; }

 private:
  Result<void> append(const std::vector<control::Fact>& facts) override;
  void publish(const std::function<void()>& change) override;
  void reply(std::uint64_t token, Result<control::Accepted> answer) override;
  void send(const NodeId& node, const std::vector<control::Effect>& effects) override;
  void note(const std::string& sentence) override;

  void recover(Instant truth, HostClock& clock);
  void take_turn(Instant truth, HostClock& clock, const std::string& boot_id);
  void archive(Instant now, Instant truth);
  // True: the process is dead from here on, and what it still calls does nothing.
  bool dies(Moment moment);

  const Policy& policy_;
  control::EngineInfo engine_;
  Disk& disk_;
  ServerPort& port_;
  Random random_;
  std::unique_ptr<control::Loop> loop_;
  std::deque<control::Input> inputs_;
  bool dead_ = false;  // within a turn
  std::optional<Moment> dies_at_;
  Duration pause_;
  std::optional<Instant> away_;  // until then, truth
  Instant last_turn_;
  Instant last_archive_;
  std::uint64_t lives_ = 0;
};

}  // namespace takt::replay
