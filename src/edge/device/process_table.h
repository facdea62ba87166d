#pragma once
// The processes of this host, as far as takt needs them: whose they are, since when they run and
// who started whom. A port, so that tests give their own processes.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/measured.h"
#include "core/base/quantities.h"

namespace takt::device {

struct ProcessInfo {
  std::int64_t pid = 0;
  std::int64_t parent = 0;
  std::uint32_t uid = 0;  // the real user
  std::uint64_t start_ticks =
      0;  // clock ticks after boot; with the pid it names one process for good
  Instant started;
  std::string name;  // the program's short name, e.g. "python3"
};

class ProcessTable {
 public:
  virtual ~ProcessTable() = default;
  // Missing is not_found when there is no such process (any more).
  virtual Measured<ProcessInfo> find(std::int64_t pid) const = 0;
  // Every process that could be read; one that ends meanwhile is left out. Ordered by pid.
  virtual std::vector<ProcessInfo> snapshot() const = 0;
  // The login name, or the number in digits when the host knows no name for it.
  virtual std::string user_name(std::uint32_t uid) const = 0;
};

// Reads `root` (a folder laid out like /proc). Reading a process's command line may block while the
// process is stuck in the kernel, so only stat and status are read.
std::shared_ptr<const ProcessTable> proc_process_table(std::string root = "/proc");

// The parents of `pid` in `processes`, nearest first, without `pid` itself.
std::vector<std::int64_t> ancestors(const std::vector<ProcessInfo>& processes, std::int64_t pid);
// Everything below `pid` in `processes`, without `pid` itself, ordered by pid.
std::vector<std::int64_t> descendants(const std::vector<ProcessInfo>& processes, std::int64_t pid);

}  // namespace takt::device
