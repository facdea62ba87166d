#pragma once
// The rules an operator may set. Without a policy file these defaults hold. Every limit of takt is
// here, named ..._max.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/quantities.h"
#include "core/model/job_spec.h"

namespace takt {

struct Limits {
  std::size_t pending_jobs_max = 200'000;
  std::size_t pending_jobs_per_user_max = 100'000;
  std::size_t array_tasks_max = 10'000;  // of one submission
  std::size_t spec_bytes_max = 1 << 20;  // of one submission's body
  std::size_t environment_bytes_max = 512 << 10;
  std::size_t inputs_batch_max = 1'000;  // handled before one sync
  // Jobs that wait at an engine that places by itself: enough to keep it busy between two rounds,
  // and few enough that takt's order (tiers, shares, holds) still decides what is next.
  std::size_t engine_waiting_max = 64;
  std::size_t connections_max = 512;
  std::size_t connections_per_user_max = 128;  // a quarter, so that nobody locks the others out
  int replicas_max = 64;
  // On disk, of one attempt's standard output and of its standard error, each: the middle of what
  // is larger is dropped.
  Bytes log_bytes_max = mebibytes(256);
};

// Finished jobs: when they move from the live state to the archive, and when they leave that.
struct FinishedRules {
  std::size_t live_max = 1'000;
  Duration live_for = hours(1);
  Duration keep = hours(24 * 90);
  Bytes archive_bytes_max = gibibytes(1);
};

// What finished jobs printed. Files of jobs that are not over are never removed.
struct LogRules {
  Duration keep = hours(24 * 90);
  Bytes bytes_max = gibibytes(100);  // of all log files together, on disk
};

struct Policy {
  int version = 1;
  std::string revision = "built-in";
  std::vector<std::string> admin_groups = {"takt-admin"};  // may cancel everybody's jobs
  Duration fair_share_half_life = hours(24 * 7);
  // A foreign process of one of these programs below this much memory does not block a GPU (a
  // desktop's display server).
  std::vector<std::string> ignored_programs = {"Xorg", "gnome-shell", "Xwayland", "kwin_wayland"};
  Bytes ignored_memory_max = gibibytes(1);
  Duration stop_grace = seconds(10);  // TERM, then KILL
  // Without a report for so long a node is suspect (nothing new starts there), unreachable (people
  // are told), lost (what ran there is started elsewhere, where its lease has ended).
  Duration node_silent_max = seconds(15);
  Duration node_unreachable_after = minutes(2);
  Duration node_lost_after = minutes(10);
  // An attempt that has ended and of which something is left for so long has outlived KILL.
  Duration kill_proof_max = seconds(60);
  int kill_failures_max = 2;  // of one job; then it is held
  std::map<Tier, Duration> time_estimate = {
      {Tier::training, hours(8)}, {Tier::batch, hours(1)}, {Tier::experimental, hours(24)}};
  int size_margin_percent =
      25;  // "could be smaller" when peak x (1 + margin) is far under the grant
  FinishedRules finished;
  LogRules logs;
  Limits limits;
};

}  // namespace takt
