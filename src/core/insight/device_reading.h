#pragma once
// What one report of a node says about one attempt on one of its devices: attribution, the range
// checks and the suspicion of zeros. No memory of earlier reports.
#include <array>
#include <cstddef>

#include "core/base/measured.h"
#include "core/base/quantities.h"
#include "core/model/device.h"
#include "core/model/grant.h"

namespace takt::insight {

struct MeterOptions;

struct DeviceReading {
  // Sum over the attempt's processes; zero if the list is known and has none of them.
  Measured<Bytes> process_memory = missing(MissingKind::no_sample_yet);
  // Of the whole GPU or MIG instance, if the attempt has it alone.
  Measured<Bytes> device_memory = missing(MissingKind::no_sample_yet);
  // Ratios 0-1 by rung: GPM SM activity, processes' SM share, GPU_UTIL.
  std::array<Measured<double>, 3> busy = {missing(MissingKind::no_sample_yet),
                                          missing(MissingKind::no_sample_yet),
                                          missing(MissingKind::no_sample_yet)};
  Measured<double> tensor = missing(MissingKind::no_sample_yet);
  Measured<double> dram = missing(MissingKind::no_sample_yet);
  bool process_memory_seen = false;  // at least one process of the attempt, with its memory
  bool process_busy_seen = false;    // at least one process of the attempt, with its SM share
  bool holds_memory = false;
};

// `index` is the device's place in the grant.
DeviceReading read_device(const Node& node, const Grant& grant, std::size_t index,
                          AttemptId attempt, const MeterOptions& options);

}  // namespace takt::insight
