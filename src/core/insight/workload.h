#pragma once
// What the attempts of one workload say together. The order of the attempts does not matter.
#include <string>
#include <vector>

#include "core/insight/classify.h"
#include "core/insight/right_size.h"
#include "core/model/measurement.h"
#include "core/model/policy.h"

namespace takt::insight {

// Peak: the maximum. Means: weighted by covered time. Quantiles: of the merged sketches. "busy"
// merges only attempts measured by the same source: the best one that has at least half as many
// samples as the fullest; the others are named in `notes`. Grant, request and tier are the newest
// attempt's. Category, evidence, advice and notes are filled in.
WorkloadSummary summarise(const std::string& workload, std::vector<AttemptMeasurement> attempts,
                          const Policy& policy, const ClassifyThresholds& classify_by = {},
                          const RightSizeThresholds& size_by = {});

// One summary a workload, by name.
std::vector<WorkloadSummary> summarise_all(const std::vector<AttemptMeasurement>& attempts,
                                           const Policy& policy);

}  // namespace takt::insight
