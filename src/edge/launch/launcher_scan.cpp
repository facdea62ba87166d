// What the records and the processes say of attempts, and what a dead shim would have done.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <limits>
#include <optional>

#include "edge/launch/adopted_record.h"
#include "edge/launch/cgroup_tree.h"
#include "edge/launch/record_watch.h"
#include "edge/launch/shim/log_cap.h"
#include "edge/launch/shim/processes.h"

namespace takt::launch {
namespace {

namespace fs = std::filesystem;

// What a dead shim would have done about output files that grow.
void cap_logs(const std::string& place) {
  const auto spec = read_spec_summary(place);
  if (!spec || spec->log_bytes_max.value <= 0) return;
  for (const std::string& path : {spec->stdout_path, spec->stderr_path}) {
    const int fd = shim::open_for_cutting(path.c_str(), spec->logs_dir.c_str());
    if (fd < 0) continue;
    (void)shim::cap_log(fd, spec->log_bytes_max.value);
    close(fd);
  }
}

std::vector<std::int64_t> to_vector(const shim::PidList& pids) {
  return std::vector<std::int64_t>(pids.begin(), pids.end());
}

}  // namespace

std::vector<control::AttemptSeen> Launcher::scan() {
  watch_->drain();
  reap_forkers();
  std::vector<control::AttemptSeen> seen;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(options_.records_dir, error)) {
    const auto attempt = parse_attempt_name(entry.path().filename().string());
    if (!attempt) continue;
    watch_->watch_folder(entry.path().string());
    const Adopted record = Adopted::read(entry.path().string());
    const std::optional<control::AttemptSeen> found =
        record.job || record.exit ? see(*attempt, record)
                                  : see_starting(*attempt, entry.path().string());
    if (found) seen.push_back(*found);
    if (found && found->phase == control::AttemptPhase::starting) continue;
    const std::lock_guard<std::mutex> guard(mutex_);
    undecided_.erase(*attempt);
  }
  std::sort(seen.begin(), seen.end(),
            [](const auto& a, const auto& b) { return a.attempt < b.attempt; });
  return seen;
}

// Neither job nor exit is on record. Nothing: no shim is at work on it.
std::optional<control::AttemptSeen> Launcher::see_starting(AttemptId attempt,
                                                           const std::string& place) {
  const auto spec = read_spec_summary(place);
  if (!spec) return std::nullopt;
  control::AttemptSeen seen;
  seen.attempt = attempt;
  seen.generation = spec->generation;
  if (shim_holds_lock(place)) return seen;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto it = undecided_.find(attempt);
    if (it == undecided_.end()) return std::nullopt;
    if (boottime_us() < it->second) return seen;
  }
  // Silent is not dead. With the lock held nothing starts, and with an exit record nothing will.
  const auto lock = RecordLock::try_take(place);
  if (!lock) return seen;
  const Adopted record = Adopted::read(place);
  if (record.job || record.exit) return see(attempt, record);
  const auto fenced = write_exit(
      place, attempt,
      outcome(
          seen.generation, ExitCause::start_failed,
          fmt::format("takt-shim has not answered within {} s: the host or the disk of {} "
                      "hangs; try again, or look at the host",
                      static_cast<double>(options_.shim_patience.us) / 1e6, options_.shim_path)));
  if (!fenced) return seen;
  remove_spec_cgroups(place);
  return see(attempt, Adopted::read(place));
}

control::AttemptSeen Launcher::see(AttemptId attempt, const Adopted& record) {
  control::AttemptSeen seen;
  seen.attempt = attempt;
  seen.generation = record.generation();
  if (record.job && record.job->damage.empty()) {
    seen.pid = record.job->pid;
    seen.started = record.job->started;
  }
  if (!record.exit) {
    if (record.job->boot_id == boot_id_ || !record.job->damage.empty()) {
      if (!shim_holds_lock(record.folder)) return see_without_shim(attempt, record);
      watch_->watch_process(record.job->shim_pid, record.job->shim_start);
      seen.phase = control::AttemptPhase::running;
      return seen;
    }
    Adopted lost = record;
    lost.exit = outcome(seen.generation, ExitCause::lost,
                        "the host restarted while it ran: its outcome is unknown");
    (void)write_exit(record.folder, attempt, *lost.exit);
    return see(attempt, lost);
  }
  seen.phase = control::AttemptPhase::exited;
  seen.ended = record.exit->ended;
  seen.exit = record.exit->status;
  seen.processes_gone = record.exit->processes_gone;
  // Failed starts have no beginning.
  if (record.exit->status.cause == ExitCause::start_failed) {
    seen.started.reset();
    seen.pid = 0;
  }
  if (seen.processes_gone) return seen;
  // The shim waits for what KILL does not end at once. If it is gone itself, we look.
  if (record.job && shim_holds_lock(record.folder)) return seen;
  const std::vector<std::int64_t> left = processes(record, nullptr);
  seen.processes_gone = left.empty();
  end_leftovers(attempt, record, left);
  return seen;
}

