#pragma once
// Starts, supervises and ends attempts on this host, one `takt-shim` each. All it knows is in the
// record folders (docs/formats/shim.md), so that another Launcher on the same folders, after a
// crash of the first, knows the same: jobs neither end with the launcher nor are they started
// twice.
//
// Threads: start, stop, forget, scan, pids and notes may be called from any thread. Destroying a
// Launcher ends no job.
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/quantities.h"
#include "core/base/result.h"
#include "core/control/engine_contract.h"

namespace takt::shim {
class ProcessTable;
}

namespace takt::launch {

class CgroupTree;
class RecordWatch;

struct LauncherOptions {
  std::string records_dir;    // best on tmpfs; made (0700) if missing. Absolute.
  std::string shim_path;      // the program takt-shim. Absolute.
  std::string cgroup_parent;  // where `takt/<job>.<attempt>-<mark>` goes; "": our own cgroup
  bool use_cgroups = true;    // false: supervise by the process tree alone
  // Output files below this folder are made by the launcher's own user and given to the job's; all
  // others are opened with the job's rights only. "": none. Absolute; must not be writable for
  // users.
  std::string logs_dir;
  // Between TERM and KILL for what the main process leaves behind when it ends by itself.
  Duration leftover_grace = seconds(5);
};

class Launcher {
 public:
  // Errors: the records folder cannot be made or written, the shim cannot be executed.
  static Result<std::unique_ptr<Launcher>> open(LauncherOptions options);
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Idempotent: an attempt known with the same generation is fine and not started again.
  // Success: the attempt is on record, and scan() tells what came of it; that includes starts that
  // failed (no such program, foreign user, ...): they are on record as ExitCause::start_failed with
  // a sentence. Error: nothing was started and nothing is on record (records folder full or
  // read-only, malformed attempt id), or the attempt is known with another generation
  // (ErrorKind::conflict).
  Result<void> start(const control::LaunchOrder& order);
  // TERM to all processes of the attempt, after `grace` KILL. Returns at once. Idempotent; an
  // unknown or ended attempt is fine; an earlier deadline wins. An attempt that has not started yet
  // never will. When the shim was killed, TERM comes from here and KILL from a later scan().
  Result<void> stop(AttemptId attempt, Duration grace);
  // Removes record and cgroup. ErrorKind::conflict while processes live or no outcome is known. An
  // unknown attempt is fine.
  Result<void> forget(AttemptId attempt);
  // All attempts on record, by id. Attempts whose shim never began (the agent died between) are not
  // listed: start() of them starts them. An attempt whose shim was killed stays `running` while any
  // process of it lives and is `exited` with ExitCause::lost after that.
  std::vector<control::AttemptSeen> scan();
  // Every live process of every attempt: by cgroup, or below its shim where there is no cgroup.
  std::map<std::int64_t, AttemptId> pids();
  // Readable (poll, epoll) when a scan() would show something new; scan() makes it quiet again.
  int event_fd() const;
  // What is not in force on this host and what to do about it, a sentence each: for Node.notes.
  std::vector<std::string> notes() const;

 private:
  struct Adopted;
  Launcher(LauncherOptions options, std::unique_ptr<CgroupTree> cgroups,
           std::unique_ptr<RecordWatch> watch);
  std::string folder(AttemptId attempt) const;
  Result<void> prepare(const control::LaunchOrder& order, const std::string& folder);
  Result<void> run_shim(const control::LaunchOrder& order, const std::string& folder);
  control::AttemptSeen see(AttemptId attempt, const Adopted& record);
  control::AttemptSeen see_without_shim(AttemptId attempt, const Adopted& record);
  // `table`: null reads /proc anew where it is needed.
  std::vector<std::int64_t> processes(const Adopted& record, const shim::ProcessTable* table) const;
  void end_leftovers(const Adopted& record, const std::vector<std::int64_t>& pids) const;

  const LauncherOptions options_;
  const std::unique_ptr<CgroupTree> cgroups_;
  const std::unique_ptr<RecordWatch> watch_;
  const std::string boot_id_;
  std::mutex mutex_;              // guards starting_
  std::set<AttemptId> starting_;  // start() is at work on them in this process
};

}  // namespace takt::launch
