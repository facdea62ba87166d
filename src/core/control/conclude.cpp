#include "core/control/conclude.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/schedule/place.h"

namespace takt::control {
namespace {

RetryCause cause_of(const ExitStatus& exit) {
  if (exit.cause == ExitCause::lost) return RetryCause::node_lost;
  return exit.oom ? RetryCause::oom : RetryCause::failed;
}

std::string failure_text(const Job& job, const ExitStatus& exit) {
  if (exit.oom) {
    std::string text = "OOM: the host's memory ran out";
    if (job.spec().memory) text += fmt::format(", asked {}", schedule::gib(*job.spec().memory));
    if (exit.memory_peak) text += fmt::format(", peak {}", schedule::gib(*exit.memory_peak));
    return text + ": ask for more with --host-memory";
  }
  if (exit.cause == ExitCause::exited)
    return fmt::format("{}: `takt logs {}` shows what it said", describe(exit), to_string(job.id));
  return describe(exit);
}

}  // namespace

Fact conclude(const Job& job, const ExitStatus& exit, Instant now) {
  using Outcome = Finished::Outcome;
  const std::optional<StopRequested>& stop = job.attempt->stop;
  // Who outgrew its share ran out of memory, and may have asked for another attempt then.
  const bool outgrown =
      stop && stop->reason == StopReason::memory_watchdog && !job.cancel_requested;
  if (stop && !outgrown) {
    const bool cancelled = stop->reason == StopReason::cancelled;
    return Finished{job.id, cancelled ? Outcome::cancelled : Outcome::failed, stop->detail, now};
  }
  if (!outgrown && exit.cause == ExitCause::exited && exit.code == 0)
    return Finished{job.id, Outcome::done, "", now};
  const RetrySpec& retry = job.spec().retry;
  const RetryCause cause = outgrown ? RetryCause::oom : cause_of(exit);
  const bool listed = std::find(retry.on.begin(), retry.on.end(), cause) != retry.on.end();
  const int retries_done = static_cast<int>(job.attempts) - 1;
  if (listed && retries_done < retry.max && exit.cause != ExitCause::start_failed) {
    // 2, 4, 8 ... 64 seconds, so that a job that fails at once does not spin.
    const Duration pause =
        std::min(kRetryPauseMax, seconds(std::int64_t{2} << std::min(retries_done, 5)));
    return Requeued{job.id, cause, now, now + pause};
  }
  return Finished{job.id, Outcome::failed, outgrown ? stop->detail : failure_text(job, exit), now};
}

}  // namespace takt::control
