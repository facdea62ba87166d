#include "core/insight/attempt_meter.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/insight/device_reading.h"

namespace takt::insight {
namespace {

constexpr std::size_t intervals_max = 31;  // remembered, to know the usual one
constexpr std::size_t intervals_min = 3;   // before they are believed

void count_missing(std::map<std::string, std::int64_t>& counts, const Missing& why) {
  ++counts[to_string(why)];
}

void add_all(std::map<std::string, std::int64_t>& to, const std::string& prefix,
             const std::map<std::string, std::int64_t>& from) {
  for (const auto& [reason, count] : from) to[prefix + reason] += count;
}

double share(std::int64_t part, double whole) {
  return whole <= 0 ? 0 : std::clamp(static_cast<double>(part) / whole, 0.0, 1.0);
}

BusySource source_of(std::size_t rung) {
  if (rung == 0) return BusySource::gpm;
  return rung == 1 ? BusySource::process : BusySource::gpu_util;
}

}  // namespace

AttemptMeter::AttemptMeter(AttemptSubject subject, MeterOptions options)
    : subject_(std::move(subject)), options_(options), devices_(subject_.grant.devices.size()) {}

void AttemptMeter::end(Instant at) {
  if (!end_ || at < *end_) end_ = at;
  if (pending_ && pending_->at > *end_) pending_.reset();
}

Duration AttemptMeter::usual_interval() const {
  if (intervals_.size() < intervals_min) return options_.interval;
  std::vector<Duration> sorted(intervals_.begin(), intervals_.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}

// How long the report stands for; none after a gap, whose reports are counted as missed.
Duration AttemptMeter::covered_since_last(Instant at) {
  const Duration since = at - last_.value_or(subject_.started);
  const auto usual = static_cast<double>(usual_interval().us);
  const bool gap = static_cast<double>(since.us) > options_.gap_factor * usual;
  if (gap)
    missed_reports_ += std::max<std::int64_t>(
        1, std::llround(static_cast<double>(since.us) / std::max(usual, 1.0)) - 1);
  if (last_) {
    intervals_.push_back(since);
    if (intervals_.size() > intervals_max) intervals_.pop_front();
  }
  return gap ? Duration{} : since;
}

void AttemptMeter::observe(const Node& node, Instant at) {
  if (node.id != subject_.grant.node || at < subject_.started) return;
  if ((end_ && at > *end_) || (last_ && at <= *last_) || (pending_ && at <= pending_->at)) return;
  take_pending();
  pending_ = Pending{at, {}};
  for (std::size_t i = 0; i < devices_.size(); ++i)
    pending_->readings.push_back(read_device(node, subject_.grant, i, subject_.attempt, options_));
}

void AttemptMeter::take_pending() {
  if (!pending_) return;
  const Duration covered = covered_since_last(pending_->at);
  if (!first_) first_ = pending_->at;
  last_ = pending_->at;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const DeviceReading& reading = pending_->readings[i];
    process_memory_seen_ = process_memory_seen_ || reading.process_memory_seen;
    process_busy_seen_ = process_busy_seen_ || reading.process_busy_seen;
    take(devices_[i], reading, covered);
  }
  pending_.reset();
}

void AttemptMeter::take_memory(MemorySeries& series, const Measured<Bytes>& value,
                               Duration covered) {
  if (!value) return count_missing(series.missing, value.error());
  if (!series.peak || *value > *series.peak) series.peak = *value;
  series.byte_us += static_cast<double>(value->value) * static_cast<double>(covered.us);
  series.byte_sum += static_cast<double>(value->value);
  series.covered_us += covered.us;
  ++series.samples;
}

void AttemptMeter::take_ratio(Series& series, const Measured<double>& value, bool held,
                              Duration covered) {
  if (!value) return count_missing(series.missing, value.error());
  series.sketch.add(*value);
  series.covered_us += covered.us;
  const bool idle = *value <= options_.idle_max;
  if (idle && held) ++series.idle_held;
  if (!idle && series.idle_before) ++series.bursts;
  series.idle_before = idle;
}

void AttemptMeter::take(Device& device, const DeviceReading& reading, Duration covered) {
  take_memory(device.by_process, reading.process_memory, covered);
  take_memory(device.by_device, reading.device_memory, covered);
  for (std::size_t rung = 0; rung < rungs; ++rung)
    take_ratio(device.busy[rung], reading.busy[rung], reading.holds_memory, covered);
  take_ratio(device.tensor, reading.tensor, reading.holds_memory, covered);
  take_ratio(device.dram, reading.dram, reading.holds_memory, covered);
}

// The best rung that has at least half as many samples as the fullest; `rungs` if none has any.
std::size_t AttemptMeter::chosen_rung() const {
  std::array<std::int64_t, rungs> counts{};
  for (const Device& device : devices_)
    for (std::size_t rung = 0; rung < rungs; ++rung)
      counts[rung] += device.busy[rung].sketch.count();
  // Without one number of a process of ours, "no process of ours" says nothing about being idle: it
  // is what a driver answers that does not see our processes.
  if (!process_busy_seen_) counts[1] = 0;
  const std::int64_t fullest = *std::max_element(counts.begin(), counts.end());
  if (fullest == 0) return rungs;
  for (std::size_t rung = 0; rung < rungs; ++rung)
    if (counts[rung] * 2 >= fullest) return rung;
  return rungs;
}

void AttemptMeter::fill_memory(AttemptMeasurement& m, double run_us) const {
  const bool by_process = process_memory_seen_;
  const MemorySeries* largest = nullptr;
  std::int64_t covered = 0;
  std::map<std::string, std::int64_t> reasons;
  for (const Device& device : devices_) {
    const MemorySeries& series = by_process ? device.by_process : device.by_device;
    covered += series.covered_us;
    m.memory_samples += series.samples;
    add_all(reasons, "memory: ", series.missing);
    if (series.peak && (largest == nullptr || *series.peak > *largest->peak)) largest = &series;
  }
  add_all(m.missing_samples, "", reasons);
  m.memory_coverage = share(covered, run_us * static_cast<double>(devices_.size()));
  if (largest == nullptr) {
    if (!reasons.empty()) {
      const auto commonest =
          std::max_element(reasons.begin(), reasons.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
      const std::string why = commonest->first.substr(std::string("memory: ").size());
      m.memory_peak = missing(MissingKind::no_sample_yet, why);
      m.memory_mean = m.memory_peak;
    }
    return;
  }
  m.memory_of_device = !by_process;
  m.memory_peak = *largest->peak;
  const double mean = largest->covered_us > 0
                          ? largest->byte_us / static_cast<double>(largest->covered_us)
                          : largest->byte_sum / static_cast<double>(largest->samples);
  m.memory_mean = Bytes{std::llround(mean)};
}

void AttemptMeter::fill_ratio(AttemptMeasurement& m, const std::string& metric,
                              const std::vector<const Series*>& series) {
  Sketch merged;
  for (const Series* one : series) merged.merge(one->sketch);
  if (merged.count() == 0) return;
  m.quantiles[metric] = merged.quantiles();
  m.sketches[metric] = merged.data();
}

void AttemptMeter::fill_busy(AttemptMeasurement& m, double run_us) const {
  std::vector<const Series*> tensor, dram, sm;
  for (const Device& device : devices_) {
    sm.push_back(&device.busy[0]);
    tensor.push_back(&device.tensor);
    dram.push_back(&device.dram);
  }
  fill_ratio(m, "sm_active", sm);
  fill_ratio(m, "tensor_active", tensor);
  fill_ratio(m, "dram_active", dram);
  const std::size_t rung = chosen_rung();
  if (rung == rungs) {
    for (const Device& device : devices_)
      add_all(m.missing_samples, "busy: ", device.busy[rungs - 1].missing);
    // A whole GPU without a number is not measured; a part of one cannot be told from its
    // neighbours.
    m.attributable = m.device_kind == DeviceKind::whole_gpu || !last_;
    return;
  }
  std::vector<const Series*> busy;
  std::int64_t covered = 0;
  for (const Device& device : devices_) {
    const Series& series = device.busy[rung];
    busy.push_back(&series);
    covered += series.covered_us;
    add_all(m.missing_samples, "busy: ", series.missing);
    m.idle_held_samples += series.idle_held;
    m.bursts += series.bursts;
    const bool well_covered = series.sketch.count() >= options_.unused_samples_min &&
                              share(series.covered_us, run_us) >= options_.unused_coverage_min;
    if (well_covered && series.sketch.max() <= 0) ++m.devices_unused;
  }
  fill_ratio(m, "busy", busy);
  m.busy_source = source_of(rung);
  m.samples = m.quantiles["busy"].samples;
  m.coverage = share(covered, run_us * static_cast<double>(devices_.size()));
}

AttemptMeasurement AttemptMeter::measurement(Instant now_or_end, bool ended) const {
  AttemptMeter whole = *this;
  if (ended) whole.end(now_or_end);
  whole.take_pending();
  return whole.measure(now_or_end, ended);
}

AttemptMeasurement AttemptMeter::measure(Instant now_or_end, bool ended) const {
  AttemptMeasurement m;
  m.attempt = subject_.attempt;
  m.workload = subject_.workload;
  m.user = subject_.user;
  m.declared_tier = subject_.tier;
  m.ended = ended;
  const auto not_negative = [](Duration d) { return std::max(d, Duration{}); };
  m.waited = not_negative(subject_.started - subject_.submitted);
  m.ran = not_negative((end_ ? std::min(*end_, now_or_end) : now_or_end) - subject_.started);
  m.devices = static_cast<int>(devices_.size());
  m.requested_memory = subject_.requested_memory;
  if (!devices_.empty()) {
    m.device_kind = subject_.grant.devices.front().kind;
    Bytes granted = subject_.grant.devices.front().memory;
    for (const DeviceGrant& device : subject_.grant.devices)
      granted = std::max(granted, device.memory);
    m.granted_memory = granted;
  }
  m.first_sample = first_;
  m.last_sample = last_;
  const auto run_us = static_cast<double>(m.ran.us);
  m.gpu_seconds = static_cast<double>(devices_.size()) * run_us / 1e6;
  if (missed_reports_ > 0) m.missing_samples["no report"] = missed_reports_;
  fill_memory(m, run_us);
  fill_busy(m, run_us);
  return m;
}

}  // namespace takt::insight
