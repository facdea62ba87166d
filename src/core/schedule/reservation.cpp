#include "core/schedule/reservation.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/schedule/rules.h"

namespace takt::schedule {
namespace {

// An estimate that is already exceeded says nothing about the end: look again in a minute.
constexpr Duration kOverdue = minutes(1);

struct FreeAt {
  const DeviceState* device = nullptr;
  bool known = true;
  Instant at;
  auto key() const { return std::make_tuple(!known, at.us, device->gpu->index); }
};

FreeAt free_at(const DeviceState& device, Instant now) {
  FreeAt f{&device, true, now};
  for (const Holder& h : device.holders) {
    if (h.ended) continue;
    if (!h.expected_end)
      f.known = false;
    else
      f.at = std::max(f.at, std::max(*h.expected_end, now + kOverdue));
  }
  return f;
}

std::optional<Reservation> on_node(JobId job, const Request& request, const NodeState& node,
                                   std::size_t count, Instant now) {
  std::vector<FreeAt> candidates;
  for (const DeviceState& device : node.devices) {
    if (device.closed || device.mig() || !type_fits(request, *device.gpu)) continue;
    if (request.spec->gpus.memory && device.capacity < *request.spec->gpus.memory) continue;
    // A device that is reserved for another pool's first job is not promised twice.
    if (std::any_of(device.holders.begin(), device.holders.end(),
                    [](const Holder& h) { return h.reserved; }))
      continue;
    candidates.push_back(free_at(device, now));
  }
  if (candidates.size() < count || !node.reachable) return std::nullopt;
  std::sort(candidates.begin(), candidates.end(),
            [](const FreeAt& a, const FreeAt& b) { return a.key() < b.key(); });
  Reservation reservation;
  reservation.job = job;
  Instant last = now;
  for (std::size_t i = 0; i < count; ++i) {
    reservation.devices.push_back(candidates[i].device->gpu->uuid);
    last = std::max(last, candidates[i].at);
    if (!candidates[i].known)
      reservation.unknown = held_by(*candidates[i].device) + ", which has no time limit";
  }
  if (reservation.unknown.empty()) reservation.start = last;
  return reservation;
}

}  // namespace

std::string pool_of(const JobSpec& spec) {
  std::vector<std::string> types = spec.gpus.types;
  std::sort(types.begin(), types.end());
  std::string pool;
  for (const std::string& t : types) pool += t + " ";
  return pool.empty() ? "any" : pool;
}

std::optional<Reservation> reserve_for(JobId job, const Request& request, const Ledger& ledger,
                                       Instant now) {
  const GpuRequest& gpus = request.spec->gpus;
  if (!gpus.count && !gpus.memory) return std::nullopt;
  const auto count = static_cast<std::size_t>(gpus.count.value_or(1));
  if (count == 0) return std::nullopt;
  std::optional<Reservation> best;
  for (const NodeState& node : ledger.nodes()) {
    auto r = on_node(job, request, node, count, now);
    if (!r) continue;
    if (!best || (r->start && (!best->start || *r->start < *best->start))) best = std::move(r);
  }
  return best;
}

}  // namespace takt::schedule
