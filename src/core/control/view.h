#pragma once
// What people and programs are shown of the state, computed here once; API, reports and metrics
// only print it.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/quantities.h"
#include "core/control/engine_contract.h"
#include "core/model/blocker.h"
#include "core/model/grant.h"
#include "core/model/job_spec.h"

namespace takt::control {

enum class JobState { waiting, starting, running, stopping, done, failed, cancelled };

struct DeviceLabel {
  DeviceGrant grant;
  std::string
      label;  // "gpu1", "gpu0 3g@4", "gpu2 12.0 GiB": with the node in front if there are several
};

struct JobView {
  JobId id;
  std::string name;
  std::string user;
  std::uint32_t uid = 0;
  Tier tier = Tier::experimental;
  JobState state = JobState::waiting;
  std::string command;
  std::optional<JobId> group;
  int group_index = 0;
  int group_size = 1;
  Instant submitted;
  std::optional<Instant> started;  // of the last attempt
  std::optional<Instant> ended;
  std::optional<ExitStatus> exit;  // of the last attempt
  std::string reason;              // why it failed or was stopped, with the next step; else empty
  int attempts = 0;
  std::string request;         // "2 GPUs (h100)", "12 GiB", "no GPU"
  std::optional<Grant> grant;  // while held, and of the last attempt afterwards
  std::vector<DeviceLabel> devices;
  std::vector<Blocker> waiting_for;  // when waiting
  std::optional<Instant> expected_start;
  std::string expected_start_unknown;   // why there is no expected start
  std::optional<Instant> expected_end;  // by its estimate; an estimate
  std::vector<std::string> decision;    // the rules applied in order (only in a single job's view)
  std::string stdout_path;
  std::string stderr_path;
  std::vector<std::string> environment_names;  // names only, values are never shown
};

struct NodeView {
  Node node;
  Instant seen;
  bool reachable = true;
};

struct Counts {
  int waiting = 0;
  int starting = 0;
  int running = 0;
  int stopping = 0;
  int done = 0;
  int failed = 0;
  int cancelled = 0;
};

std::string to_string(JobState state);

}  // namespace takt::control
