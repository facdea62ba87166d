#include "load/devices.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace takt::emulator {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// The daemon's program: in emulator/ beside this program, or beside it.
std::string daemon_program() {
  char path[4096];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  std::string folder(path, n > 0 ? static_cast<std::size_t>(n) : 0);
  folder.erase(std::min(folder.size(), folder.rfind('/')));
  std::string in_tree = folder + "/emulator/takt-emulator";
  return access(in_tree.c_str(), X_OK) == 0 ? in_tree : folder + "/takt-emulator";
}

Result<std::vector<PresentGpu>> present_gpus(const FleetPlace& place, const Reply& hello) {
  std::vector<PresentGpu> present;
  for (std::size_t i = 3; i < hello.texts.size(); ++i) {
    auto channel = Channel::connect(place.gpu_socket(i - 3));
    if (!channel) return tl::make_unexpected(channel.error());
    auto migs = channel->call(Request{"migs", -1, {}, {}});
    if (!migs) return tl::make_unexpected(migs.error());
    bool enabled = !migs->numbers.empty() && migs->numbers[0] == 1;
    present.push_back({hello.texts[i], enabled, migs->texts});
  }
  return present;
}

tl::unexpected<Error> no_device(const std::string& why) {
  return fail(ErrorKind::not_found, "CUDA error: no CUDA-capable device is detected (" + why + ")");
}

}  // namespace

Result<Devices> Devices::open(const std::string& program_name) {
  auto fleet = variable(kFleetVariable);
  if (!fleet || fleet->empty())
    return no_device("TAKT_EMULATED_FLEET is not set; takt-load runs on emulated GPUs only");
  auto place = place_of(*fleet);
  if (!place) return tl::make_unexpected(place.error());
  auto driver = connect_or_start(*place, daemon_program());
  if (!driver) return tl::make_unexpected(driver.error());
  auto hello = driver->call(Request{"hello", -1, {}, {}});
  if (!hello) return tl::make_unexpected(hello.error());
  auto present = present_gpus(*place, *hello);
  if (!present) return tl::make_unexpected(present.error());
  auto named = variable("CUDA_VISIBLE_DEVICES");
  auto visible = visible_devices(*present, named);
  if (visible.empty())
    return no_device(named ? "CUDA_VISIBLE_DEVICES=" + *named
                           : std::string("the fleet has none that is usable"));
  if (!named) visible.resize(1);
  Devices out;
  for (const auto& device : visible) {
    auto channel = Channel::connect(place->gpu_socket(device.gpu));
    if (!channel) return tl::make_unexpected(channel.error());
    auto attached = channel->call(Request{"load:attach", device.mig, {}, program_name});
    if (!attached) return tl::make_unexpected(attached.error());
    const PresentGpu& gpu = (*present)[device.gpu];
    out.names_.push_back(device.mig < 0 ? gpu.uuid
                                        : gpu.migs[static_cast<std::size_t>(device.mig)]);
    if (attached->code != Code::success)
      return fail(ErrorKind::io, "CUDA error: " + out.names_.back() + " answers NVML error " +
                                     std::to_string(static_cast<int>(attached->code)));
    out.devices_.push_back({device.gpu, device.mig, 0, std::move(*channel)});
  }
  return out;
}

Result<bool> Devices::apply(const Phase& phase, OutOfMemory& lack) {
  double busy = phase.busy < 0 ? std::max({phase.sm, phase.tensor, phase.dram}) : phase.busy;
  auto millionths = [](double share) { return static_cast<std::uint64_t>(share * 1e6 + 0.5); };
  for (auto& device : devices_) {
    if (phase.memory != device.memory) {
      auto reply = device.channel.call(Request{"load:memory", -1, {phase.memory}, {}});
      if (!reply) return tl::make_unexpected(reply.error());
      if (reply->code == Code::memory && reply->numbers.size() == 2) {
        lack = {device.gpu, phase.memory - device.memory, reply->numbers[1], reply->numbers[0]};
        return false;
      }
      if (reply->code != Code::success)
        return fail(ErrorKind::io, "CUDA error: GPU " + std::to_string(device.gpu) +
                                       " answers NVML error " +
                                       std::to_string(static_cast<int>(reply->code)));
      device.memory = phase.memory;
    }
    auto reply = device.channel.call(Request{
        "load:activity",
        -1,
        {millionths(busy), millionths(phase.sm), millionths(phase.tensor), millionths(phase.dram),
         static_cast<std::uint64_t>(phase.pcie_rx), static_cast<std::uint64_t>(phase.pcie_tx)},
        {}});
    if (!reply) return tl::make_unexpected(reply.error());
    if (reply->code != Code::success)
      return fail(ErrorKind::io, "CUDA error: GPU " + std::to_string(device.gpu) +
                                     " answers NVML error " +
                                     std::to_string(static_cast<int>(reply->code)));
  }
  return true;
}

}  // namespace takt::emulator
