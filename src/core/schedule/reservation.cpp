#include "core/schedule/reservation.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/schedule/links.h"
#include "core/schedule/rules.h"

namespace takt::schedule {
namespace {

// An estimate that is already exceeded says nothing about the end: look again in a minute.
constexpr Duration kOverdue = minutes(1);

// When something is expected to be free. `unknown` is a sentence when nobody can tell.
struct FreeAt {
  Instant at;
  std::string unknown;
  auto key() const { return std::make_tuple(!unknown.empty(), at.us); }
};

// A device that would do, once it is free.
struct Slot {
  const DeviceState* device = nullptr;
  Kept kept;
  std::int64_t memory = 0;  // of the device: among equals the smallest is kept
  FreeAt free;
  auto key() const {
    return std::make_tuple(free.key(), memory, device->gpu->index, kept.uuid.value);
  }
};

bool concerns(const Holder& h, const Kept& kept) {
  return h.device.kind != DeviceKind::mig_instance || kept.kind == DeviceKind::whole_gpu ||
         h.device.uuid == kept.uuid;
}

FreeAt free_at(const DeviceState& device, const Kept& kept, Instant now) {
  FreeAt f{now, ""};
  for (const Holder& h : device.holders) {
    if (h.ended || !concerns(h, kept)) continue;
    if (!h.expected_end)
      f.unknown = held_by(device) + ", which has no time limit";
    else
      f.at = std::max(f.at, std::max(*h.expected_end, now + kOverdue));
  }
  return f;
}

// A device that is reserved for another pool's first job is not promised twice.
bool promised(const DeviceState& device, const Kept& kept) {
  return std::any_of(device.holders.begin(), device.holders.end(),
                     [&](const Holder& h) { return h.reserved && concerns(h, kept); });
}

bool large_enough(const Request& request, const DeviceState& device) {
  const GpuRequest& gpus = request.spec->gpus;
  if (!gpus.memory) return true;
  if (device.capacity < *gpus.memory) return false;
  // What others than jobs hold does not go away with them.
  return gpus.count || request.isolation == Isolation::strict || !device.empty() ||
         device.memory_left() >= *gpus.memory;
}

std::vector<Slot> slots_of(const Request& request, const NodeState& node, Instant now) {
  std::vector<Slot> slots;
  const auto add = [&](const DeviceState& device, Kept kept, Bytes memory) {
    if (promised(device, kept)) return;
    const FreeAt free = free_at(device, kept, now);
    slots.push_back({&device, std::move(kept), memory.value, free});
  };
  for (const DeviceState& device : node.devices) {
    if (device.closed || !type_fits(request, *device.gpu)) continue;
    const DeviceUuid& gpu = device.gpu->uuid;
    if (!device.mig()) {
      if (large_enough(request, device))
        add(device, {gpu, gpu, DeviceKind::whole_gpu}, device.capacity);
      continue;
    }
    if (request.spec->gpus.count) continue;
    for (const MigInstance& instance : device.gpu->mig.instances)
      if (covers(request, *device.gpu, instance))
        add(device, {gpu, instance.uuid, DeviceKind::mig_instance}, *instance.memory_total);
  }
  std::sort(slots.begin(), slots.end(),
            [](const Slot& a, const Slot& b) { return a.key() < b.key(); });
  return slots;
}

// The first `count` slots of one model (where the node has so many), connected where that is asked.
std::vector<Slot> choose(const Request& request, const NodeState& node, std::size_t count,
                         std::vector<Slot> slots) {
  if (!request.spec->gpus.count) {
    if (slots.size() > 1) slots.resize(1);
    return slots;
  }
  std::map<std::string, std::vector<Slot>> by_model;
  const bool mixed = !one_model_can(request, count, node);
  for (Slot& slot : slots)
    by_model[mixed ? "" : slot.device->gpu->model].push_back(std::move(slot));
  std::vector<Slot> best;
  for (auto& [model, of_model] : by_model) {
    if (of_model.size() < count) continue;
    std::vector<Slot> chosen(of_model.begin(),
                             of_model.begin() + static_cast<std::ptrdiff_t>(count));
    if (request.spec->gpus.link == LinkNeed::nvlink && count > 1) {
      std::vector<const DeviceState*> devices;
      Positions order;
      for (const Slot& slot : of_model) {
        order.push_back(devices.size());
        devices.push_back(slot.device);
      }
      chosen.clear();
      for (const std::size_t i : Links(*node.node, devices).earliest_connected(order, count))
        chosen.push_back(of_model[i]);
    }
    if (chosen.empty()) continue;
    const auto last = [](const std::vector<Slot>& set) {
      return std::max_element(set.begin(), set.end(),
                              [](const Slot& a, const Slot& b) { return a.key() < b.key(); })
          ->key();
    };
    if (best.empty() || last(chosen) < last(best)) best = std::move(chosen);
  }
  return best;
}

// When so many CPUs and so much memory are free. None: never.
std::optional<FreeAt> host_free_at(const JobSpec& spec, const NodeState& node, Instant now) {
  const int cpus = cpus_needed(spec);
  const Bytes memory = spec.memory.value_or(Bytes{});
  int cpus_free = node.cpus_free;
  Bytes memory_free = node.memory_free;
  std::vector<const HostShare*> held;
  for (const HostShare& h : node.held) held.push_back(&h);
  std::sort(held.begin(), held.end(), [](const HostShare* a, const HostShare* b) {
    return std::make_tuple(!a->expected_end, a->expected_end.value_or(Instant{}).us, a->attempt) <
           std::make_tuple(!b->expected_end, b->expected_end.value_or(Instant{}).us, b->attempt);
  });
  FreeAt f{now, ""};
  for (const HostShare* h : held) {
    if (cpus_free >= cpus && memory_free >= memory) return f;
    cpus_free += h->cpus;
    memory_free += h->memory;
    if (!h->expected_end)
      f.unknown = fmt::format("CPUs or memory of {} are held by job {}, which has no time limit",
                              node.node->id.value, to_string(h->attempt.job));
    else
      f.at = std::max(f.at, std::max(*h->expected_end, now + kOverdue));
  }
  if (cpus_free >= cpus && memory_free >= memory) return f;
  return std::nullopt;
}

std::optional<Reservation> on_node(JobId job, const Request& request, const NodeState& node,
                                   Instant now) {
  if (!node.reachable) return std::nullopt;
  const auto host = host_free_at(*request.spec, node, now);
  if (!host) return std::nullopt;
  Reservation reservation;
  reservation.job = job;
  reservation.node = node.node->id;
  reservation.cpus = cpus_needed(*request.spec);
  reservation.memory = request.spec->memory.value_or(Bytes{});
  reservation.unknown = host->unknown;
  Instant last = host->at;
  if (wants_gpu(*request.spec)) {
    const auto count = static_cast<std::size_t>(request.spec->gpus.count.value_or(1));
    const auto slots = choose(request, node, count, slots_of(request, node, now));
    if (slots.size() < count) return std::nullopt;
    for (const Slot& slot : slots) {
      reservation.devices.push_back(slot.kept);
      last = std::max(last, slot.free.at);
      if (!slot.free.unknown.empty()) reservation.unknown = slot.free.unknown;
    }
  }
  if (reservation.unknown.empty()) reservation.start = last;
  return reservation;
}

}  // namespace

std::string pool_of(const JobSpec& spec) {
  if (!wants_gpu(spec)) return "cpus";
  std::vector<std::string> types = spec.gpus.types;
  std::sort(types.begin(), types.end());
  std::string pool;
  for (const std::string& t : types) pool += t + " ";
  return pool.empty() ? "any" : pool;
}

std::optional<Reservation> reserve_for(JobId job, const Request& request, const Ledger& ledger,
                                       Instant now) {
  std::optional<Reservation> best;
  for (const NodeState& node : ledger.nodes()) {
    auto r = on_node(job, request, node, now);
    if (!r) continue;
    if (!best || (r->start && (!best->start || *r->start < *best->start))) best = std::move(r);
  }
  return best;
}

}  // namespace takt::schedule
