#pragma once
// What has happened: the only things that are journaled and the only things `fold` reads. A fact
// holds everything resolved, so that replaying the journal never decides again.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "core/base/ids.h"
#include "core/base/quantities.h"
#include "core/control/engine_contract.h"
#include "core/model/grant.h"
#include "core/model/job_spec.h"

namespace takt::control {

struct JobAccepted {
  JobId job;
  JobSpec spec;  // resolved: name, tier, isolation, sizes, estimate
  Identity submitter;
  Instant at;
  std::string policy_revision;
  // Set for the tasks of an array and the replicas of a service.
  std::optional<JobId> group;  // number of its first job
  int group_index = 0;
  int group_size = 1;
  std::map<std::string, std::string> parameters;  // array parameter -> this task's value
  std::uint64_t seed = 0;
};

struct CancelRequested {
  JobId job;
  std::string by;  // user
  Instant at;
};

// A waiting job ends without having run (again).
struct JobCancelled {
  JobId job;
  Instant at;
};

struct Granted {
  AttemptId attempt;
  std::uint64_t generation = 0;
  Grant grant;
  Instant at;
};

enum class StopReason { cancelled, kill_after, memory_watchdog };

struct StopRequested {
  AttemptId attempt;
  StopReason reason = StopReason::cancelled;
  std::string detail;  // a sentence for the owner
  Duration grace;
  Instant at;
};

struct Started {
  AttemptId attempt;
  std::int64_t pid = 0;
  Instant at;
};

// The main process ended. Its devices stay held until `Released`.
struct Exited {
  AttemptId attempt;
  ExitStatus exit;
  Instant at;
};

// No process of the attempt is left and its devices are proven free of it.
struct Released {
  AttemptId attempt;
  Instant at;
};

// The job goes back to the queue for another attempt.
struct Requeued {
  JobId job;
  RetryCause cause = RetryCause::failed;
  Instant at;
  Instant not_before;
};

// The job is over; state and reason as they are shown from now on.
struct Finished {
  JobId job;
  enum class Outcome { done, failed, cancelled } outcome = Outcome::done;
  std::string reason;  // "", or what failed and the next step
  Instant at;
};

// Two facts that only snapshots hold: what earlier, already forgotten facts added up to.
struct UsageCarried {
  std::string user;
  std::int64_t usage = 0;  // decayed milli-GPU-seconds at `at`
  Instant at;
};
struct CountersCarried {
  std::uint64_t next_job = 1;
  std::uint64_t next_generation = 1;
};

using Fact =
    std::variant<JobAccepted, CancelRequested, JobCancelled, Granted, StopRequested, Started,
                 Exited, Released, Requeued, Finished, UsageCarried, CountersCarried>;

std::string to_string(StopReason reason);

}  // namespace takt::control
