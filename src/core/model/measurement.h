#pragma once
// What was measured of an attempt and of a workload. Every number carries coverage and source.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/measured.h"
#include "core/base/quantities.h"
#include "core/model/device.h"
#include "core/model/grant.h"
#include "core/model/job_spec.h"

namespace takt {

// Quantiles of a ratio (0-1) or a percentage, over the samples that were valid.
struct Quantiles {
  double p50 = 0;
  double p75 = 0;
  double p95 = 0;
  double p99 = 0;
  double mean = 0;
  double max = 0;
  std::int64_t samples = 0;
};

// One finished (or still running) attempt as measured. Memory is per device: the largest device's.
struct AttemptMeasurement {
  AttemptId attempt;
  std::string workload;
  Tier declared_tier = Tier::experimental;
  bool ended = false;
  Duration waited;                // submit to start
  Duration ran;                   // start to end, or to now
  int devices = 0;
  DeviceKind device_kind = DeviceKind::whole_gpu;
  std::optional<Bytes> granted_memory;  // on one device
  std::optional<Bytes> requested_memory;
  Measured<Bytes> memory_peak = missing(MissingKind::no_sample_yet);
  Measured<Bytes> memory_mean = missing(MissingKind::no_sample_yet);
  // By metric: "sm_active", "tensor_active", "dram_active" (ratios), "busy" (the best rung there is).
  std::map<std::string, Quantiles> quantiles;
  BusySource busy_source = BusySource::none;
  // A device shared with others, where processes cannot be told apart: "shared, not attributable".
  bool attributable = true;
  // Share of the run time covered by valid samples, 0-1.
  double coverage = 0;
  std::int64_t samples = 0;
  std::map<std::string, std::int64_t> missing_samples;  // reason -> count
  double gpu_seconds = 0;                               // held: devices x run time
};

enum class Category { serving, training, batch, experimental, unknown };

struct SizeAdvice {
  std::string what;      // "memory"
  std::string from;      // "80 GiB (whole GPU)"
  std::string to;        // "--memory 15GiB"
  std::string evidence;  // "peak 11.2 GiB in 40 of 40 attempts, coverage 96 %"
  std::string confidence;  // "low", "medium"
  std::string undo;
};

struct WorkloadSummary {
  std::string workload;
  std::map<std::string, int> users;  // name -> attempts
  Tier declared_tier = Tier::experimental;
  Category category = Category::unknown;
  std::string confidence;              // "provisional" in this form
  std::vector<std::string> evidence;   // sentences with numbers
  int attempts = 0;
  int running = 0;
  std::optional<Bytes> granted_memory;
  Measured<Bytes> memory_peak = missing(MissingKind::no_sample_yet);
  Measured<Bytes> memory_mean = missing(MissingKind::no_sample_yet);
  Measured<Bytes> memory_needed = missing(MissingKind::no_sample_yet);
  std::map<std::string, Quantiles> quantiles;
  BusySource busy_source = BusySource::none;
  double coverage = 0;
  std::int64_t samples = 0;
  Duration waited_mean;
  Duration waited_max;
  Duration ran_mean;
  double gpu_seconds = 0;
  std::vector<SizeAdvice> advice;
};

std::string to_string(Category category);

}  // namespace takt
