#pragma once
// The programs that use one emulated GPU: what they hold and how busy they keep it.
#include <map>
#include <string>
#include <vector>

#include "fleet/fleet.h"

namespace takt::emulator {

// What a program does at a moment; shares are of the GPU, or of the MIG device it runs on.
struct Activity {
  double busy = 0;  // share of time with a kernel running
  double sm = 0;    // share of multiprocessors with work
  double tensor = 0;
  double dram = 0;     // share of memory bandwidth
  double pcie_rx = 0;  // bytes a second
  double pcie_tx = 0;
};

struct Client {
  unsigned pid = 0;
  std::string name;
  int mig = -1;
  std::uint64_t memory = 0;
  Activity activity;
};

// Sums of activities over time, for averages between any two moments.
struct Totals {
  std::uint64_t time_us = 0;
  double busy_us = 0, sm_us = 0, tensor_us = 0, dram_us = 0;
  double pcie_rx_bytes = 0, pcie_tx_bytes = 0;
};

// Memory is handed out here and nowhere else: used never exceeds what the card (or MIG device) has.
class Clients {
 public:
  Clients(const FleetGpu& gpu, std::uint64_t now_us);

  void attach(std::uint64_t id, Client client, std::uint64_t now_us);
  void detach(std::uint64_t id, std::uint64_t now_us);  // frees its memory
  bool has(std::uint64_t id) const { return clients_.count(id) != 0; }

  struct Room {
    bool granted = false;
    std::uint64_t total = 0;
    std::uint64_t free = 0;  // before the request where it was refused, after it where granted
  };
  // Sets what the client holds in all; its old holding stays where it is refused.
  Room set_memory(std::uint64_t id, std::uint64_t bytes);
  void set_activity(std::uint64_t id, const Activity& activity, std::uint64_t now_us);

  std::uint64_t memory(int mig) const;  // held by clients; mig -1: on the whole card
  // Sum over clients, clamped at 1. mig -1: of the whole card, instances weighted by their slices.
  Activity sum(int mig) const;
  Totals totals(int mig, std::uint64_t now_us);

  struct Share {
    const Client* client;
    double sm, dram;  // scaled so that the sum over all clients of the card is that of sum(-1)
  };
  std::vector<Share> shares() const;

 private:
  double weight(const Client& client) const;
  void advance(std::uint64_t now_us);
  Room room(int mig) const;

  const FleetGpu& gpu_;
  std::map<std::uint64_t, Client> clients_;
  std::vector<Totals> totals_;  // [0]: the card; [1 + i]: MIG device i
};

}  // namespace takt::emulator
