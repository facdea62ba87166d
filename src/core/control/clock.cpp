// The host's wall clock may be set while jobs run: what is remembered moves along, so that spans
// stay right.
#include <algorithm>

#include "core/base/planted.h"
#include "core/control/conclude.h"
#include "core/control/handle.h"

namespace takt::control {
namespace {

Duration offset_of(const ClockReading& reading) {
  return Duration{reading.wall.us - reading.since_boot.us};
}

// By how much it was set since the mark was made; of another boot nothing can be said.
Duration set_since(const ClockMark& mark, const ClockReading& reading) {
  if (mark.boot_id != reading.boot_id) return {};
  const Duration by = offset_of(reading) - mark.offset;
  return by < kClockSetMin && Duration{-by.us} < kClockSetMin ? Duration{} : by;
}

// Over a restart of the host nobody knows by how much it was set; by how much at least it was set
// back, since what has happened is not in the future, and no pause is longer than the longest.
Duration set_back(const State& state, Instant now) {
  Instant latest = now;
  const auto past = [&](Instant at) { latest = std::max(latest, at); };
  for (const JobId id : state.holding) {
    const Attempt& a = *state.jobs.at(id).attempt;
    past(a.granted);
    if (a.started) past(*a.started);
    if (a.ended) past(*a.ended);
  }
  for (const JobId id : state.waiting) past(state.jobs.at(id).not_before - kRetryPauseMax);
  for (const auto& [user, usage] : state.usage) past(usage.at);
  return now - latest;
}

bool says_something(const ClockMark& mark, const ClockReading& reading) {
  return mark.boot_id != reading.boot_id || set_since(mark, reading) != Duration{};
}

}  // namespace

std::optional<ClockSet> clock_set(const State& state, const ClockReading& reading) {
  if (!says_something(state.clock, reading) || planted(Planted::clock_ignored)) return std::nullopt;
  const Duration by = state.clock.boot_id == reading.boot_id ? set_since(state.clock, reading)
                                                             : set_back(state, reading.wall);
  return ClockSet{by, reading.boot_id, offset_of(reading)};
}

void observe_clock(Cluster& cluster, const ClockReading& reading) {
  if (!says_something(cluster.clock, reading)) return;
  const Duration by = set_since(cluster.clock, reading);
  cluster.clock = {reading.boot_id, offset_of(reading)};
  cluster.began = cluster.began + by;
  for (auto& [id, seen] : cluster.nodes) {
    seen.received = seen.received + by;
    if (seen.lease_ends) seen.lease_ends = *seen.lease_ends + by;
    for (auto& [attempt, since] : seen.absent) since = since + by;
  }
}

}  // namespace takt::control
