#pragma once
// The first blocked job of each pool holds a reservation, so that a large job is never starved by a
// stream of small ones; others may run around it, device by device, where they do not delay it.
#include <optional>
#include <string>

#include "core/schedule/ledger.h"
#include "core/schedule/place.h"

namespace takt::schedule {

// The pool a request draws from: its types, or "any".
std::string pool_of(const JobSpec& spec);

struct Reservation {
  JobId job;
  std::vector<DeviceUuid> devices;
  std::optional<Instant> start;  // when the last of them is expected to be free: an estimate
  std::string unknown;           // why there is no estimate
};

// The devices that are expected to be free first, on the node where that is earliest. None when the
// request needs no GPU or no node could ever hold it.
std::optional<Reservation> reserve_for(JobId job, const Request& request, const Ledger& ledger,
                                       Instant now);

}  // namespace takt::schedule
