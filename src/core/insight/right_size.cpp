#include "core/insight/right_size.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/model/quantity_text.h"

namespace takt::insight {
namespace {

using Attempts = std::vector<AttemptMeasurement>;

std::string percent(double ratio) { return fmt::format("{:.0f} %", ratio * 100); }

std::string as_flag(Bytes size) {
  if (size.value % gibibytes(1).value == 0)
    return fmt::format("--memory {}GiB", size.value / gibibytes(1).value);
  return fmt::format("--memory {}MiB", size.value / mebibytes(1).value);
}

std::string kind_words(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::whole_gpu: return "whole GPU";
    case DeviceKind::mig_instance: return "MIG instance";
    case DeviceKind::share: break;
  }
  return "share";
}

struct Peaks {
  int measured = 0;  // attempts with a valid memory peak
  int ended = 0;     // of them
};

Peaks count_peaks(const Attempts& attempts) {
  Peaks peaks;
  for (const AttemptMeasurement& a : attempts) {
    if (!a.memory_peak) continue;
    ++peaks.measured;
    if (a.ended) ++peaks.ended;
  }
  return peaks;
}

std::string undo_words(const WorkloadSummary& s) {
  if (s.device_kind == DeviceKind::whole_gpu) return "ask for a whole GPU again: -g 1";
  return "ask for as much as before: " + as_flag(s.granted_memory.value_or(Bytes{}));
}

// A sentence why there can be no memory advice at all, or nothing.
std::string memory_obstacle(const WorkloadSummary& s, const RightSizeThresholds& limits) {
  if (!s.granted_memory || s.devices == 0) return "no size advice: it was given no GPU memory";
  if (!s.memory_peak)
    return "no size advice: its memory peak is not known (" + to_string(s.memory_peak.error()) +
           ")";
  if (s.memory_samples < 1) return "no size advice: there is no valid memory sample";
  if (s.memory_coverage < limits.coverage_min)
    return fmt::format(
        "no size advice: memory samples cover {} of the run time; at least {} is needed",
        percent(s.memory_coverage), percent(limits.coverage_min));
  if (s.memory_peak->value <= 0)
    return "no size advice: no memory in use was ever seen, which says nothing about its need";
  return "";
}

void memory_advice(const WorkloadSummary& s, const Attempts& attempts, const Policy& policy,
                   const RightSizeThresholds& limits, RightSizing& out) {
  const std::string obstacle = memory_obstacle(s, limits);
  if (!obstacle.empty()) return out.notes.push_back(obstacle);
  const Bytes granted = *s.granted_memory;
  const Bytes wanted = with_margin(*s.memory_peak, policy.size_margin_percent);
  if (static_cast<double>(wanted.value) > limits.far_under * static_cast<double>(granted.value))
    return;
  const Bytes to = sensible_size(wanted);
  if (to >= granted) return;
  const Peaks peaks = count_peaks(attempts);
  const std::string evidence =
      fmt::format("peak {} in {} of {} attempts, {} samples, coverage {}, margin {} %{}",
                  format_size(*s.memory_peak), peaks.measured, attempts.size(), s.memory_samples,
                  percent(s.memory_coverage), policy.size_margin_percent,
                  s.memory_of_device ? "; the device's memory, not the processes'" : "");
  if (s.devices > 1)
    return out.notes.push_back(
        fmt::format("each of its {} GPUs could be of a smaller type: {} of {} would do ({})",
                    s.devices, format_size(to), format_size(granted), evidence));
  SizeAdvice advice;
  advice.what = "memory";
  advice.from = fmt::format("{} ({})", format_size(granted), kind_words(s.device_kind));
  advice.to = as_flag(to);
  advice.evidence = evidence;
  const bool medium = peaks.ended >= limits.medium_attempts_min &&
                      s.memory_coverage >= limits.medium_coverage_min && !s.memory_of_device;
  advice.confidence = medium ? "medium" : "low";
  advice.undo = undo_words(s);
  out.advice.push_back(std::move(advice));
}

// More than half of a gang's GPUs never computed anything, in any attempt of the present size.
void gang_advice(const WorkloadSummary& s, const Attempts& attempts,
                 const RightSizeThresholds& limits, RightSizing& out) {
  if (s.devices < 2) return;
  int most_used = 0;
  int counted = 0;
  double coverage = 1;
  std::int64_t samples = 0;
  for (const AttemptMeasurement& a : attempts) {
    if (a.devices != s.devices) continue;
    if (a.samples == 0 || a.coverage < limits.coverage_min) return;
    ++counted;
    most_used = std::max(most_used, a.devices - a.devices_unused);
    coverage = std::min(coverage, a.coverage);
    samples += a.samples;
  }
  if (counted == 0 || (s.devices - most_used) * 2 <= s.devices) return;
  const int to = std::max(most_used, 1);
  SizeAdvice advice;
  advice.what = "gpus";
  advice.from = fmt::format("{} GPUs", s.devices);
  advice.to = fmt::format("-g {}", to);
  advice.evidence = fmt::format(
      "at most {} of {} GPUs ever computed in {} attempts, {} samples, coverage at least {}, by {}",
      most_used, s.devices, counted, samples, percent(coverage), to_string(s.busy_source));
  const bool medium = counted >= limits.medium_attempts_min &&
                      coverage >= limits.medium_coverage_min && s.busy_source == BusySource::gpm;
  advice.confidence = medium ? "medium" : "low";
  advice.undo = fmt::format("ask for as many as before: -g {}", s.devices);
  out.advice.push_back(std::move(advice));
}

}  // namespace

Bytes with_margin(Bytes peak, int margin_percent) {
  // Rounded up, and without overflow for any real size.
  return {peak.value + (peak.value / 100) * margin_percent +
          ((peak.value % 100) * margin_percent + 99) / 100};
}

Bytes sensible_size(Bytes size) {
  const std::int64_t gib = gibibytes(1).value;
  std::int64_t step = gib;
  if (size > gibibytes(16)) step = 2 * gib;
  if (size > gibibytes(64)) step = 4 * gib;
  return {std::max<std::int64_t>(1, (size.value + step - 1) / step) * step};
}

RightSizing right_size(const WorkloadSummary& summary, const Attempts& attempts,
                       const Policy& policy, const RightSizeThresholds& thresholds) {
  RightSizing out;
  if (attempts.empty()) {
    out.notes.push_back("no size advice: nothing has run yet");
    return out;
  }
  memory_advice(summary, attempts, policy, thresholds, out);
  gang_advice(summary, attempts, thresholds, out);
  return out;
}

}  // namespace takt::insight
