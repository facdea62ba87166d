#pragma once
// What a workload looks like from its measurements: serving, training, batch, experimental or,
// quite legally, unknown. Provisional always: the thresholds are proposals (FACTS B14), tested on
// nothing yet. The declared tier stays in force whatever comes out; a contradiction is only said.
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/quantities.h"
#include "core/model/measurement.h"

namespace takt::insight {

struct ClassifyThresholds {
  std::int64_t samples_min = 20;
  double coverage_min = 0.5;
  double idle_max = 0.05;  // as in MeterOptions
  // Many short alike attempts on one device each: batch.
  int batch_attempts_min = 8;
  double batch_run_spread_max = 3;  // longest / mean run
  // Steady and high: training on a gang, or on one device with tensor activity.
  double high_busy = 0.6;  // FACTS B14: P75 SM >= 0.6
  double steady_idle_share_max = 0.2;
  double high_tensor = 0.28;  // FACTS B14: P75 >= 0.3 of the ceiling 0.93
  // Low duty in bursts while memory is held all the time: serving.
  double low_busy = 0.25;                  // FACTS B14: P75 SM < 0.25; here of the mean
  std::int64_t serving_bursts_min = 5;     // of each attempt
  double serving_memory_steady_min = 0.8;  // mean / peak
  // Mostly idle with memory held: experimental.
  double idle_held_share_min = 0.5;
  Duration long_run =
      minutes(10);  // below: the run is called short, as a weak point of the evidence
};

struct Classification {
  Category category = Category::unknown;
  std::string confidence = "provisional";
  std::vector<std::string> evidence;  // sentences with numbers; for unknown: what is missing
};

// `summary` as `summarise` merged it from `attempts`, of which only the run times are read here.
Classification classify(const WorkloadSummary& summary,
                        const std::vector<AttemptMeasurement>& attempts,
                        const ClassifyThresholds& thresholds = {});

}  // namespace takt::insight
