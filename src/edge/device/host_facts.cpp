#include "edge/device/host_facts.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <limits>
#include <memory>

namespace takt::device {
namespace {

// Hosts with more than 1024 CPUs need a longer mask than cpu_set_t: try longer ones until it fits.
int cpus_by_affinity() {
  for (int count = CPU_SETSIZE; count <= 1 << 20; count *= 4) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
        CPU_ALLOC(static_cast<std::size_t>(count)), [](cpu_set_t* s) { CPU_FREE(s); });
    const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(count));
    CPU_ZERO_S(size, set.get());
    if (sched_getaffinity(0, size, set.get()) == 0) return CPU_COUNT_S(size, set.get());
  }
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? static_cast<int>(online) : 1;
}

}  // namespace

HostFacts read_host_facts() {
  HostFacts facts;
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) == 0) facts.name = name;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> facts.boot_id;
  facts.cpus = cpus_by_affinity();
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  while (meminfo >> key) {
    std::int64_t kib = 0;
    if (key == "MemTotal:" && meminfo >> kib) {
      facts.memory = kibibytes(kib);
      break;
    }
    meminfo.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return facts;
}

Instant wall_clock() {
  return {std::chrono::duration_cast<std::chrono::microseconds>(
              std::chrono::system_clock::now().time_since_epoch())
              .count()};
}

Duration since_boot() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return microseconds(std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1'000);
}

}  // namespace takt::device
