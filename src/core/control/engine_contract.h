#pragma once
// The engine contract as data: what the controller asks of an engine (effects) and what an engine
// tells (observations). `local` speaks to the node agent; others come later behind the same values.
//
// Effects are idempotent and keyed by attempt and generation: sending one twice changes nothing.
// They may be lost; those of one attempt never overtake each other.
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
  std::string name;
  Placement placement = Placement::takt;
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
};

struct Start {
  LaunchOrder order;
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
using Effect = std::variant<Start, Stop, Forget>;

enum class AttemptPhase { starting, running, exited };

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
};

// One report of a node: everything it has, complete. Numbers count up per agent process; an older
// report never follows a newer one.
struct NodeReport {
  std::uint64_t sequence = 0;
  Instant at;
  // Of the agent's host, from the kernel: another one means that nothing that ran before is left.
  // "" when the kernel does not tell.
  std::string boot_id;
  Node node;
  std::vector<AttemptSeen> attempts;
};

}  // namespace takt::control
