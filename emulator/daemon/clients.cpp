#include "daemon/clients.h"

#include <algorithm>

namespace takt::emulator {
namespace {

// Memory that is not free at the start: of foreign processes, the driver, a capture's programs.
std::uint64_t free_at_start(const Reading& total, const Reading& reserved, const Reading& used,
                            const Reading& free) {
  if (free) return *free;
  std::uint64_t taken = reserved.value_or(0) + used.value_or(0);
  return total && *total > taken ? *total - taken : 0;
}

double clamped(double share) { return std::clamp(share, 0.0, 1.0); }

}  // namespace

Clients::Clients(const FleetGpu& gpu, std::uint64_t now_us)
    : gpu_(gpu), totals_(1 + gpu.migs.size()) {
  for (auto& t : totals_) t.time_us = now_us;
}

double Clients::weight(const Client& client) const {
  if (client.mig < 0) return 1;
  double slices = static_cast<double>(
      gpu_.migs[static_cast<std::size_t>(client.mig)].compute_slices.value_or(1));
  return slices / std::max(1u, gpu_.mig_max);
}

void Clients::attach(std::uint64_t id, Client client, std::uint64_t now_us) {
  advance(now_us);
  client.memory = 0;
  client.activity = {};
  clients_[id] = std::move(client);
}

void Clients::detach(std::uint64_t id, std::uint64_t now_us) {
  advance(now_us);
  clients_.erase(id);
}

std::uint64_t Clients::memory(int mig) const {
  std::uint64_t sum = 0;
  for (const auto& [id, client] : clients_)
    if (mig < 0 || client.mig == mig) sum += client.memory;
  return sum;
}

Clients::Room Clients::room(int mig) const {
  Room room;
  std::uint64_t at_start = 0;
  if (mig < 0) {
    room.total = gpu_.memory_total.value_or(0);
    at_start =
        free_at_start(gpu_.memory_total, gpu_.memory_reserved, gpu_.memory_used, gpu_.memory_free);
  } else {
    const FleetMig& device = gpu_.migs[static_cast<std::size_t>(mig)];
    room.total = device.memory_total.value_or(0);
    at_start = free_at_start(device.memory_total, device.memory_reserved, device.memory_used,
                             device.memory_free);
  }
  std::uint64_t held = memory(mig);
  room.free = at_start > held ? at_start - held : 0;
  return room;
}

Clients::Room Clients::set_memory(std::uint64_t id, std::uint64_t bytes) {
  auto at = clients_.find(id);
  if (at == clients_.end()) return {};
  Client& client = at->second;
  Room now = room(client.mig);
  if (bytes > client.memory && bytes - client.memory > now.free) return now;
  client.memory = bytes;
  now = room(client.mig);
  now.granted = true;
  return now;
}

void Clients::set_activity(std::uint64_t id, const Activity& activity, std::uint64_t now_us) {
  advance(now_us);
  auto at = clients_.find(id);
  if (at == clients_.end()) return;
  Activity& a = at->second.activity;
  a = activity;
  a.busy = clamped(a.busy);
  a.sm = clamped(a.sm);
  a.tensor = clamped(a.tensor);
  a.dram = clamped(a.dram);
}

Activity Clients::sum(int mig) const {
  Activity sum;
  for (const auto& [id, client] : clients_) {
    if (mig >= 0 && client.mig != mig) continue;
    double w = mig >= 0 ? 1 : weight(client);
    sum.busy += client.activity.busy * w;
    sum.sm += client.activity.sm * w;
    sum.tensor += client.activity.tensor * w;
    sum.dram += client.activity.dram * w;
    sum.pcie_rx += client.activity.pcie_rx;
    sum.pcie_tx += client.activity.pcie_tx;
  }
  sum.busy = clamped(sum.busy);
  sum.sm = clamped(sum.sm);
  sum.tensor = clamped(sum.tensor);
  sum.dram = clamped(sum.dram);
  return sum;
}

void Clients::advance(std::uint64_t now_us) {
  for (std::size_t i = 0; i < totals_.size(); ++i) {
    Totals& t = totals_[i];
    if (now_us <= t.time_us) continue;
    auto dt = static_cast<double>(now_us - t.time_us);
    Activity a = sum(static_cast<int>(i) - 1);
    t.time_us = now_us;
    t.busy_us += a.busy * dt;
    t.sm_us += a.sm * dt;
    t.tensor_us += a.tensor * dt;
    t.dram_us += a.dram * dt;
    t.pcie_rx_bytes += a.pcie_rx * dt / 1e6;
    t.pcie_tx_bytes += a.pcie_tx * dt / 1e6;
  }
}

Totals Clients::totals(int mig, std::uint64_t now_us) {
  advance(now_us);
  return totals_[static_cast<std::size_t>(mig + 1)];
}

std::vector<Clients::Share> Clients::shares() const {
  double sm = 0, dram = 0;
  for (const auto& [id, client] : clients_) {
    sm += client.activity.sm * weight(client);
    dram += client.activity.dram * weight(client);
  }
  double sm_scale = sm > 1 ? 1 / sm : 1;
  double dram_scale = dram > 1 ? 1 / dram : 1;
  std::vector<Share> out;
  for (const auto& [id, client] : clients_)
    out.push_back({&client, client.activity.sm * weight(client) * sm_scale,
                   client.activity.dram * weight(client) * dram_scale});
  return out;
}

}  // namespace takt::emulator
