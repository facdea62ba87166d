#pragma once
// What one record folder says, and small things that both halves of the launcher need. Internal to
// the room: launcher.cpp starts, ends and forgets attempts, launcher_scan.cpp looks at them.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "edge/launch/launcher.h"
#include "edge/launch/record_folder.h"

namespace takt::launch {

struct Launcher::Adopted {
  std::string folder;
  std::optional<JobRecord> job;
  std::optional<ExitRecord> exit;

  static Adopted read(std::string folder) {
    Adopted record;
    record.folder = std::move(folder);
    // exit after job: an attempt that ends meanwhile is seen whole.
    record.job = read_job_record(record.folder);
    record.exit = read_exit_record(record.folder);
    if (record.exit && !record.job) record.job = read_job_record(record.folder);
    return record;
  }
  std::uint64_t generation() const { return exit ? exit->generation : job ? job->generation : 0; }
};

// CLOCK_BOOTTIME in microseconds.
std::int64_t boottime_us();
// An outcome that the launcher records, since no shim can: ended now, and nothing is left of it.
ExitRecord outcome(std::uint64_t generation, ExitCause cause, std::string message);
// The cgroups that an order names.
void remove_spec_cgroups(const std::string& place);

}  // namespace takt::launch
