#include "app/server/measurements.h"

#include "core/insight/workload.h"
#include "edge/codec/telemetry_json.h"

namespace takt::server {

Measurements::Measurements(std::unique_ptr<store::Telemetry> telemetry, Options options)
    : telemetry_(std::move(telemetry)), options_(std::move(options)) {}

void Measurements::recover() {
  if (!telemetry_) return;
  auto found = telemetry_->load_summaries(std::nullopt, options_.finished_max);
  if (!found) {
    options_.note("earlier measurements cannot be read: " + found.error().message);
    return;
  }
  std::size_t unreadable = 0;
  const std::lock_guard lock(mutex_);
  for (const store::Summary& summary : *found) {
    auto measurement = codec::decode_measurement(summary.json);
    if (measurement)
      finished_[measurement->attempt] = std::move(*measurement);
    else
      ++unreadable;
  }
  if (unreadable > 0)
    options_.note(std::to_string(unreadable) +
                  " earlier measurements cannot be read by this version and are left out");
}

insight::AttemptMeter Measurements::meter_of(const control::Job& job) const {
  const control::Attempt& attempt = *job.attempt;
  insight::AttemptSubject subject;
  subject.attempt = attempt.id;
  subject.workload = job.spec().name;
  subject.user = job.submitter().user;
  subject.tier = *job.spec().tier;
  subject.grant = attempt.grant;
  subject.requested_memory = job.spec().gpus.memory;
  subject.submitted = job.submission->at;
  subject.started = *attempt.started;
  insight::MeterOptions meter;
  meter.interval = options_.interval;
  return insight::AttemptMeter(std::move(subject), meter);
}

void Measurements::begin(const control::State& state) {
  for (const JobId id : state.holding) {
    const control::Job& job = state.jobs.at(id);
    const control::Attempt& attempt = *job.attempt;
    if (!attempt.started || attempt.exit || running_.count(attempt.id) != 0) continue;
    running_.emplace(attempt.id, meter_of(job));
  }
}

void Measurements::finish(const control::State& state, const control::Exited& exited) {
  auto it = running_.find(exited.attempt);
  if (it == running_.end()) {
    // Started and ended between two reports: nothing was measured, and that is what is kept.
    const auto job = state.jobs.find(exited.attempt.job);
    if (job == state.jobs.end() || !job->second.attempt ||
        job->second.attempt->id != exited.attempt || !job->second.attempt->started)
      return;
    it = running_.emplace(exited.attempt, meter_of(job->second)).first;
  }
  it->second.end(exited.at);
  AttemptMeasurement measurement = it->second.measurement(exited.at, true);
  running_.erase(it);
  if (telemetry_) {
    const auto saved =
        telemetry_->save_summary(measurement.workload, to_string(exited.attempt), exited.at.us,
                                 codec::encode_measurement(measurement));
    if (!saved && !telemetry_failed_)
      options_.note("measurements are not kept: " + saved.error().message);
    telemetry_failed_ = !saved;
  }
  finished_[exited.attempt] = std::move(measurement);
  while (finished_.size() > options_.finished_max) finished_.erase(finished_.begin());
}

void Measurements::take(const control::State& state,
                        const std::vector<control::NodeReport>& reports,
                        const std::vector<control::Fact>& facts) {
  if (reports.empty() && facts.empty()) return;
  const std::lock_guard lock(mutex_);
  begin(state);
  for (const control::NodeReport& report : reports)
    for (auto& [id, meter] : running_) meter.observe(report.node, report.at);
  for (const control::Fact& fact : facts)
    if (const auto* exited = std::get_if<control::Exited>(&fact)) finish(state, *exited);
}

std::vector<WorkloadSummary> Measurements::summaries(const Policy& policy, Instant now) const {
  std::vector<AttemptMeasurement> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, measurement] : finished_) all.push_back(measurement);
    for (const auto& [id, meter] : running_) all.push_back(meter.measurement(now, false));
  }
  return insight::summarise_all(all, policy);
}

}  // namespace takt::server
