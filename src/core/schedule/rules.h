#pragma once
// The rules of `place`, one a file, in the order in which they are tried. Each either answers or
// says why it does not apply. PRODUCT: "How takt chooses the device".
#include <optional>
#include <string>
#include <vector>

#include "core/schedule/place.h"

namespace takt::schedule {

// What a rule found on one node.
struct RuleAnswer {
  std::optional<std::vector<DeviceGrant>> devices;  // set: placed
  SharingDomain domain;
  Isolation isolation = Isolation::strict;
  std::string because;            // the sentence for `why`
  std::vector<Blocker> blockers;  // set when not placed, though the rule applies
  std::optional<int> score;       // lower is better, between nodes
};

// Rule 1: `gpus: N` -> N whole GPUs of one model: NVLink together, no throttling, no gap left
// behind.
RuleAnswer whole_gpus(const Request& request, int count, const NodeState& node);
// Has the node, were it empty, that many whole GPUs of one model? Else a gang mixes models.
bool one_model_can(const Request& request, std::size_t count, const NodeState& node);
// Rule 2: a memory request with strict isolation -> the smallest MIG instance that really covers
// it.
RuleAnswer mig_instance(const Request& request, const NodeState& node);
// Does the instance meet the request, were it free?
bool covers(const Request& request, const Gpu& gpu, const MigInstance& instance);
// Rule 3: a memory request that may share -> the best-fitting GPU of the sharing domain.
RuleAnswer share(const Request& request, const NodeState& node);
// Rule 2, last resort of strict: a whole GPU of the fewest bytes that covers it.
RuleAnswer whole_gpu_for_memory(const Request& request, const NodeState& node);

// Does the device's model match the request's types?
bool type_fits(const Request& request, const Gpu& gpu);
// The device is only reserved, and the job is expected to end before it is needed.
bool ends_before(const Request& request, const Holder& holder);
// Free for a whole GPU: nothing on it, or only a reservation that the job ends before.
bool usable_whole(const Request& request, const DeviceState& device);
// A sentence on who is on a device: "gpu1 is held by job 17 (bob, llama-sft)".
std::string held_by(const DeviceState& device);
// Why nothing of the asked kind is there at all.
Blocker no_such_type(const Request& request, const std::vector<const Gpu*>& gpus);
// The blockers of devices that are closed, each once.
void add_closed(std::vector<Blocker>& blockers, const Request& request, const NodeState& node);

}  // namespace takt::schedule
