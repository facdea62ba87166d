#pragma once
// The engine contract as data: what the controller asks of an engine (effects) and what an engine
// tells (observations). `local` speaks to the node agent; others come later behind the same values.
//
// Effects are idempotent and keyed by attempt and generation: sending one twice changes nothing.
// They may be lost, late, doubled and in another order: the next report lacks what did not arrive
// and it is sent again, and an agent drops a start that is older than what it has forgotten since.
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/ids.h"
#include "core/base/quantities.h"
#include "core/model/device.h"
#include "core/model/grant.h"
#include "core/model/job_spec.h"

namespace takt::control {

enum class Placement { takt, engine };  // who chooses the devices

struct EngineInfo {
  std::string name = "local";
  Placement placement = Placement::takt;
  // Set where nodes end their attempts by themselves when they have not heard from the controller
  // for so long (their own clock). Without it nothing is ever started elsewhere because a node is
  // silent: it may still run what it has. `local` has none: the controller shares the host's fate.
  std::optional<Duration> lease;
  // Set where an ended attempt is forgotten without being asked, at the earliest so long after its
  // hand-over. What was never seen by then may have run: it is not sent again.
  std::optional<Duration> remembers;
  // An attempt that was seen counts as gone when it is in no report for so long. Longer than a
  // report may be under way: to a controller that begins anew an old one is the newest it has.
  Duration absent_grace;
};

// The kernel's word on who somebody is, and what it takes to become them.
struct Identity {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups;
  std::string user;  // login name, or the uid in digits
  std::string home;
  bool operator==(const Identity&) const = default;
};

// All that is needed to start an attempt, resolved: the agent decides nothing.
struct LaunchOrder {
  AttemptId attempt;
  std::uint64_t generation = 0;
  Identity identity;
  std::vector<std::string> argv;
  std::vector<EnvironmentVariable> env;  // complete
  std::string workdir;
  std::string stdout_path;  // files; opened with the identity's rights where they are below its own
  std::string stderr_path;  // folders, and handed to it otherwise
  Bytes log_max;            // what each of them may take on disk; 0: no bound
  Grant grant;
  GpuRequest gpus;  // what was asked: for an engine that chooses the devices itself
};

// The report that an effect answers.
struct Basis {
  std::string boot_id;
  std::uint64_t life = 0;  // of the agent
  std::uint64_t sequence = 0;
  bool operator==(const Basis&) const = default;
};

struct Start {
  LaunchOrder order;
  // An agent drops a start with another boot or life, or from before its last Forget.
  Basis basis;
};
struct Stop {
  AttemptId attempt;
  std::uint64_t generation = 0;
  Duration grace;  // between TERM and KILL
};
// The outcome is on disk: the engine may delete its record.
struct Forget {
  AttemptId attempt;
};
// The node may keep its attempts until `lease` after it made the report that this answers.
struct Renew {
  Basis basis;
};
using Effect = std::variant<Start, Stop, Forget, Renew>;

// `queued`: an engine that places by itself has it and has not placed it.
enum class AttemptPhase { queued, starting, running, exited };

struct AttemptSeen {
  AttemptId attempt;
  std::uint64_t generation = 0;
  AttemptPhase phase = AttemptPhase::starting;
  std::int64_t pid = 0;
  std::optional<Instant> started;
  std::optional<Instant> ended;
  std::optional<ExitStatus> exit;  // when phase is exited
  // True when no process of the attempt is left: not in its cgroup, not below its shim.
  bool processes_gone = false;
  // Where an engine that places by itself has put it.
  std::optional<Grant> placed;
};

// One report of a node: everything it has, complete. Sequences count up per life of the agent,
// lives per boot of the host (the time since boot at which the agent began): of two reports the
// larger (life, sequence) is the newer, and older ones are dropped. An engine that places by itself
// reports as one node, with an empty boot where a restart of it loses nothing.
struct NodeReport {
  std::uint64_t life = 0;
  std::uint64_t sequence = 0;
  Instant at;    // when its devices were looked at
  Instant made;  // when it was made; both by the node's clock, like all times in it
  Node node;
  std::vector<AttemptSeen> attempts;
};

}  // namespace takt::control
