#include "core/replay/machine.h"

#include <algorithm>

namespace takt::replay {
namespace {

using control::AttemptPhase;
using control::AttemptSeen;

// Between TERM and KILL for what a main process leaves behind (LauncherOptions::leftover_grace).
constexpr Duration kLeftoverGrace = seconds(5);

GpuProcess process_on(const DeviceGrant& device, AttemptId attempt, std::int64_t pid,
                      Bytes memory) {
  GpuProcess p;
  p.pid = pid;
  p.name = "program";
  p.user = "user";
  p.memory = memory;
  p.attempt = attempt;
  if (device.kind == DeviceKind::mig_instance) p.mig_instance = device.uuid;
  return p;
}

void show(Node& node, const Grant& grant, AttemptId attempt, std::int64_t pid, int percent) {
  for (const DeviceGrant& device : grant.devices)
    for (Gpu& gpu : node.gpus) {
      if (gpu.uuid != device.gpu || !gpu.processes) continue;
      const Bytes memory{device.memory.value / 100 * percent};
      gpu.processes->push_back(process_on(device, attempt, pid, memory));
      gpu.memory_used = *gpu.memory_used + memory;
    }
}

}  // namespace

Machine::Machine(Node node, std::uint64_t seed, Instant truth, Witness& witness)
    : clock(truth),
      node_(std::move(node)),
      seed_(seed),
      random_(Random(seed).fork(node_.id.value)),
      witness_(witness),
      conditions_(node_.gpus.size()) {
  node_.boot_id = node_.id.value + "-boot-1";
}

void Machine::advance(Instant truth) {
  if (down_until_) {
    if (truth < *down_until_) return;
    down_until_.reset();
    clock.boot(truth);
    node_.boot_id = node_.id.value + "-boot-" + std::to_string(++boots_);
  }
  for (auto& [id, record] : records_) {
    if (record.shim == Shim::coming && record.begins <= truth) begin(id, record, truth);
    if (record.execution != nullptr) go_on(record, truth);
  }
  enforce_lease(truth);
  std::erase_if(shown_, [&](const Shown& s) { return s.until <= truth; });
  for (Condition& c : conditions_)
    if (c.sick_until <= truth) c.health = GpuHealth::ok;
}

bool Machine::start(const control::LaunchOrder& order, Instant truth) {
  const auto known = records_.find(order.attempt);
  if (known != records_.end()) return true;  // with whatever generation: not started again
  if (records_full_) return false;
  Record record;
  record.generation = order.generation;
  record.grant = order.grant;
  record.program = program_of(seed_, order.attempt, order.argv.front());
  record.pid = ++next_pid_;
  record.begins = truth + random_.between({}, shim_delay_max_);
  records_.emplace(order.attempt, std::move(record));
  return true;
}

void Machine::begin(AttemptId attempt, Record& record, Instant truth) {
  record.shim = Shim::at_work;
  if (record.never) return conclude(record, ExitCause::lost, "stopped before it started", truth);
  if (!record.program.starts)
    return conclude(record, ExitCause::start_failed, "there is no such program", truth);
  Execution execution;
  execution.attempt = attempt;
  execution.generation = record.generation;
  execution.node = node_.id;
  execution.grant = record.grant;
  execution.program = record.program;
  execution.began = record.begins;
  record.execution = witness_.began(std::move(execution));
  record.wall_began = clock.wall(record.begins);
}

void Machine::conclude(Record& record, ExitCause cause, const std::string& why, Instant truth) {
  record.exit.emplace();
  record.exit->cause = cause;
  record.exit->message = why;
  record.wall_ended = clock.wall(truth);
  if (record.execution == nullptr) record.shim = Shim::done;
}

void Machine::go_on(Record& record, Instant truth) {
  Execution& execution = *record.execution;
  if (record.shim == Shim::at_work && record.kill_due && *record.kill_due <= truth &&
      !record.killed)
    record.killed = record.kill_due;
  if (!execution.ended) {
    const Instant own = execution.began + record.program.runs;
    Instant at = own;
    if (record.term) at = std::min(at, *record.term + record.program.minds_term);
    if (record.killed) at = std::min(at, *record.killed + record.program.outlives_kill);
    if (at > truth) return;
    at = std::max(at, execution.began);
    execution.by_itself = at == own;
    end_main(record, at);
  }
  if (!execution.gone) end_child(record, truth);
}

void Machine::end_main(Record& record, Instant at) {
  record.execution->ended = at;
  if (record.shim != Shim::at_work) return;  // nobody was there to see how
  record.exit.emplace();
  record.wall_ended = clock.wall(at);
  if (record.execution->by_itself) {
    record.exit->code = record.program.exit_code;
  } else {
    record.exit->cause = ExitCause::signalled;
    record.exit->signal = record.killed ? 9 : 15;
  }
}

// What the main process left behind gets TERM, and KILL after a while.
void Machine::end_child(Record& record, Instant truth) {
  Execution& execution = *record.execution;
  if (record.program.child == Duration{}) {
    execution.gone = execution.ended;
  } else {
    if (record.shim == Shim::at_work && !record.child_killed)
      record.child_killed = *execution.ended + kLeftoverGrace;
    Instant at = *execution.ended + record.program.child;
    if (record.child_killed) at = std::min(at, *record.child_killed + record.program.outlives_kill);
    if (at <= truth) execution.gone = at;
  }
  if (!execution.gone) return;
  if (record.shim == Shim::at_work) record.shim = Shim::done;
  if (*execution.gone + record.program.shown > truth)
    shown_.push_back(
        {execution.attempt, record.grant, record.pid, *execution.gone + record.program.shown});
}

void Machine::stop(AttemptId attempt, Duration grace, Instant truth) {
  const auto it = records_.find(attempt);
  if (it == records_.end()) return;
  Record& record = it->second;
  if (record.execution == nullptr) {
    record.never = record.shim == Shim::coming;
    return;
  }
  if (record.execution->gone) return;
  if (!record.term) {
    record.term = truth;
    record.execution->told_to_stop = truth;
    witness_.told_to_stop(*record.execution);
  }
  const Instant due = truth + grace;
  record.kill_due = record.kill_due ? std::min(*record.kill_due, due) : due;
}

bool Machine::forget(AttemptId attempt) {
  const auto it = records_.find(attempt);
  if (it == records_.end()) return true;
  if (it->second.alive() || !it->second.exit) return false;
  records_.erase(it);
  return true;
}

std::vector<std::string> Machine::devices(AttemptId attempt) const {
  std::vector<std::string> uuids;
  if (const auto it = records_.find(attempt); it != records_.end())
    for (const DeviceGrant& d : it->second.grant.devices) uuids.push_back(d.gpu.value);
  return uuids;
}

std::vector<AttemptSeen> Machine::scan(Instant truth) {
  std::vector<AttemptSeen> all;
  for (auto& [id, record] : records_) {
    AttemptSeen seen;
    seen.attempt = id;
    seen.generation = record.generation;
    seen.pid = record.pid;
    if (record.shim == Shim::killed) {  // its work is done from here
      if (record.kill_due && *record.kill_due <= truth && !record.killed) record.killed = truth;
      if (record.execution->ended && !record.child_killed)
        record.child_killed = truth + kLeftoverGrace;
      if (record.execution->gone && !record.exit)
        conclude(record, ExitCause::lost, "its shim was killed: how it ended is unknown", truth);
    }
    seen.started = record.wall_began;
    if (record.exit) {
      seen.phase = AttemptPhase::exited;
      seen.ended = record.wall_ended;
      seen.exit = record.exit;
      seen.processes_gone = !record.alive();
    } else {
      seen.phase = record.execution != nullptr ? AttemptPhase::running : AttemptPhase::starting;
    }
    all.push_back(std::move(seen));
  }
  return all;
}

Node Machine::look(Instant truth) const {
  Node node = node_;
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    Gpu& gpu = node.gpus[i];
    const Condition& c = conditions_[i];
    if (c.hot_until > truth) {
      gpu.temperature_celsius = 93;
      gpu.throttle_reasons = std::vector<std::string>{"hw_thermal_slowdown"};
    }
    if (c.health != GpuHealth::ok) {
      gpu.health = c.health;
      gpu.health_reason = "simulated";
      const bool lost = c.health == GpuHealth::lost;
      gpu.processes = missing(lost ? MissingKind::device_lost : MissingKind::timed_out);
      gpu.memory_used = missing(lost ? MissingKind::device_lost : MissingKind::timed_out);
      continue;
    }
    if (c.occupied_until > truth) {
      GpuProcess foreign;
      foreign.pid = 7;
      foreign.name = "python3";
      foreign.user = "somebody";
      foreign.memory = gibibytes(3);
      gpu.memory_used = *gpu.memory_used + gibibytes(3);
      gpu.processes->push_back(std::move(foreign));
    }
  }
  for (const auto& [id, record] : records_)
    if (record.alive()) show(node, record.grant, id, record.pid, record.program.memory_percent);
  for (const Shown& s : shown_)
    if (s.until > truth) show(node, s.grant, s.attempt, s.pid, 1);
  return node;
}

