#pragma once
// Chooses devices for one request on one ledger. Outcomes have names: `placed`, `unavailable`
// (later), `infeasible` (never on these machines). The ordered rule list is in place.cpp; each rule
// is a file.
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/model/policy.h"
#include "core/schedule/ledger.h"

namespace takt::schedule {

struct Placed {
  Grant grant;
  std::vector<std::string> decision;
};
struct Unavailable {
  std::vector<Blocker> blockers;
  std::vector<std::string> decision;
};
struct Infeasible {
  std::vector<Blocker> blockers;
  std::vector<std::string> decision;
};
using Verdict = std::variant<Placed, Unavailable, Infeasible>;

// What the placer needs to know of a job beside its request.
struct Request {
  const JobSpec* spec = nullptr;
  std::string user;
  Tier tier = Tier::experimental;
  Isolation isolation = Isolation::strict;
  // When the job would end by its estimate: it may use a device that is reserved from later on.
  std::optional<Instant> would_end;
};

Verdict place(const Request& request, const Ledger& ledger, const Policy& policy);

// "12.0 GiB".
std::string gib(Bytes bytes);
// CPUs that the job takes: what it asks, and at least one where it asks for no GPU.
int cpus_needed(const JobSpec& spec);
// Does it ask for GPUs or parts of them at all?
bool wants_gpu(const JobSpec& spec);

// What the request comes to in people's words: "2 GPUs (h100)", "12.0 GiB on one device", "no GPU".
std::string describe_request(const JobSpec& spec);

// Can the machines ever meet it, were they all empty? For `submit`. No value: yes.
std::optional<Blocker> never_fits(const Request& request, const std::vector<SeenNode>& nodes,
                                  const Policy& policy);

}  // namespace takt::schedule
