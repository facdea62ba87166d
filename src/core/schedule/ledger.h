#pragma once
// Who holds what, derived from what the nodes report and what attempts were granted. It is rebuilt
// for each pass and never stored, so it cannot drift from the devices.
#include <optional>
#include <string>
#include <vector>

#include "core/model/policy.h"
#include "core/schedule/snapshot.h"

namespace takt::schedule {

// One grant on one device.
struct Holder {
  AttemptId attempt;
  std::string job_name;
  std::string user;
  Tier tier = Tier::experimental;
  DeviceGrant device;
  std::string domain;
  std::optional<Instant> expected_end;
  bool ended = false;
  bool reserved = false;  // not running yet: the pool's first blocked job waits for this device
};

// CPUs and host memory that somebody holds, or that are reserved from `expected_end` on.
struct HostShare {
  AttemptId attempt;
  int cpus = 0;
  Bytes memory;
  std::optional<Instant> expected_end;
};

// A GPU as the placer sees it. `closed` says why nothing may start on it, whoever asks.
struct DeviceState {
  const Gpu* gpu = nullptr;
  NodeId node;
  std::string label;              // "gpu1"; with the node in front when there are several nodes
  Bytes capacity;                 // total without what the driver reserves; 0 when unknown
  std::optional<Blocker> closed;  // needed/available/action, ready to show
  std::vector<Holder> holders;

  bool mig() const { return gpu->mig.enabled.has_value() && *gpu->mig.enabled; }
  bool empty() const { return holders.empty(); }
  Bytes shared_memory_held() const;
  // What is really left for shares. Granted memory counts at once; a holder that uses more counts
  // with what it uses, and processes that are not takt's count too.
  Bytes memory_left() const;
  int shared_compute_held() const;
};

struct NodeState {
  const Node* node = nullptr;
  bool reachable = true;
  std::string prefix;  // "n1: " in front of sentences when there are several nodes, else ""
  int cpus_free = 0;
  Bytes memory_free;
  std::vector<HostShare> held;       // what makes the difference to the node's own numbers
  std::vector<HostShare> reserved;   // from `expected_end` on
  std::vector<DeviceState> devices;  // by index
};

// A device that is kept for a job: a whole GPU (uuid = gpu) or one MIG instance of it.
struct Kept {
  DeviceUuid gpu;
  DeviceUuid uuid;
  DeviceKind kind = DeviceKind::whole_gpu;
};

// What the device has without what the driver keeps for itself; zero when it is not told.
Bytes usable_memory(const Gpu& gpu);

class Ledger {
 public:
  Ledger(const Snapshot& snapshot, const Policy& policy);
  const std::vector<NodeState>& nodes() const { return nodes_; }
  // Books a grant, so that the rest of the pass sees it.
  void hold(const Holding& holding);
  // Books devices, CPUs and memory for the job that holds the reservation, from `from` on.
  void reserve(JobId job, const NodeId& node, const std::vector<Kept>& devices, int cpus,
               Bytes memory, Instant from);
  const DeviceState* find(const DeviceUuid& gpu) const;

 private:
  DeviceState* find_mutable(const DeviceUuid& gpu);
  std::vector<NodeState> nodes_;  // by id
};

// True when some grants of the holdings overlap: a whole GPU with anything else, one MIG instance
// twice, shares beyond the device's memory. The sentence names both. For tests and `admit`.
std::optional<std::string> overlap(const Snapshot& snapshot);

}  // namespace takt::schedule
