#pragma once
// Measures running attempts from the nodes' reports, keeps what finished ones measured, and
// summarises by workload. Losing any of it loses advice, never jobs.
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/control/state.h"
#include "core/insight/attempt_meter.h"
#include "core/model/measurement.h"
#include "core/model/policy.h"
#include "edge/store/telemetry.h"

namespace takt::server {

class Measurements {
 public:
  struct Options {
    Duration interval = seconds(1);     // expected between reports
    std::size_t finished_max = 20'000;  // kept in memory; telemetry.db holds more
    std::function<void(const std::string&)> note;
  };
  // `telemetry` may be null: then nothing outlives the server.
  Measurements(std::unique_ptr<store::Telemetry> telemetry, Options options);

  // Brings back what finished attempts measured.
  void recover();
  // Takes the reports and facts of one batch, in the loop's thread.
  void take(const control::State& state, const std::vector<control::NodeReport>& reports,
            const std::vector<control::Fact>& facts);
  // By workload, running attempts included. From any thread.
  std::vector<WorkloadSummary> summaries(const Policy& policy, Instant now) const;

 private:
  insight::AttemptMeter meter_of(const control::Job& job) const;
  void begin(const control::State& state);
  void finish(const control::State& state, const control::Exited& exited);

  std::unique_ptr<store::Telemetry> telemetry_;
  Options options_;
  mutable std::mutex mutex_;
  std::map<AttemptId, insight::AttemptMeter> running_;
  std::map<AttemptId, AttemptMeasurement> finished_;
  bool telemetry_failed_ = false;
};

}  // namespace takt::server
