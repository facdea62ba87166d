#include "core/schedule/ledger.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/schedule/foreign.h"

namespace takt::schedule {

Bytes DeviceState::shared_memory_held() const {
  Bytes sum;
  for (const Holder& h : holders)
    if (h.device.kind == DeviceKind::share) sum += h.device.memory;
  return sum;
}

Bytes DeviceState::memory_left() const {
  std::map<AttemptId, Bytes> used;
  Bytes foreign;
  if (gpu->processes)
    for (const GpuProcess& p : *gpu->processes) {
      if (!p.memory) continue;
      (p.attempt ? used[*p.attempt] : foreign) += *p.memory;
    }
  Bytes taken = foreign;
  for (const Holder& h : holders)
    if (h.device.kind == DeviceKind::share) taken += std::max(h.device.memory, used[h.attempt]);
  // What no process explains (contexts, the driver's own) counts where it is more than that.
  if (gpu->memory_used) taken = std::max(taken, *gpu->memory_used);
  return std::max(Bytes{0}, capacity - taken);
}

int DeviceState::shared_compute_held() const {
  int sum = 0;
  for (const Holder& h : holders)
    if (h.device.kind == DeviceKind::share && h.device.compute_percent < 100)
      sum += h.device.compute_percent;
  return sum;
}

Bytes usable_memory(const Gpu& gpu) {
  if (!gpu.memory_total) return Bytes{};
  return *gpu.memory_total - gpu.memory_reserved.value_or(Bytes{});
}

namespace {

// Processes of an attempt that was not given this device, or that holds nothing any more: the
// device is not proven free. (A later report without them opens it again.)
std::optional<Blocker> leftovers(const DeviceState& device) {
  if (!device.gpu->processes) return std::nullopt;
  for (const GpuProcess& p : *device.gpu->processes) {
    if (!p.attempt) continue;
    if (std::any_of(device.holders.begin(), device.holders.end(),
                    [&](const Holder& h) { return h.attempt == *p.attempt; }))
      continue;
    return Blocker{BlockerKind::draining, "a GPU that is proven free",
                   fmt::format("{}: {} of attempt {} is on it, which was not given it",
                               device.label, describe_process(p), to_string(*p.attempt)),
                   "wait until it ends; `takt gpus` shows it"};
  }
  return std::nullopt;
}

DeviceState device_state(const Node& node, const Gpu& gpu, bool several_nodes,
                         const Policy& policy) {
  DeviceState state;
  state.gpu = &gpu;
  state.node = node.id;
  state.label = several_nodes ? fmt::format("{}:gpu{}", node.id.value, gpu.index)
                              : fmt::format("gpu{}", gpu.index);
  state.capacity = usable_memory(gpu);
  state.closed = closed_because(gpu, state.label, policy);
  return state;
}

Holder holder_of(const Holding& holding, const DeviceGrant& device) {
  Holder holder;
  holder.attempt = holding.attempt;
  holder.job_name = holding.job_name;
  holder.user = holding.user;
  holder.tier = holding.tier;
  holder.device = device;
  holder.domain = holding.grant.domain;
  holder.expected_end = holding.expected_end;
  holder.ended = holding.ended;
  return holder;
}

}  // namespace

Ledger::Ledger(const Snapshot& snapshot, const Policy& policy) {
  for (const SeenNode& seen : snapshot.nodes) {
    NodeState node;
    node.node = &seen.node;
    if (snapshot.nodes.size() > 1) node.prefix = seen.node.id.value + ": ";
    node.reachable = seen.reachable;
    node.cpus_free = seen.node.cpus;
    node.memory_free = seen.node.memory;
    for (const Gpu& gpu : seen.node.gpus)
      node.devices.push_back(device_state(seen.node, gpu, snapshot.nodes.size() > 1, policy));
    nodes_.push_back(std::move(node));
  }
  // The same input in another order is the same input.
  std::sort(nodes_.begin(), nodes_.end(),
            [](const NodeState& a, const NodeState& b) { return a.node->id < b.node->id; });
  std::vector<const Holding*> holdings;
  for (const Holding& holding : snapshot.holdings) holdings.push_back(&holding);
  std::sort(holdings.begin(), holdings.end(),
            [](const Holding* a, const Holding* b) { return a->attempt < b->attempt; });
  for (const Holding* holding : holdings) hold(*holding);
  // A device without a visible process and without a grant, but with memory in use, is not proven
  // free: somebody is on it whom this host does not show.
  for (NodeState& node : nodes_)
    for (DeviceState& device : node.devices) {
      if (!device.closed) device.closed = leftovers(device);
      if (!device.closed && device.empty())
        device.closed = unseen_memory(*device.gpu, device.label, policy);
    }
}

void Ledger::hold(const Holding& holding) {
  for (NodeState& node : nodes_) {
    if (node.node->id != holding.grant.node) continue;
    node.cpus_free -= holding.grant.cpus;
    node.memory_free -= holding.grant.memory;
    node.held.push_back(
        {holding.attempt, holding.grant.cpus, holding.grant.memory,
         holding.ended ? std::optional<Instant>(holding.since) : holding.expected_end});
  }
  for (const DeviceGrant& device : holding.grant.devices)
    if (DeviceState* state = find_mutable(device.gpu))
      state->holders.push_back(holder_of(holding, device));
}

void Ledger::reserve(JobId job, const NodeId& node, const std::vector<Kept>& devices, int cpus,
                     Bytes memory, Instant from) {
  const AttemptId nobody{job, 0};
  for (const Kept& kept : devices) {
    DeviceState* state = find_mutable(kept.gpu);
    if (state == nullptr) continue;
    Holder holder;
    holder.attempt = nobody;
    holder.device.gpu = kept.gpu;
    holder.device.uuid = kept.uuid;
    holder.device.kind = kept.kind;
    holder.expected_end = from;
    holder.reserved = true;
    state->holders.push_back(holder);
  }
  for (NodeState& n : nodes_)
    if (n.node->id == node) n.reserved.push_back({nobody, cpus, memory, from});
}

DeviceState* Ledger::find_mutable(const DeviceUuid& gpu) {
  for (NodeState& node : nodes_)
    for (DeviceState& device : node.devices)
      if (device.gpu->uuid == gpu) return &device;
  return nullptr;
}

const DeviceState* Ledger::find(const DeviceUuid& gpu) const {
  return const_cast<Ledger*>(this)->find_mutable(gpu);
}

namespace {

struct OnDevice {
  std::string who;
  DeviceGrant device;
};

std::optional<std::string> clash(const std::vector<OnDevice>& on, Bytes capacity) {
  Bytes shares;
  for (std::size_t i = 0; i < on.size(); ++i) {
    if (on[i].device.kind == DeviceKind::share) shares += on[i].device.memory;
    for (std::size_t k = 0; k < i; ++k) {
      const bool whole =
          on[i].device.kind == DeviceKind::whole_gpu || on[k].device.kind == DeviceKind::whole_gpu;
      if (whole || (on[i].device.kind != on[k].device.kind) ||
          (on[i].device.kind == DeviceKind::mig_instance && on[i].device.uuid == on[k].device.uuid))
        return fmt::format("{} is granted to {} and to {}", on[i].device.uuid.value, on[k].who,
                           on[i].who);
    }
  }
  if (capacity.value > 0 && shares > capacity)
    return fmt::format("shares of {} MiB are granted on {} which has {} MiB", shares.value >> 20,
                       on.front().device.gpu.value, capacity.value >> 20);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> overlap(const Snapshot& snapshot) {
  std::map<DeviceUuid, std::vector<OnDevice>> by_gpu;
  for (const Holding& holding : snapshot.holdings)
    for (const DeviceGrant& device : holding.grant.devices)
      by_gpu[device.gpu].push_back({"attempt " + to_string(holding.attempt), device});
  std::map<DeviceUuid, Bytes> capacity;
  for (const SeenNode& seen : snapshot.nodes)
    for (const Gpu& gpu : seen.node.gpus) capacity[gpu.uuid] = usable_memory(gpu);
  for (const auto& [uuid, on] : by_gpu)
    if (auto found = clash(on, capacity.count(uuid) ? capacity[uuid] : Bytes{})) return found;
  return std::nullopt;
}

}  // namespace takt::schedule
