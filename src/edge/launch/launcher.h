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
#include <optional>
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
  // Each of these files keeps its beginning and its newest part, and loses what is between when it
  // takes more than its order allows.
  // Between TERM and KILL for what the main process leaves behind when it ends by itself.
  Duration leftover_grace = seconds(5);
  // After so long of KILL without effect (a driver that hangs) the outcome is told although
  // processes are left.
  Duration kill_patience = seconds(10);
  // start() waits this long for the shim's answer and goes on without it.
  Duration answer_wait = seconds(2);
  // A shim that was not even found at work after so long is kept from ever starting the attempt.
  Duration shim_patience = seconds(10);
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
  // a sentence. It also includes a shim that is silent for longer than a moment: the attempt is
  // `starting` until it is decided. Error: nothing was started, nothing is on record and nothing
  // will start (records folder full or read-only, malformed attempt id), or the attempt is known
  // with another generation (ErrorKind::conflict).
  Result<void> start(const control::LaunchOrder& order);
  // TERM to all processes of the attempt, after `grace` KILL. Returns at once. Idempotent; an
  // unknown or ended attempt is fine; an earlier deadline wins. An attempt that has not started yet
  // never will. When the shim was killed, TERM comes from here and KILL from a later scan(). Error:
  // it could not be put on record (records folder full), and an attempt that is starting may start.
  Result<void> stop(AttemptId attempt, Duration grace);
  // Removes record and cgroup. ErrorKind::conflict while processes live or no outcome is known. An
  // unknown attempt is fine.
  Result<void> forget(AttemptId attempt);
  // True while anything of the attempt is on record, be it only its order.
  bool knows(AttemptId attempt) const;
  // The granted GPUs, by uuid, as its order names them; none when there is no order.
  std::vector<std::string> devices(AttemptId attempt) const;
  // All attempts on record, by id. Attempts whose shim never began (the agent died between) are not
  // listed: start() of them starts them, once, whatever becomes of that shim. `starting`: a shim is
  // on its way. An attempt whose shim was killed stays `running` while any process of it lives;
  // when its main process has ended the others get TERM and, after leftover_grace, KILL from here.
  // It is `exited` with ExitCause::lost after that.
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
  Result<void> begin(const control::LaunchOrder& order, const std::string& folder);
  Result<void> prepare(const control::LaunchOrder& order, const std::string& folder);
  Result<void> run_shim(const control::LaunchOrder& order, const std::string& folder);
  Duration answer_patience();
  void reap_forkers();
  std::optional<control::AttemptSeen> see_starting(AttemptId attempt, const std::string& folder);
  control::AttemptSeen see(AttemptId attempt, const Adopted& record);
  control::AttemptSeen see_without_shim(AttemptId attempt, const Adopted& record);
  // `table`: null reads /proc anew where it is needed.
  std::vector<std::int64_t> processes(const Adopted& record, const shim::ProcessTable* table) const;
  void end_leftovers(AttemptId attempt, const Adopted& record,
                     const std::vector<std::int64_t>& pids);

  const LauncherOptions options_;
  const std::unique_ptr<CgroupTree> cgroups_;
  const std::unique_ptr<RecordWatch> watch_;
  const std::string boot_id_;
  mutable std::mutex mutex_;      // guards what follows
  std::set<AttemptId> starting_;  // start() is at work on them in this process
  // Their shims have not answered. Until when they may (CLOCK_BOOTTIME, microseconds).
  std::map<AttemptId, std::int64_t> undecided_;
  // Their shims were killed and their main process ended: when KILL is due for the rest.
  std::map<AttemptId, std::int64_t> leftovers_;
  std::vector<std::int64_t> unreaped_;  // have forked shims and not ended yet
};

}  // namespace takt::launch