void Machine::lease(Duration since_boot) {
  lease_ = lease_ ? std::max(*lease_, since_boot) : since_boot;
}

bool Machine::lease_lapsed(Instant truth) const {
  return !lease_ || clock.since_boot(truth) > *lease_;
}

// When the clock since boot showed it, by a little too early at most: drifts are small.
Instant Machine::truth_of(Duration since_boot, Instant truth) const {
  return truth - (clock.since_boot(truth) - since_boot);
}

void Machine::enforce_lease(Instant truth) {
  if (!lease_ || !lease_lapsed(truth)) return;
  const Instant at = truth_of(*lease_, truth);
  for (auto& [id, record] : records_) {
    if (record.shim == Shim::coming) record.never = true;
    if (!record.alive()) continue;
    Execution& execution = *record.execution;
    const Instant end = std::max(at, execution.began);
    if (!execution.ended) execution.ended = end;
    execution.gone = end;
    execution.by_lease = true;
    record.shim = Shim::done;
    if (!record.exit)
      conclude(record, ExitCause::lost, "ended: nothing was heard from the controller", end);
  }
}

void Machine::crash(Instant truth, Duration down) {
  for (auto& [id, record] : records_)
    if (record.alive()) {
      if (!record.execution->ended) record.execution->ended = truth;
      record.execution->gone = truth;
    }
  records_.clear();
  shown_.clear();
  lease_.reset();
  down_until_ = truth + down;
}

