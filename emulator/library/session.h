#pragma once
// What nvmlInit sets up in a process: the way to the daemon and the handles given out.
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "edge/device/nvml_abi.h"
#include "fleet/fleet.h"
#include "wire/autostart.h"
#include "wire/channel.h"

// What an nvmlDevice_t points to. Lives as long as the process: a handle that outlives nvmlShutdown
// gives an error, not a crash.
struct nvmlDevice_st {
  unsigned gpu = 0;
  int mig = -1;
};
struct nvmlGpuInstance_st {
  unsigned gpu = 0;
  unsigned id = 0;
};

namespace takt::emulator {

class Session {
 public:
  // NVML's interface has no context argument: a process has one session.
  static Session& instance();

  nvmlReturn_t start();
  nvmlReturn_t end();
  bool started();
  const char* problem();  // of the last start; empty where it went well

  // To driver.sock, and to a GPU's socket. A connection carries one call at a time; calls of other
  // threads take others, so that one that hangs keeps nobody else waiting.
  nvmlReturn_t ask_driver(const Request& request, Reply& reply);
  nvmlReturn_t ask(unsigned gpu, const Request& request, Reply& reply);

  struct Facts {
    std::string driver_version, nvml_version;
    std::uint64_t cuda_version = 0;
    std::vector<std::string> uuids;  // by index
  };
  Facts facts();

  nvmlDevice_t handle(unsigned gpu, int mig);
  nvmlGpuInstance_t instance_handle(unsigned gpu, unsigned id);
  bool knows(nvmlDevice_t device);
  bool knows(nvmlGpuInstance_t instance);

 private:
  nvmlReturn_t fail_start(nvmlReturn_t code, const std::string& sentence, bool print);
  nvmlReturn_t greet();
  Result<Channel> take(int gpu);
  void give_back(int gpu, Channel channel);
  nvmlReturn_t exchange(int gpu, const Request& request, Reply& reply);

  std::mutex lock_;
  int starts_ = 0;
  std::string problem_;
  std::string program_;
  FleetPlace place_;
  Facts facts_;
  std::vector<std::vector<Channel>> idle_;  // [0] driver, [1 + i] GPU i
  std::deque<nvmlDevice_st> handles_;
  std::deque<nvmlGpuInstance_st> instances_;
};

// Canonical call with numbers, about the device of a handle.
Request request_of(const char* call, nvmlDevice_t device, std::vector<std::uint64_t> numbers = {});

// The whole way of most functions: checks the handle and `out`, asks, and needs `least` numbers
// back.
nvmlReturn_t ask_device(const char* call, nvmlDevice_t device, const void* out, Reply& reply,
                        std::size_t least, std::vector<std::uint64_t> numbers = {});

nvmlReturn_t copy_text(const std::string& text, char* out, unsigned length);

}  // namespace takt::emulator
