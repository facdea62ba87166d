#pragma once
// What a node agent remembers of one life of its own, and the rules by which it obeys: which starts
// come too late, what it answers to a stop for what never arrived, when something that ended counts
// as gone. Pure, so that the fault simulator's agents go by the very rules of the real one.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/control/engine_contract.h"

namespace takt::control {

// A look at the devices. Numbers count up; one that was asked for has at least the number that the
// asker was given.
struct Look {
  std::uint64_t number = 0;
  const Node& node;
};

class AgentBook {
 public:
  // `life` grows from agent to agent of one boot (the time since boot at which it began).
  explicit AgentBook(std::uint64_t life) : life_(life) {}

  // False: the report that this start answers was made before something was forgotten since, or in
  // another life or boot. The attempt may have been here and be over; if it is still wanted, it is
  // sent again. False as well for one that was closed.
  bool obeys(const Start& start, const std::string& boot_id) const;
  // An attempt that never began here and never will: told in every report until it is forgotten.
  void close(AttemptId attempt, std::uint64_t generation, ExitCause cause, std::string why,
             Instant now);
  bool closed(AttemptId attempt) const { return closed_.count(attempt) != 0; }
  void forget(AttemptId attempt);

  // Completes a report of what runs: its number, what was closed, and whether that which ended is
  // proven gone: by a look at the devices that began after its end and shows no process of it; what
  // the driver showed before proves nothing. `request` asks for a look that begins now.
  // `devices`: the GPUs that were granted to an attempt, by uuid.
  void sign(NodeReport& report, const Look& look, const std::function<std::uint64_t()>& request,
            const std::function<std::vector<std::string>(AttemptId)>& devices);

 private:
  struct Proof {
    std::uint64_t look = 0;  // the first one that began after the end
    std::vector<std::string> devices;
  };

  std::uint64_t life_;
  std::uint64_t sequence_ = 0;      // of the last report
  std::uint64_t forgotten_at_ = 0;  // starts that answer an older report are dropped
  std::map<AttemptId, AttemptSeen> closed_;
  std::map<AttemptId, Proof> proofs_;
};

}  // namespace takt::control
