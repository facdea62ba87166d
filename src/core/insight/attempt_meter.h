#pragma once
// Measures one attempt: takes the reports of its node and keeps what belongs to the attempt, in a
// bounded amount of memory. Pure: the time is what the caller says.
//
// Memory is the sum of the attempt's processes on a device. Where the driver never told one, a
// whole GPU or a MIG instance that the attempt had alone stands in with its own number, and says
// so. Busy follows the ladder of FACTS B2, per device: GPM SM activity, the processes' SM share,
// GPU_UTIL. All rungs are kept apart, and the best one with at least half as many samples as the
// fullest is reported: samples of two rungs are never mixed. On a share or a MIG instance only the
// processes' numbers count; where there are none the attempt is "shared, not attributable". A
// report stands for the time since the one before, if that is at most three times the usual
// interval; else the time between is a gap, counted as missing. Nothing is filled in.
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/measured.h"
#include "core/base/quantities.h"
#include "core/insight/device_reading.h"
#include "core/insight/sketch.h"
#include "core/model/device.h"
#include "core/model/grant.h"
#include "core/model/job_spec.h"
#include "core/model/measurement.h"

namespace takt::insight {

// The attempt as it was started.
struct AttemptSubject {
  AttemptId attempt;
  std::string workload;
  std::string user;
  Tier tier = Tier::experimental;
  Grant grant;
  std::optional<Bytes> requested_memory;
  Instant submitted;
  Instant started;
};

struct MeterOptions {
  Duration interval = seconds(1);  // expected between reports, until enough were seen to know
  double gap_factor = 3;           // a longer time than this many intervals is a gap
  double idle_max = 0.05;          // up to this ratio a device is idle
  // A zero while a process is on the device and it draws at least this share of its power limit (or
  // this many watts, where no limit is known) is suspect and counted as missing (FACTS C1, case 8;
  // idle boards draw 5-25 % of their limit).
  double suspect_power_ratio = 0.4;
  double suspect_power_watts = 200;
  std::int64_t unused_samples_min = 3;  // of a device, before it may be called unused
  double unused_coverage_min = 0.5;
};

class AttemptMeter {
 public:
  explicit AttemptMeter(AttemptSubject subject, MeterOptions options = {});

  // Takes one report of the node. Ignored: another node, a time before the start, after the end or
  // not after the last report's.
  void observe(const Node& node, Instant at);
  // Nothing after `at` belongs to the attempt any more. The last report is taken back if it is
  // later: it comes together with the news of the end, and shows devices that the attempt has
  // already left.
  void end(Instant at);
  // What is known when it is `now_or_end`: the present, or the end of the attempt if it has ended.
  AttemptMeasurement measurement(Instant now_or_end, bool ended) const;

  const AttemptSubject& subject() const { return subject_; }

 private:
  // Of a metric on a device.
  struct Series {
    Sketch sketch;
    std::int64_t covered_us = 0;
    std::map<std::string, std::int64_t> missing;
    std::int64_t idle_held = 0;
    std::int64_t bursts = 0;
    bool idle_before = false;
  };
  struct MemorySeries {
    std::optional<Bytes> peak;
    double byte_us = 0;   // integral over the covered time
    double byte_sum = 0;  // of the samples, for a mean where no time is covered
    std::int64_t covered_us = 0;
    std::int64_t samples = 0;
    std::map<std::string, std::int64_t> missing;
  };
  static constexpr std::size_t rungs = 3;  // gpm, process, gpu_util: best first
  struct Device {
    std::array<Series, rungs> busy;
    Series tensor;
    Series dram;
    MemorySeries by_process;
    MemorySeries by_device;
  };

  struct Pending {
    Instant at;
    std::vector<DeviceReading> readings;  // as in the grant
  };

  void take_pending();
  AttemptMeasurement measure(Instant now_or_end, bool ended) const;
  void take(Device& device, const DeviceReading& reading, Duration covered);
  static void take_memory(MemorySeries& series, const Measured<Bytes>& value, Duration covered);
  void take_ratio(Series& series, const Measured<double>& value, bool held, Duration covered);
  Duration covered_since_last(Instant at);
  Duration usual_interval() const;
  std::size_t chosen_rung() const;
  void fill_memory(AttemptMeasurement& m, double run_us) const;
  void fill_busy(AttemptMeasurement& m, double run_us) const;
  static void fill_ratio(AttemptMeasurement& m, const std::string& metric,
                         const std::vector<const Series*>& series);

  AttemptSubject subject_;
  MeterOptions options_;
  std::vector<Device> devices_;     // as in the grant
  std::deque<Duration> intervals_;  // the last ones, bounded
  std::optional<Pending> pending_;  // the last report, until the next one or the end confirms it
  std::optional<Instant> first_;
  std::optional<Instant> last_;
  std::optional<Instant> end_;
  std::int64_t missed_reports_ = 0;
  bool process_memory_seen_ = false;
  bool process_busy_seen_ = false;
};

}  // namespace takt::insight
