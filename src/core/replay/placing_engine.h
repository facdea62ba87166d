#pragma once
// A cluster that places by itself, of Slurm's kind: it queues what it is handed, shows it late,
// chooses the devices, ends what is cancelled, knows nothing of being asked to forget, and forgets
// what has ended after a while. Its controller may be away; what it knows outlives that.
#include <map>
#include <optional>

#include "core/replay/engine.h"

namespace takt::replay {

class PlacingEngine final : public Engine {
 public:
  // Ended jobs are forgotten so long after their end (Slurm: MinJobAge).
  // The half of it is more than a hand-over stays valid (one minute) and messages are late (two).
  static constexpr Duration kRemembers = minutes(8);

  PlacingEngine(Node node, std::uint64_t seed, Instant truth, Witness& witness);

  Machine& machine() override { return machine_; }
  void advance(Instant truth, Network& network) override;
  void die(Instant truth, Duration pause) override;
  void heal(Instant truth) override;

 private:
  struct Entry {
    control::LaunchOrder order;
    Instant shows;  // in lists from then on
    bool placed = false;
    control::AttemptSeen seen;
    std::optional<Instant> ended;  // truth
  };
  void begin(Instant truth);
  void carry_out(const control::Start& start, Instant truth);
  void carry_out(const control::Stop& stop, Instant truth);
  void carry_out(const control::Forget&, Instant) {}
  void carry_out(const control::Renew&, Instant) {}
  void place_some(Instant truth);
  std::optional<Grant> room_for(const Entry& entry, const Node& node) const;
  void follow(Instant truth);
  void never_runs(Entry& entry, const std::string& why, Instant truth);
  void report(Instant truth, Network& network);

  Machine machine_;
  Random random_;
  std::map<AttemptId, Entry> entries_;
  std::optional<Instant> away_;
  Instant next_placing_;
  Instant next_report_;
  std::uint64_t life_ = 0;
  std::uint64_t sequence_ = 0;
  std::map<std::uint64_t, Instant> made_;  // this life's reports, truth
};

}  // namespace takt::replay