// The shim was killed, or has written its exit record this very moment.
control::AttemptSeen Launcher::see_without_shim(AttemptId attempt, const Adopted& record) {
  Adopted now = Adopted::read(record.folder);
  if (now.exit) return see(attempt, now);
  control::AttemptSeen seen;
  seen.attempt = attempt;
  seen.generation = record.generation();
  seen.pid = record.job->pid;
  seen.started = record.job->started;
  seen.phase = control::AttemptPhase::running;
  const std::vector<std::int64_t> left = processes(record, nullptr);
  cap_logs(record.folder);
  if (!left.empty()) {
    end_leftovers(attempt, record, left);
    return seen;
  }
  now.exit =
      outcome(seen.generation, ExitCause::lost,
              record.job->damage.empty()
                  ? "its takt-shim was killed: the outcome is unknown"
                  : record.job->damage + ", and its takt-shim is gone: the outcome is unknown");
  (void)write_exit(record.folder, attempt, *now.exit);
  for (const std::string& cgroup : record.job->cgroups) (void)remove_cgroup(cgroup);
  return see(attempt, now);
}

// All living processes of an attempt.
std::vector<std::int64_t> Launcher::processes(const Adopted& record,
                                              const shim::ProcessTable* table) const {
  shim::PidList pids;
  if (!record.job) return {};
  const JobRecord& job = *record.job;
  if (!job.damage.empty()) {
    // The order still knows the cgroup.
    const std::string members = read_spec_summary(record.folder).value_or(SpecSummary{}).members;
    if (!members.empty()) shim::add_members(members.c_str(), pids);
    return to_vector(pids);
  }
  if (job.boot_id != boot_id_) return {};
  if (!job.members.empty()) {
    shim::add_members(job.members.c_str(), pids);
    return to_vector(pids);
  }
  std::optional<shim::ProcessTable> own;
  if (table == nullptr) table = &own.emplace();
  // Both, since a shim that ends hands its children on while we read.
  if (shim::is_running(static_cast<pid_t>(job.shim_pid), job.shim_start)) {
    table->add_descendants(static_cast<pid_t>(job.shim_pid), pids);
  }
  table->add_orphans(static_cast<pid_t>(job.pid), job.pid_start, pids);
  return to_vector(pids);
}

// What a dead shim would have done: TERM to what the main process leaves behind, KILL when the
// grace of that or of a stop is over; and a wake-up at the end.
void Launcher::end_leftovers(AttemptId attempt, const Adopted& record,
                             const std::vector<std::int64_t>& pids) {
  for (const std::int64_t pid : pids) {
    watch_->watch_process(pid, shim::start_of(static_cast<pid_t>(pid)));
  }
  const auto request = read_stop_request(record.folder);
  std::int64_t kill_at = request ? request->deadline_us : std::numeric_limits<std::int64_t>::max();
  const JobRecord& job = *record.job;
  if (!request && job.damage.empty() &&
      !shim::is_running(static_cast<pid_t>(job.pid), job.pid_start)) {
    // Another launcher asks once more: that does no harm.
    bool first = false;
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      const auto [it, added] =
          leftovers_.emplace(attempt, boottime_us() + options_.leftover_grace.us);
      kill_at = it->second;
      first = added;
    }
    for (const std::int64_t pid : pids) {
      if (!first) break;
      kill(static_cast<pid_t>(pid), SIGTERM);
      kill(static_cast<pid_t>(pid), SIGCONT);
    }
  }
  if (boottime_us() < kill_at) return;
  (void)kill_cgroup(job.members);
  for (const std::int64_t pid : pids) kill(static_cast<pid_t>(pid), SIGKILL);
}

std::map<std::int64_t, AttemptId> Launcher::pids() {
  std::map<std::int64_t, AttemptId> owners;
  std::optional<shim::ProcessTable> table;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(options_.records_dir, error)) {
    const auto attempt = parse_attempt_name(entry.path().filename().string());
    if (!attempt) continue;
    const Adopted record = Adopted::read(entry.path().string());
    if (!record.job || (record.exit && record.exit->processes_gone)) continue;
    if (record.job->members.empty() && !table) table.emplace();
    const shim::ProcessTable* const known = table ? &*table : nullptr;
    for (const std::int64_t pid : processes(record, known)) owners.emplace(pid, *attempt);
  }
  return owners;
}

}  // namespace takt::launch
