#pragma once
// The state of the controller: exactly what folding the journal gives, nothing else. What nodes
// report is beside it (Cluster), is never journaled, and is replaced by each report.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/boxed.h"
#include "core/control/engine_contract.h"
#include "core/control/fact.h"
#include "core/control/view.h"

namespace takt::control {

struct Attempt {
  AttemptId id;
  std::uint64_t generation = 0;
  Grant grant;
  std::string boot_id;
  Instant granted;
  std::optional<Instant> started;
  std::int64_t pid = 0;
  std::optional<StopRequested> stop;
  std::optional<ExitStatus> exit;
  std::optional<Instant> ended;
  std::string kill_failed;  // a sentence when it outlived KILL
  bool released = false;
  bool active() const { return !released; }
};

struct Hold {
  std::string by;
  std::string reason;
};

struct Job {
  JobId id;
  // Never changes; the jobs of one submission share it.
  std::shared_ptr<const Submission> submission;
  std::uint64_t submission_print = 0;  // its fingerprint
  int group_index = 0;
  std::map<std::string, std::string> parameters;
  std::uint32_t attempts = 0;
  std::uint32_t kill_failures = 0;
  Boxed<Attempt> attempt;  // the last one
  bool cancel_requested = false;
  std::string cancelled_by;
  Boxed<Finished> finished;
  Boxed<Hold> hold;
  Instant not_before;

  const JobSpec& spec() const { return submission->spec; }
  // Shares its life with the submission.
  std::shared_ptr<const JobSpec> shared_spec() const { return {submission, &submission->spec}; }
  const Identity& submitter() const { return submission->submitter; }
  bool waiting() const { return !finished && (!attempt || attempt->exit.has_value()); }
  // Its last attempt still holds devices.
  bool holding() const { return attempt && attempt->active(); }
  JobState state() const;
};

// Decayed milli-GPU-seconds at an instant; brought forward when it is read (schedule/queue.h).
struct Usage {
  std::int64_t amount = 0;
  Instant at;
  bool operator==(const Usage&) const = default;
};

struct KeptEnvironment {
  std::shared_ptr<const Environment> variables;
  std::uint64_t print = 0;  // its fingerprint
  std::size_t jobs = 0;     // that refer to it; it leaves with the last of them
};

// How the host's clock stood when it was last looked at (ClockSet).
struct ClockMark {
  std::string boot_id;
  Duration offset;
};

struct State {
  std::string identity;  // of the state folder; StateCreated
  std::uint64_t next_job = 1;
  std::uint64_t next_generation = 1;
  EnvironmentNumber next_environment = 1;
  ClockMark clock;
  std::uint64_t ledger_version =
      0;  // grows with everything a plan depends on; not journaled itself
  std::map<JobId, Job> jobs;
  std::set<JobId> waiting;                       // could start: no attempt under way
  std::set<JobId> holding;                       // hold devices
  std::set<std::pair<Instant, JobId>> finished;  // by their end: the archive takes the oldest
  std::map<std::string, Usage> usage;            // by user
  std::map<EnvironmentNumber, KeptEnvironment> environments;
  std::map<std::uint64_t, EnvironmentNumber> environment_prints;  // to find an equal one
  std::map<std::string, std::size_t> waiting_of;                  // user -> jobs that wait
  std::map<std::string, JobId> requests;  // client's request id, by user -> first job
  std::uint64_t jobs_print = 0;   // sum of the jobs' fingerprints, kept up to date by `fold`
  std::uint64_t usage_print = 0;  // likewise of usage

  // The environment that its submission names.
  const Environment& environment_of(const Job& job) const;
};

// The only writer of State. It decides nothing: whatever is a matter of choice is in the fact.
void fold(State& state, const Fact& fact, Duration fair_share_half_life);

// The shortest list of facts that folds to an equal state: a snapshot.
std::vector<Fact> facts_of(const State& state);
// The facts that rebuild one job, its environment included: what the archive keeps.
std::vector<Fact> facts_of(const State& state, const Job& job);

// Equal for equal states, whatever facts led there, in constant time. Another version of takt may
// hash otherwise: kFingerprintVersion is kept beside what is stored.
inline constexpr int kFingerprintVersion = 1;
std::uint64_t fingerprint(const State& state);
// The same from nothing but the contents, for tests: what `fold` keeps must equal it.
std::uint64_t fingerprint_anew(const State& state);
// Of one job, one user's usage, one submission, one environment (fingerprint.cpp).
std::uint64_t fingerprint_of(const Job& job);
std::uint64_t fingerprint_of(const std::string& user, const Usage& usage);
std::uint64_t fingerprint_of(const Submission& submission);
std::uint64_t fingerprint_of(const Environment& environment);

// How much a node is heard of. `suspect`: nothing new starts there. `lost`: what ran there counts
// as lost, once the node is certain to have ended it (EngineInfo::lease).
enum class Contact { fresh, suspect, unreachable, lost };

// What the nodes reported last.
struct SeenReport {
  NodeReport report;
  Instant received;
  Contact contact = Contact::fresh;
  // When the last lease that was sent out has surely ended on the node, by the controller's time.
  std::optional<Instant> lease_ends;
  // Attempts that were in no report since then.
  std::map<AttemptId, Instant> absent;
  std::set<std::string> former_boots;  // of the host: reports of these come too late
  bool reachable() const { return contact == Contact::fresh; }
};
struct Cluster {
  EngineInfo engine;
  std::map<NodeId, SeenReport> nodes;
  std::uint64_t version = 0;  // grows when a report changes what could be placed
  ClockMark clock;
  // When this controller began: leases that an earlier one sent out count from here.
  Instant began;
};

}  // namespace takt::control
