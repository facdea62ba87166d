#pragma once
// What has happened: the only things that are journaled and the only things `fold` reads. A fact
// holds everything resolved, so that replaying the journal never decides again.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/ids.h"
#include "core/base/quantities.h"
#include "core/control/engine_contract.h"
#include "core/model/grant.h"
#include "core/model/job_spec.h"

namespace takt::control {

// Which state this is: drawn once when a state folder is created, so that records on a machine
// which belong to another folder's attempts are never taken for one's own.
struct StateCreated {
  std::string identity;  // [0-9a-f]+; empty in states of before 0.2
  Instant at;
};

// A set of environment variables that jobs refer to by its number: what one shell submits has the
// same environment a thousand times, and it is by far the largest part of a job.
using EnvironmentNumber = std::uint64_t;  // from 1; 0: the spec holds its own
using Environment = std::vector<EnvironmentVariable>;
struct EnvironmentKept {
  EnvironmentNumber number = 0;
  std::shared_ptr<const Environment> variables;
};

// What all jobs of one submission share. It never changes.
struct Submission {
  JobSpec spec;  // resolved: name, tier, isolation, sizes, estimate; `env` empty if numbered
  EnvironmentNumber environment = 0;
  Identity submitter;
  Instant at;
  std::string policy_revision;
  // Set for the tasks of an array and the replicas of a service.
  std::optional<JobId> group;  // number of its first job
  int group_size = 1;
  std::string request;  // chosen by the client, so that asking again makes no second job; or ""
};

// Jobs with consecutive numbers: one, or the tasks of an array.
struct JobAccepted {
  JobId job;  // the first
  int count = 1;
  int group_index = 0;  // of the first
  std::shared_ptr<const Submission> submission;
  // Array parameter -> value, for each of the jobs; empty when there are none.
  std::vector<std::map<std::string, std::string>> parameters;
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

// Devices are given to an attempt (placement: takt), or it is handed to an engine that places it.
struct Granted {
  AttemptId attempt;
  std::uint64_t generation = 0;
  Grant grant;
  Instant at;
  // Of the node, then: what was granted before a restart of the host does not run after it.
  std::string boot_id;
};

// An engine that places by itself says where the attempt went.
struct Placed {
  AttemptId attempt;
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

// It has ended, and long after that something of it is still there: a process that KILL does not
// end, or one that the driver shows. Its devices stay held, and somebody should look.
struct KillFailed {
  AttemptId attempt;
  std::string detail;
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

// The job does not start (again) until the hold is lifted.
struct JobHeld {
  JobId job;
  std::string by;      // user, or "takt"
  std::string reason;  // a sentence for the owner
  Instant at;
};
struct HoldLifted {
  JobId job;
  std::string by;
  Instant at;
};

// Finished jobs whose record is safe in the archive leave the live state.
struct Archived {
  std::vector<JobId> jobs;
};

// The host's clock was set: times of what is under way move with it, so that spans stay right.
// `offset` is wall time less time since boot from now on.
struct ClockSet {
  Duration by;
  std::string boot_id;
  Duration offset;
};

// Facts that mostly snapshots hold: what earlier, already forgotten facts added up to.
struct UsageCarried {
  std::string user;
  std::int64_t usage = 0;  // decayed milli-GPU-seconds at `at`
  Instant at;
};
struct CountersCarried {
  std::uint64_t next_job = 1;
  std::uint64_t next_generation = 1;
  EnvironmentNumber next_environment = 1;
};

using Fact =
    std::variant<JobAccepted, CancelRequested, JobCancelled, Granted, StopRequested, Started,
                 Exited, Released, Requeued, Finished, UsageCarried, CountersCarried, StateCreated,
                 EnvironmentKept, Placed, KillFailed, JobHeld, HoldLifted, Archived, ClockSet>;

}  // namespace takt::control
