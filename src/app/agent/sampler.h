#pragma once
// Reads the devices on a thread of its own, so that a GPU that hangs delays no start and no exit.
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "core/model/device.h"
#include "edge/device/device_probe.h"

namespace takt::agent {

struct Sample {
  std::uint64_t number = 0;  // counts up; a sample numbered n began after request n was made
  Instant at;                // of its numbers; who is on the GPUs may have been looked at later
  Node node;
};

class Sampler {
 public:
  using Pids = std::function<std::map<std::int64_t, AttemptId>()>;  // live pids of attempts

  // `ready_fd`: an eventfd that is written when a new sample is there.
  Sampler(std::unique_ptr<device::DeviceProbe> probe, Pids pids, Duration interval, int ready_fd);
  ~Sampler();

  // Asks for a look at who is on the GPUs that begins after this call; its number or a later one
  // proves that. Between two samples it is quick: the numbers stay those of the last one.
  std::uint64_t request();
  // The newest sample that was not taken yet.
  std::optional<Sample> take();

 private:
  void run();
  Sample read(std::uint64_t number, bool whole);

  std::unique_ptr<device::DeviceProbe> probe_;
  Pids pids_;
  Duration interval_;
  int ready_fd_;
  Instant read_at_;  // the last whole sample
  std::map<std::int64_t, AttemptId> last_pids_;
  // Processes of attempts that the driver showed last time. A driver may show one for longer than
  // the kernel has it: it stays the attempt's for as long.
  std::map<std::int64_t, AttemptId> shown_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t requested_ = 1;
  std::optional<Sample> newest_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace takt::agent
