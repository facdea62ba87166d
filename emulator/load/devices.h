#pragma once
// The GPUs a stand-in program has opened: one connection each, whose end frees everything.
#include <string>
#include <vector>

#include "core/base/result.h"
#include "load/phases.h"
#include "load/visible_devices.h"
#include "wire/autostart.h"

namespace takt::emulator {

// Memory was asked for that is not there.
struct OutOfMemory {
  unsigned gpu = 0;
  std::uint64_t wanted = 0, free = 0, total = 0;
};

class Devices {
 public:
  // Finds the fleet by TAKT_EMULATED_FLEET and the devices by CUDA_VISIBLE_DEVICES: all that the
  // variable names; the first GPU where it is not set.
  static Result<Devices> open(const std::string& program_name);

  // Sets memory and activity on every device. False and `lack` where the memory is not there.
  Result<bool> apply(const Phase& phase, OutOfMemory& lack);
  const std::vector<std::string>& names() const { return names_; }

 private:
  struct Device {
    unsigned gpu;
    int mig;
    std::uint64_t memory = 0;
    Channel channel;
  };
  std::vector<Device> devices_;
  std::vector<std::string> names_;
};

}  // namespace takt::emulator
