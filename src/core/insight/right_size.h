#pragma once
// "Could be smaller": advice from the observed peak with a margin, against what is granted. By the
// maximum and never by a percentile (FACTS B10), never from missing numbers, never below the peak.
#include <string>
#include <vector>

#include "core/model/measurement.h"
#include "core/model/policy.h"

namespace takt::insight {

struct RightSizeThresholds {
  double far_under = 0.6;     // advice when peak with margin is at most this share of the grant
  double coverage_min = 0.5;  // of the memory samples
  // For "medium" confidence; everything else is "low".
  int medium_attempts_min = 5;
  double medium_coverage_min = 0.8;
};

struct RightSizing {
  std::vector<SizeAdvice> advice;
  std::vector<std::string> notes;  // sentences: why there is none
};

RightSizing right_size(const WorkloadSummary& summary,
                       const std::vector<AttemptMeasurement>& attempts, const Policy& policy,
                       const RightSizeThresholds& thresholds = {});

// The peak with the policy's margin on it.
Bytes with_margin(Bytes peak, int margin_percent);
// Up to the next size that a person would ask for: 1 GiB steps up to 16 GiB, 2 up to 64, 4 above.
Bytes sensible_size(Bytes size);

}  // namespace takt::insight
