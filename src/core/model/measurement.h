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

// The counters of a sketch as plain values, so that they can be stored and merged exactly; what
// they mean is in core/insight/sketch.h. Quantiles alone cannot be merged.
struct SketchData {
  std::int64_t zeros = 0;            // values too small for a bin
  std::map<int, std::int64_t> bins;  // bin index -> count, counts > 0
  double sum = 0;
  double max = 0;
  bool operator==(const SketchData&) const = default;
};

// One finished (or still running) attempt as measured. Memory is per device: the largest device's.
struct AttemptMeasurement {
  AttemptId attempt;
  std::string workload;
  std::string user;
  Tier declared_tier = Tier::experimental;
  bool ended = false;
  Duration waited;  // submit to start
  Duration ran;     // start to end, or to now
  int devices = 0;
  DeviceKind device_kind = DeviceKind::whole_gpu;
  std::optional<Bytes> granted_memory;  // on one device
  std::optional<Bytes> requested_memory;
  Measured<Bytes> memory_peak = missing(MissingKind::no_sample_yet);
  Measured<Bytes> memory_mean = missing(MissingKind::no_sample_yet);  // over time
  // Share of the devices' run time covered by valid memory samples, 0-1, and their number.
  double memory_coverage = 0;
  std::int64_t memory_samples = 0;
  // True: the driver told no memory per process; the numbers are the device's, which it had alone.
  bool memory_of_device = false;
  // By metric: "sm_active", "tensor_active", "dram_active", "busy" (the best rung there is), all as
  // ratios 0-1. Every device is one sample in each report. `sketches` has the same keys and merges.
  std::map<std::string, Quantiles> quantiles;
  std::map<std::string, SketchData> sketches;
  BusySource busy_source = BusySource::none;
  // A device shared with others, where processes cannot be told apart: "shared, not attributable".
  bool attributable = true;
  // Share of the devices' run time covered by valid "busy" samples, 0-1, and their number.
  double coverage = 0;
  std::int64_t samples = 0;
  std::map<std::string, std::int64_t> missing_samples;  // "busy: reason", "memory: reason" -> count
  std::int64_t idle_held_samples = 0;  // of `samples`: not busy while memory was held
  std::int64_t bursts = 0;             // changes from idle to busy, over all devices
  int devices_unused = 0;              // well covered, and never busy in any sample
  std::optional<Instant> first_sample;
  std::optional<Instant> last_sample;
  double gpu_seconds = 0;  // held: devices x run time
};

enum class Category { serving, training, batch, experimental, unknown };

struct SizeAdvice {
  std::string what;        // "memory"
  std::string from;        // "80 GiB (whole GPU)"
  std::string to;          // "--memory 15GiB"
  std::string evidence;    // "peak 11.2 GiB in 40 of 40 attempts, coverage 96 %"
  std::string confidence;  // "low", "medium"
  std::string undo;
};

struct WorkloadSummary {
  std::string workload;
  std::map<std::string, int> users;  // name -> attempts
  Tier declared_tier = Tier::experimental;
  Category category = Category::unknown;
  std::string confidence;             // "provisional" in this form
  std::vector<std::string> evidence;  // sentences with numbers
  int attempts = 0;
  int running = 0;
  std::optional<Bytes> granted_memory;
  Measured<Bytes> memory_peak = missing(MissingKind::no_sample_yet);
  Measured<Bytes> memory_mean = missing(MissingKind::no_sample_yet);
  Measured<Bytes> memory_needed = missing(MissingKind::no_sample_yet);  // peak with the margin
  double memory_coverage = 0;
  std::int64_t memory_samples = 0;
  bool memory_of_device = false;                   // in at least one attempt
  DeviceKind device_kind = DeviceKind::whole_gpu;  // of the newest attempt, like granted_memory
  int devices = 0;                                 // of the newest attempt
  bool attributable = true;                        // false: in no attempt could "busy" be told
  std::map<std::string, Quantiles> quantiles;
  BusySource busy_source = BusySource::none;
  double coverage = 0;
  std::int64_t samples = 0;
  std::map<std::string, std::int64_t> missing_samples;
  Duration waited_mean;
  Duration waited_max;
  Duration ran_mean;
  double gpu_seconds = 0;
  std::vector<SizeAdvice> advice;
  std::vector<std::string> notes;  // sentences: why there is no advice, what limits the numbers
};

std::string to_string(Category category);

}  // namespace takt
