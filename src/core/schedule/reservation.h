#pragma once
// The first blocked job of each pool holds a reservation, so that a large job is never starved by a
// stream of small ones; others may run around it, device by device, where they do not delay it.
#include <optional>
#include <string>
#include <vector>

#include "core/schedule/ledger.h"
#include "core/schedule/place.h"

namespace takt::schedule {

// The pool a request draws from: its types, "any", or "cpus" when it asks for no GPU.
std::string pool_of(const JobSpec& spec);

struct Reservation {
  JobId job;
  NodeId node;
  std::vector<Kept> devices;
  int cpus = 0;
  Bytes memory;
  std::optional<Instant> start;  // when the last of it is expected to be free: an estimate
  std::string unknown;  // why there is no estimate. Then nothing is kept: somebody holds what it
                        // needs for ever, and devices would idle as long.
};

// The devices, CPUs and memory that are expected to be free first, on the node where that is
// earliest. None when no node could ever hold the request.
std::optional<Reservation> reserve_for(JobId job, const Request& request, const Ledger& ledger,
                                       Instant now);

}  // namespace takt::schedule
