// Rule 3: a share of a GPU. Requests reserve their memory at once, so that jobs that start together
// and allocate later cannot overfill a card.
#include <fmt/core.h>

#include <algorithm>

#include "core/schedule/rules.h"

namespace takt::schedule {
namespace {

constexpr const char* kWatchedDomain = "watched";

// Only shares of the same domain may be neighbours, and never a serving job's.
bool joinable(const Request& request, const DeviceState& device) {
  return std::all_of(device.holders.begin(), device.holders.end(), [&](const Holder& h) {
    if (h.reserved) return ends_before(request, h);
    return h.device.kind == DeviceKind::share && h.domain == kWatchedDomain &&
           h.tier != Tier::serving && request.tier != Tier::serving;
  });
}

struct Candidate {
  const DeviceState* device = nullptr;
  Bytes left;
};

Blocker memory_blocker(const Request& request, const NodeState& node) {
  std::string detail;
  for (const DeviceState& d : node.devices) {
    if (!type_fits(request, *d.gpu) || d.closed || d.mig()) continue;
    const bool free_or_shared = joinable(request, d);
    detail += detail.empty() ? "" : "; ";
    if (!d.gpu->memory_total)
      detail += fmt::format("{}'s memory is not known ({})", d.label,
                            to_string(d.gpu->memory_total.error()));
    else if (free_or_shared)
      detail += fmt::format("{} has {} of {} MiB free", d.label, d.memory_left().value >> 20,
                            d.capacity.value >> 20);
    else
      detail += held_by(d);
  }
  return {BlockerKind::memory_short,
          fmt::format("{} MiB on one device", request.spec->gpus.memory->value >> 20),
          detail.empty() ? node.prefix + "no device that may be shared" : detail,
          "wait for one of these jobs, or ask for less memory"};
}

}  // namespace

RuleAnswer share(const Request& request, const NodeState& node) {
  const Bytes want = *request.spec->gpus.memory;
  const int compute = request.spec->gpus.compute_percent.value_or(100);
  Candidate best;
  for (const DeviceState& device : node.devices) {
    if (device.closed || device.mig() || !type_fits(request, *device.gpu)) continue;
    if (!joinable(request, device)) continue;
    const Bytes left = device.memory_left();
    if (left < want) continue;
    if (compute < 100 && device.shared_compute_held() + compute > 100) continue;
    // Already shared before empty, then the tightest fit: whole GPUs stay whole for gangs.
    const auto key = [](const Candidate& c) {
      return std::make_tuple(c.device->shared_memory_held().value == 0, c.left.value,
                             c.device->gpu->index);
    };
    const Candidate candidate{&device, left};
    if (best.device == nullptr || key(candidate) < key(best)) best = candidate;
  }
  RuleAnswer answer;
  if (best.device == nullptr) {
    answer.blockers.push_back(memory_blocker(request, node));
    add_closed(answer.blockers, request, node);
    return answer;
  }
  answer.devices = std::vector<DeviceGrant>{
      {DeviceKind::share, best.device->gpu->uuid, best.device->gpu->uuid, want, compute}};
  answer.domain = kWatchedDomain;
  answer.isolation = Isolation::watched;
  answer.because =
      fmt::format("a share of {} MiB on {}, the tightest fit ({} MiB left there)", want.value >> 20,
                  best.device->label, (best.left - want).value >> 20);
  answer.score = static_cast<int>((best.left - want).value >> 20);
  return answer;
}

}  // namespace takt::schedule
