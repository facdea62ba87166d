#pragma once
// A simulated host: its GPUs, the programs on it, and the records of attempts that shims keep in
// memory-backed files. It outlives agents; a restart of the host ends and empties it. It behaves as
// edge/launch with takt-shim does, bad days included.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/control/engine_contract.h"
#include "core/replay/host_clock.h"
#include "core/replay/program.h"

namespace takt::replay {

// What truly happened to an attempt on a host; all times are true ones. Checkers hold what is told
// against it.
struct Execution {
  AttemptId attempt;
  std::uint64_t generation = 0;
  NodeId node;
  Grant grant;
  Program program;
  Instant began;
  std::optional<Instant> ended;  // its main process
  std::optional<Instant> gone;   // its last process
  std::optional<Instant> told_to_stop;
  bool by_itself = false;  // it ended with its own exit code
  bool by_lease = false;   // the host ended it, since it heard nothing from the controller
};

// Is told what happens on hosts.
class Witness {
 public:
  virtual ~Witness() = default;
  // Returns the place where the execution is kept.
  virtual Execution* began(Execution execution) = 0;
  virtual void told_to_stop(const Execution& execution) = 0;
};

class Machine {
 public:
  Machine(Node node, std::uint64_t seed, Instant truth, Witness& witness);

  const NodeId& id() const { return node_.id; }
  const std::string& boot_id() const { return node_.boot_id; }
  HostClock clock;
  bool up() const { return !down_until_; }
  // Brings everything up to `truth`.
  void advance(Instant truth);

  // ---- what the agent does; see edge/launch/launcher.h
  bool start(const control::LaunchOrder& order, Instant truth);  // false: nothing on record
  void stop(AttemptId attempt, Duration grace, Instant truth);
  bool forget(AttemptId attempt);
  bool knows(AttemptId attempt) const { return records_.count(attempt) != 0; }
  std::vector<std::string> devices(AttemptId attempt) const;
  std::vector<control::AttemptSeen> scan(Instant truth);
  Node look(Instant truth) const;
  // The controller lets it go on until then, by its time since boot; then everything is ended.
  void lease(Duration since_boot);
  bool lease_lapsed(Instant truth) const;

  // ---- what goes wrong
  void crash(Instant truth, Duration down);  // power is gone; nothing outlives it
  void agent_died();                         // shims on their way may never begin
  bool kill_a_shim(Random& random);
  void sicken(std::size_t gpu, GpuHealth health, Instant until, Instant truth);
  void occupy(std::size_t gpu, Instant until);  // a process that takt did not start
  void heat(std::size_t gpu, Instant until);
  void slow_shims(Duration at_most) { shim_delay_max_ = at_most; }
  void no_records(bool full) { records_full_ = full; }
  void heal(Instant truth);
  std::size_t gpus() const { return node_.gpus.size(); }

 private:
  enum class Shim { coming, at_work, killed, done };
  struct Record {
    std::uint64_t generation = 0;
    Grant grant;
    Program program;
    std::int64_t pid = 0;
    Shim shim = Shim::coming;
    Instant begins;      // the shim, truth
    bool never = false;  // it must not begin any more
    Execution* execution = nullptr;
    std::optional<Instant> term;      // truth
    std::optional<Instant> kill_due;  // truth
    std::optional<Instant> killed;    // truth
    std::optional<Instant> child_killed;
    std::optional<Instant> wall_began;
    std::optional<Instant> wall_ended;
    std::optional<ExitStatus> exit;
    bool alive() const { return execution != nullptr && !execution->gone; }
  };
  struct Condition {
    GpuHealth health = GpuHealth::ok;
    Instant sick_until;
    Instant occupied_until;
    Instant hot_until;
  };

  void begin(AttemptId attempt, Record& record, Instant truth);
  void go_on(Record& record, Instant truth);
  void end_main(Record& record, Instant at);
  void end_child(Record& record, Instant truth);
  void conclude(Record& record, ExitCause cause, const std::string& why, Instant truth);
  void enforce_lease(Instant truth);
  Instant truth_of(Duration since_boot, Instant truth) const;

  Node node_;
  std::uint64_t seed_;
  Random random_;
  Witness& witness_;
  std::map<AttemptId, Record> records_;
  std::vector<Condition> conditions_;  // of the GPUs
  // The driver shows processes of these a while longer than the kernel does.
  struct Shown {
    AttemptId attempt;
    Grant grant;
    std::int64_t pid = 0;
    Instant until;
  };
  std::vector<Shown> shown_;
  std::optional<Duration> lease_;
  std::optional<Instant> down_until_;
  std::int64_t next_pid_ = 1000;
  int boots_ = 1;
  Duration shim_delay_max_ = milliseconds(300);
  bool records_full_ = false;
};

}  // namespace takt::replay
