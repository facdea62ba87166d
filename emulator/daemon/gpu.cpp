#include "daemon/gpu.h"

#include <algorithm>

#include "daemon/gpu_calls.h"

namespace takt::emulator {
namespace {

// What the driver knows without asking the card: these calls work on a card that hangs or is lost,
// unless the fleet names them.
bool is_static(const std::string& call) {
  constexpr std::string_view calls[] = {"handlebyindex", "handlebyuuid", "uuid",    "index",
                                        "minornumber",   "name",         "pciinfo", "migs",
                                        "hello",         "numanodeid"};
  return std::find(std::begin(calls), std::end(calls), call) != std::end(calls);
}

// Calls that came with later drivers than the "too old" one.
bool is_recent(const Request& request) {
  return request.call.rfind("gpm", 0) == 0 || request.call == "currentclockseventreasons" ||
         (request.call == "memoryinfo" && !request.numbers.empty() && request.numbers[0] == 2);
}

}  // namespace

Gpu::Gpu(const Fleet& fleet, std::size_t index, std::uint64_t started_us)
    : fleet_(fleet),
      gpu_(fleet.gpus[index]),
      index_(index),
      started_us_(started_us),
      clients_(gpu_, started_us),
      energy_until_us_(started_us) {}

std::optional<Code> Gpu::fault_of(const std::string& call, std::uint64_t now_us,
                                  bool& hangs) const {
  const FleetFault& fault = gpu_.fault;
  double running = static_cast<double>(now_us - started_us_) / 1e6;
  hangs = false;
  if (running < fault.after_seconds) return std::nullopt;
  bool named = std::find(fault.hang.begin(), fault.hang.end(), call) != fault.hang.end();
  if (named || (fault.hang_all && !is_static(call))) {
    hangs = true;
    return std::nullopt;
  }
  if (auto error = fault.errors.find(call); error != fault.errors.end()) return error->second;
  if (is_static(call) || call == "xids" || call == "registerevents") return std::nullopt;
  if (auto error = fault.errors.find("*"); error != fault.errors.end()) return error->second;
  if (fault.lost) return Code::gpu_is_lost;
  if (fault.reset_required) return Code::reset_required;
  return std::nullopt;
}

std::optional<Reply> Gpu::answer(const Request& request, std::uint64_t client, unsigned pid,
                                 std::uint64_t now_us) {
  bool hangs = false;
  auto fault = fault_of(request.call, now_us, hangs);
  if (hangs) return std::nullopt;
  if (fault) return Reply{*fault, {}, {}};
  if (request.mig >= 0 && static_cast<std::size_t>(request.mig) >= gpu_.migs.size())
    return Reply{Code::invalid_argument, {}, {}};
  if (request.call.rfind("load:", 0) == 0) return answer_load(request, client, pid, now_us);
  if (fleet_.driver == DriverState::too_old && is_recent(request))
    return Reply{Code::function_not_found, {}, {}};
  return GpuCalls{*this, request, now_us}.answer();
}

Reply Gpu::answer_load(const Request& request, std::uint64_t client, unsigned pid,
                       std::uint64_t now_us) {
  if (request.call == "load:attach") {
    clients_.attach(client, Client{pid, request.text, request.mig, 0, {}}, now_us);
    auto room = clients_.set_memory(client, 0);
    return {Code::success, {room.total, room.free}, {}};
  }
  if (!clients_.has(client)) return {Code::uninitialized, {}, {}};
  if (request.call == "load:memory" && request.numbers.size() == 1) {
    auto room = clients_.set_memory(client, request.numbers[0]);
    return {room.granted ? Code::success : Code::memory, {room.total, room.free}, {}};
  }
  if (request.call == "load:activity" && request.numbers.size() == 6) {
    auto share = [&](std::size_t i) { return static_cast<double>(request.numbers[i]) / 1e6; };
    Activity activity{share(0),
                      share(1),
                      share(2),
                      share(3),
                      static_cast<double>(request.numbers[4]),
                      static_cast<double>(request.numbers[5])};
    GpuCalls{*this, request, now_us}.settle_energy();
    clients_.set_activity(client, activity, now_us);
    return {};
  }
  return {Code::invalid_argument, {}, {}};
}

void Gpu::disconnected(std::uint64_t client, std::uint64_t now_us) {
  if (!clients_.has(client)) return;
  GpuCalls{*this, {}, now_us}.settle_energy();
  clients_.detach(client, now_us);
}

}  // namespace takt::emulator
