#pragma once
// One attempt's record folder as the launcher sees it (docs/formats/shim.md): writes the order and
// the stop request, reads what the shim recorded.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"
#include "core/base/quantities.h"
#include "core/base/result.h"
#include "core/control/engine_contract.h"
#include "edge/launch/cgroup_tree.h"

namespace takt::launch {

// The record `job`: what runs.
struct JobRecord {
  std::uint64_t generation = 0;
  std::int64_t pid = 0;
  std::int64_t pid_start = 0;  // clock ticks since boot
  std::string boot_id;
  std::int64_t shim_pid = 0;
  std::int64_t shim_start = 0;
  std::vector<std::string> cgroups;
  std::string members;  // "" without cgroups
  Instant started;
  // It is there and cannot be read: the sentence why. Nothing else is known then.
  std::string damage;
};

// The record `exit`: how it ended.
struct ExitRecord {
  std::uint64_t generation = 0;
  ExitStatus status;
  Instant ended;
  bool processes_gone = false;
};

struct StopRequest {
  Duration grace;
  std::int64_t deadline_us = 0;  // on CLOCK_BOOTTIME: when KILL is due
};

// "17.1" → 17, 1. Nothing for other names.
std::optional<AttemptId> parse_attempt_name(std::string_view name);

// The texts themselves, for tests and for reading old shims.
JobRecord parse_job_record(std::string_view text);
ExitRecord parse_exit_record(std::string_view text);
std::string format_exit_record(AttemptId attempt, const ExitRecord& record);
// What the launcher adds to every order.
struct SpecOptions {
  bool switch_user = false;  // we are root: the shim becomes the order's user
  std::string logs_dir;
  Duration leftover_grace = seconds(5);
  Duration kill_patience = seconds(10);
};
// Fails on a NUL in an argument or a variable: no program can be given one.
Result<std::string> format_spec(const control::LaunchOrder& order, const AttemptCgroups& cgroups,
                                const SpecOptions& options);

// The lock of a record folder, released on destruction.
class RecordLock {
 public:
  // Empty when somebody else has it, or when it cannot be made: then `error` holds errno, else 0.
  static std::optional<RecordLock> try_take(const std::string& folder, int* error = nullptr);
  RecordLock(RecordLock&& other) noexcept;
  RecordLock& operator=(RecordLock&&) = delete;
  ~RecordLock();

 private:
  explicit RecordLock(int fd) : fd_(fd) {}
  int fd_;
};
// True while a shim is at work. Looking takes the lock for a moment: a shim on its way waits for
// that.
bool shim_holds_lock(const std::string& folder);

// Empty: not there.
std::optional<JobRecord> read_job_record(const std::string& folder);
std::optional<ExitRecord> read_exit_record(const std::string& folder);
std::optional<StopRequest> read_stop_request(const std::string& folder);
// What an order says of itself.
struct SpecSummary {
  std::uint64_t generation = 0;
  std::vector<std::string> cgroups;
  std::string members;
  std::string stdout_path;
  std::string stderr_path;
  std::string logs_dir;
  Bytes log_bytes_max;
  std::vector<std::string> devices;  // uuids of the granted GPUs
};
// Empty: no order is there.
std::optional<SpecSummary> read_spec_summary(const std::string& folder);
// Without its order no shim starts anything. False: it cannot be removed.
bool remove_spec(const std::string& folder);

Result<void> write_spec(const std::string& folder, const std::string& text);
Result<void> write_stop_request(const std::string& folder, const StopRequest& request);
Result<void> write_exit(const std::string& folder, AttemptId attempt, const ExitRecord& record);

}  // namespace takt::launch
