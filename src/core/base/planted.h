#pragma once
// Mistakes that are planted on purpose, to see that the fault simulator finds them. Only the
// program of tests/core/replay that does so is built with TAKT_PLANTED_FAULTS and says which one is
// in force; in what users run the question is answered "no" when it is compiled.

namespace takt {

enum class Planted {
  none,
  // The order of a turn.
  answer_before_sync,
  start_before_sync,
  view_before_sync,
  failed_sync_kept,
  // Messages and nodes.
  late_start_obeyed,
  late_report_believed,
  boot_ignored,
  lease_ignored,
  silence_ignored,
  unseen_start_is_lost,
  // Devices.
  released_while_alive,
  ended_holds_nothing,
  stranger_ignored,
  // Journal and state.
  snapshot_one_fact_short,
  counters_not_kept,
  requeue_forgotten,
  request_made_twice,
  // What people asked for, and are told.
  hold_ignored,
  cancel_forgotten,
  limit_from_submission,
  clock_ignored,
  reason_forgotten,
  count
};

#ifdef TAKT_PLANTED_FAULTS
bool planted(Planted fault);
#else
constexpr bool planted(Planted) { return false; }
#endif

}  // namespace takt
