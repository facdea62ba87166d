#pragma once
// One emulated GPU: its fleet values, the clients on top of them, and what is wrong with it. It
// answers requests; it knows no sockets and no clock.
#include <optional>

#include "daemon/clients.h"
#include "wire/message.h"

namespace takt::emulator {

class Gpu {
 public:
  // `fleet` outlives the GPU. Times are microseconds since 1970; faults count from `started_us`.
  Gpu(const Fleet& fleet, std::size_t index, std::uint64_t started_us);

  // Nothing means: never answer (the call hangs). `client` is the connection that asks.
  std::optional<Reply> answer(const Request& request, std::uint64_t client, unsigned pid,
                              std::uint64_t now_us);
  void disconnected(std::uint64_t client, std::uint64_t now_us);
  const Clients& clients() const { return clients_; }

 private:
  friend struct GpuCalls;
  std::optional<Code> fault_of(const std::string& call, std::uint64_t now_us, bool& hangs) const;
  Reply answer_load(const Request& request, std::uint64_t client, unsigned pid,
                    std::uint64_t now_us);

  const Fleet& fleet_;
  const FleetGpu& gpu_;
  std::size_t index_;
  std::uint64_t started_us_;
  Clients clients_;
  double extra_energy_mj_ = 0;
  std::uint64_t energy_until_us_;
};

}  // namespace takt::emulator