void Machine::agent_died() {
  std::erase_if(records_, [&](const auto& entry) {
    return entry.second.shim == Shim::coming && random_.chance(50);
  });
}

bool Machine::kill_a_shim(Random& random) {
  std::vector<Record*> at_work;
  for (auto& [id, record] : records_)
    if (record.shim == Shim::at_work && record.alive()) at_work.push_back(&record);
  if (at_work.empty()) return false;
  at_work[random.below(at_work.size())]->shim = Shim::killed;
  return true;
}

void Machine::sicken(std::size_t gpu, GpuHealth health, Instant until, Instant truth) {
  conditions_[gpu].health = health;
  conditions_[gpu].sick_until = until;
  if (health != GpuHealth::lost) return;
  for (auto& [id, record] : records_) {  // programs fail soon when their GPU is gone
    const bool on_it =
        std::any_of(record.grant.devices.begin(), record.grant.devices.end(),
                    [&](const DeviceGrant& d) { return d.gpu == node_.gpus[gpu].uuid; });
    if (!on_it || record.execution == nullptr || record.execution->ended) continue;
    record.program.runs =
        std::min(record.program.runs, truth + seconds(2) - record.execution->began);
    record.program.exit_code = 1;
    record.execution->program = record.program;
  }
}

void Machine::occupy(std::size_t gpu, Instant until) { conditions_[gpu].occupied_until = until; }
void Machine::heat(std::size_t gpu, Instant until) { conditions_[gpu].hot_until = until; }

void Machine::heal(Instant truth) {
  for (Condition& c : conditions_) c = {};
  records_full_ = false;
  shim_delay_max_ = milliseconds(300);
  if (down_until_ && *down_until_ > truth + seconds(5)) down_until_ = truth + seconds(5);
}

}  // namespace takt::replay
