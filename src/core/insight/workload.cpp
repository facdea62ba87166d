#include "core/insight/workload.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/insight/sketch.h"

namespace takt::insight {
namespace {

using Attempts = std::vector<AttemptMeasurement>;

// The source whose numbers are merged, see workload.h. BusySource is ordered from best to worst.
BusySource chosen_source(const Attempts& attempts) {
  std::map<BusySource, std::int64_t> counts;
  std::int64_t fullest = 0;
  for (const AttemptMeasurement& a : attempts) {
    if (a.busy_source == BusySource::none || a.samples == 0) continue;
    fullest = std::max(fullest, counts[a.busy_source] += a.samples);
  }
  for (const auto& [source, count] : counts)
    if (count * 2 >= fullest) return source;
  return BusySource::none;
}

void merge_memory(WorkloadSummary& s, const Attempts& attempts, const Policy& policy) {
  double weighted = 0, weight = 0, gpu_seconds = 0, covered = 0;
  for (const AttemptMeasurement& a : attempts) {
    s.memory_samples += a.memory_samples;
    gpu_seconds += a.gpu_seconds;
    covered += a.memory_coverage * a.gpu_seconds;
    if (!a.memory_peak) {
      if (!s.memory_peak) s.memory_peak = a.memory_peak;  // the newest reason
      continue;
    }
    s.memory_of_device = s.memory_of_device || a.memory_of_device;
    if (!s.memory_peak || *a.memory_peak > *s.memory_peak) s.memory_peak = a.memory_peak;
    if (!a.memory_mean) continue;
    // An attempt too short to cover any time still counts a little.
    const double w = std::max(a.memory_coverage * static_cast<double>(a.ran.us), 1.0);
    weighted += w * static_cast<double>(a.memory_mean->value);
    weight += w;
  }
  if (gpu_seconds > 0) s.memory_coverage = std::clamp(covered / gpu_seconds, 0.0, 1.0);
  if (weight > 0) {
    s.memory_mean = Bytes{static_cast<std::int64_t>(weighted / weight)};
  } else if (!s.memory_peak) {
    s.memory_mean = tl::make_unexpected(s.memory_peak.error());
  }
  if (s.memory_peak)
    s.memory_needed = with_margin(*s.memory_peak, policy.size_margin_percent);
  else
    s.memory_needed = tl::make_unexpected(s.memory_peak.error());
}

void merge_busy(WorkloadSummary& s, const Attempts& attempts) {
  s.busy_source = chosen_source(attempts);
  std::map<std::string, Sketch> merged;
  double covered = 0, gpu_seconds = 0;
  int left_out = 0;
  bool any_attributable = false;
  for (const AttemptMeasurement& a : attempts) {
    any_attributable = any_attributable || a.attributable;
    gpu_seconds += a.gpu_seconds;
    const bool same = a.busy_source == s.busy_source;
    for (const auto& [metric, data] : a.sketches)
      if (metric != "busy" || same) merged[metric].merge(Sketch(data));
    if (same) covered += a.coverage * a.gpu_seconds;
    if (!same && a.busy_source != BusySource::none) ++left_out;
    for (const auto& [reason, count] : a.missing_samples) s.missing_samples[reason] += count;
  }
  s.attributable = any_attributable || attempts.empty();
  for (const auto& [metric, sketch] : merged) s.quantiles[metric] = sketch.quantiles();
  const auto busy = s.quantiles.find("busy");
  if (busy != s.quantiles.end()) s.samples = busy->second.samples;
  if (gpu_seconds > 0) s.coverage = std::clamp(covered / gpu_seconds, 0.0, 1.0);
  if (left_out > 0)
    s.notes.push_back(fmt::format(
        "\"busy\" leaves out {} attempts that were not measured by {}: numbers of two sources are "
        "not mixed",
        left_out, to_string(s.busy_source)));
}

void merge_times(WorkloadSummary& s, const Attempts& attempts) {
  std::int64_t waited = 0, ran_ended = 0, ran = 0;
  for (const AttemptMeasurement& a : attempts) {
    ++s.attempts;
    if (!a.user.empty()) ++s.users[a.user];
    waited += a.waited.us;
    s.waited_max = std::max(s.waited_max, a.waited);
    ran += a.ran.us;
    if (a.ended) ran_ended += a.ran.us;
    if (!a.ended) ++s.running;
    s.gpu_seconds += a.gpu_seconds;
  }
  if (s.attempts == 0) return;
  s.waited_mean = {waited / s.attempts};
  const int ended = s.attempts - s.running;
  s.ran_mean = {ended > 0 ? ran_ended / ended : ran / s.attempts};
}

}  // namespace

WorkloadSummary summarise(const std::string& workload, Attempts attempts, const Policy& policy,
                          const ClassifyThresholds& classify_by,
                          const RightSizeThresholds& size_by) {
  // By attempt, so that sums in floating point do not depend on the caller's order.
  std::sort(attempts.begin(), attempts.end(),
            [](const auto& a, const auto& b) { return a.attempt < b.attempt; });
  WorkloadSummary s;
  s.workload = workload;
  if (!attempts.empty()) {
    const AttemptMeasurement& newest = attempts.back();
    s.declared_tier = newest.declared_tier;
    s.granted_memory = newest.granted_memory;
    s.device_kind = newest.device_kind;
    s.devices = newest.devices;
  }
  merge_times(s, attempts);
  merge_memory(s, attempts, policy);
  merge_busy(s, attempts);
  Classification classification = classify(s, attempts, classify_by);
  s.category = classification.category;
  s.confidence = std::move(classification.confidence);
  s.evidence = std::move(classification.evidence);
  RightSizing sizing = right_size(s, attempts, policy, size_by);
  s.advice = std::move(sizing.advice);
  for (std::string& note : sizing.notes) s.notes.push_back(std::move(note));
  return s;
}

std::vector<WorkloadSummary> summarise_all(const Attempts& attempts, const Policy& policy) {
  std::map<std::string, Attempts> by_name;
  for (const AttemptMeasurement& a : attempts) by_name[a.workload].push_back(a);
  std::vector<WorkloadSummary> out;
  for (auto& [name, own] : by_name) out.push_back(summarise(name, std::move(own), policy));
  return out;
}

}  // namespace takt::insight
