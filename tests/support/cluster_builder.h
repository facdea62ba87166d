#pragma once
// Clusters, jobs and reports for tests, each in a line: plain functions that give plain values,
// which a test then changes where it needs to.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/control/engine_contract.h"
#include "core/model/device.h"
#include "core/model/job_spec.h"
#include "core/model/policy.h"
#include "core/schedule/snapshot.h"

namespace takt::testing {

inline const Instant t0{1'700'000'000'000'000};
inline Instant at(std::int64_t s) { return t0 + seconds(s); }

// ---- devices ------------------------------------------------------------------------------------

// Empty, healthy, with nobody on it. `node_of` gives it its index and UUID.
inline Gpu gpu(const std::string& model, Bytes memory) {
  Gpu g;
  g.model = model;
  g.memory_total = memory;
  g.memory_used = Bytes{0};
  g.memory_reserved = Bytes{0};
  g.throttle_reasons = std::vector<std::string>{};
  g.mig.enabled = false;
  g.processes = std::vector<GpuProcess>{};
  return g;
}
inline Gpu h100() { return gpu("NVIDIA H100 80GB HBM3", gibibytes(80)); }
inline Gpu a100() { return gpu("NVIDIA A100-SXM4-40GB", gibibytes(40)); }
inline Gpu l40s() { return gpu("NVIDIA L40S", gibibytes(48)); }

inline DeviceUuid uuid_of(const std::string& node, unsigned index) {
  return DeviceUuid("GPU-" + node + "-" + std::to_string(index));
}

inline MigInstance mig(const std::string& profile, Bytes memory, int start, int size,
                       int compute_slices) {
  MigInstance m;
  m.profile = profile;
  m.memory_total = memory;
  m.start = start;
  m.size = size;
  m.compute_slices = compute_slices;
  return m;
}
inline Gpu with_mig(Gpu g, std::vector<MigInstance> instances) {
  g.mig.enabled = true;
  g.mig.instances = std::move(instances);
  return g;
}

inline GpuProcess process(std::int64_t pid, const std::string& user, const std::string& program,
                          Bytes memory) {
  GpuProcess p;
  p.pid = pid;
  p.user = user;
  p.name = program;
  p.memory = memory;
  return p;
}
// Puts a process on the device, memory in use included.
inline Gpu occupied(Gpu g, GpuProcess p) {
  if (p.memory) g.memory_used = *g.memory_used + *p.memory;
  g.processes->push_back(std::move(p));
  return g;
}
inline Gpu sick(Gpu g, GpuHealth health, const std::string& reason) {
  g.health = health;
  g.health_reason = reason;
  return g;
}

// ---- nodes --------------------------------------------------------------------------------------

inline Node node_of(const std::string& name, std::vector<Gpu> gpus, int cpus = 64,
                    Bytes memory = gibibytes(512)) {
  Node n;
  n.id = NodeId(name);
  n.boot_id = "boot-1";
  n.cpus = cpus;
  n.memory = memory;
  n.driver_version = "550.54.15";
  n.gpus = std::move(gpus);
  for (unsigned i = 0; i < n.gpus.size(); ++i) {
    n.gpus[i].index = i;
    n.gpus[i].minor = i;
    n.gpus[i].uuid = uuid_of(name, i);
    for (unsigned k = 0; k < n.gpus[i].mig.instances.size(); ++k)
      n.gpus[i].mig.instances[k].uuid =
          DeviceUuid("MIG-" + name + "-" + std::to_string(i) + "-" + std::to_string(k));
  }
  return n;
}
inline Node node_of(const std::string& name, std::size_t count, const Gpu& each, int cpus = 64) {
  return node_of(name, std::vector<Gpu>(count, each), cpus);
}
inline void link_nvlink(Node& n, unsigned a, unsigned b, int nvlinks) {
  n.links.push_back({n.gpus[a].uuid, n.gpus[b].uuid, LinkKind::nvlink, nvlinks});
}

// ---- jobs ---------------------------------------------------------------------------------------

// Resolved, as the scheduler sees it.
inline JobSpec job(Tier tier = Tier::batch) {
  JobSpec s;
  s.name = "work";
  s.argv = {"/bin/true"};
  s.command_text = "/bin/true";
  s.workdir = "/";
  s.tier = tier;
  s.isolation = Isolation::strict;
  return s;
}
inline JobSpec whole_gpus(int count, Tier tier = Tier::batch) {
  JobSpec s = job(tier);
  s.gpus.count = count;
  return s;
}
inline JobSpec share_of(Bytes memory, Tier tier = Tier::batch) {
  JobSpec s = job(tier);
  s.gpus.memory = memory;
  s.isolation = Isolation::watched;
  return s;
}
inline JobSpec strict_memory(Bytes memory, Tier tier = Tier::batch) {
  JobSpec s = share_of(memory, tier);
  s.isolation = Isolation::strict;
  return s;
}
inline JobSpec of_type(JobSpec s, std::vector<std::string> types) {
  s.gpus.types = std::move(types);
  return s;
}
inline JobSpec lasting(JobSpec s, Duration time) {
  s.time = time;
  return s;
}
inline JobSpec named(JobSpec s, const std::string& name) {
  s.name = name;
  return s;
}

inline control::Identity person(const std::string& user, std::uint32_t uid) {
  control::Identity who;
  who.uid = uid;
  who.gid = uid;
  who.groups = {uid};
  who.user = user;
  who.home = "/home/" + user;
  return who;
}
inline control::Identity alice() { return person("alice", 1001); }
inline control::Identity bob() { return person("bob", 1002); }

// ---- what the scheduler sees --------------------------------------------------------------------

inline schedule::Snapshot snapshot_of_nodes(std::vector<Node> nodes) {
  schedule::Snapshot s;
  s.version = 1;
  for (Node& n : nodes) s.nodes.push_back({std::move(n), true});
  return s;
}

// Jobs are numbered in the order in which they are added, one second apart.
inline JobId submit(schedule::Snapshot& s, JobSpec spec, const std::string& user = "alice") {
  const JobId id(s.waiting.size() + 1);
  s.waiting.push_back({id, std::make_shared<const JobSpec>(std::move(spec)), user,
                       at(static_cast<std::int64_t>(id.value) - 1000), Instant{}});
  return id;
}

inline Grant whole_grant(const Node& n, const std::vector<unsigned>& indices) {
  Grant g;
  g.node = n.id;
  for (const unsigned i : indices)
    g.devices.push_back({DeviceKind::whole_gpu, n.gpus[i].uuid, n.gpus[i].uuid,
                         n.gpus[i].memory_total.value_or(Bytes{}), 100});
  return g;
}
inline Grant share_grant(const Node& n, unsigned index, Bytes memory) {
  Grant g;
  g.node = n.id;
  g.devices.push_back({DeviceKind::share, n.gpus[index].uuid, n.gpus[index].uuid, memory, 100});
  g.isolation = Isolation::watched;
  g.domain = "watched";
  return g;
}
// Somebody holds it; job numbers of holders begin at 1000, far from those that wait.
inline AttemptId hold(schedule::Snapshot& s, Grant grant, std::optional<Instant> expected_end,
                      Tier tier = Tier::batch, const std::string& user = "carol") {
  const AttemptId id{JobId(1000 + s.holdings.size()), 1};
  s.holdings.push_back(
      {id, "held", user, tier, std::move(grant), t0 - hours(1), expected_end, false});
  return id;
}

// Applies a plan: what it placed is held, as `admit` would have it.
inline schedule::Snapshot applied(schedule::Snapshot s, const schedule::Plan& plan) {
  for (const schedule::Placement& p : plan.placements) {
    const auto it = std::find_if(s.waiting.begin(), s.waiting.end(),
                                 [&](const schedule::WaitingJob& w) { return w.id == p.job; });
    if (it == s.waiting.end()) continue;
    s.holdings.push_back({AttemptId{p.job, 1}, it->spec->name, it->user, *it->spec->tier, p.grant,
                          t0, std::nullopt, false});
    s.waiting.erase(it);
  }
  ++s.version;
  return s;
}

// ---- what a node tells --------------------------------------------------------------------------

inline control::NodeReport report_of(const Node& n, Instant when = t0,
                                     std::vector<control::AttemptSeen> attempts = {}) {
  // Each is newer than those that were made before.
  static std::atomic<std::uint64_t> sequence{0};
  control::NodeReport r;
  r.sequence = ++sequence;
  r.at = when;
  r.made = when;
  r.node = n;
  r.attempts = std::move(attempts);
  return r;
}

inline control::AttemptSeen running(AttemptId id, std::uint64_t generation, Instant started) {
  control::AttemptSeen s;
  s.attempt = id;
  s.generation = generation;
  s.phase = control::AttemptPhase::running;
  s.pid = 100 + static_cast<std::int64_t>(id.job.value);
  s.started = started;
  return s;
}
inline control::AttemptSeen exited(AttemptId id, std::uint64_t generation, Instant started,
                                   Instant ended, ExitStatus exit, bool gone = true) {
  control::AttemptSeen s = running(id, generation, started);
  s.phase = control::AttemptPhase::exited;
  s.ended = ended;
  s.exit = std::move(exit);
  s.processes_gone = gone;
  return s;
}
inline ExitStatus exit_code(int code) {
  ExitStatus e;
  e.code = code;
  return e;
}

}  // namespace takt::testing
