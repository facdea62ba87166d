#include "core/insight/classify.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/insight/sketch.h"
#include "core/model/quantity_text.h"

namespace takt::insight {
namespace {

using Attempts = std::vector<AttemptMeasurement>;

std::string percent(double ratio) { return fmt::format("{:.0f} %", ratio * 100); }

// The workload's numbers that the rules look at.
struct Traits {
  Quantiles busy;
  const Quantiles* tensor = nullptr;
  double idle_share = 0;
  double idle_held_share = 0;
  double bursts_per_attempt = 0;
  double memory_steady = 0;  // mean / peak, 0 where unknown
  int devices = 0;           // the most of any attempt
  int ended = 0;
  Duration longest;
  double run_spread = 0;  // longest / mean of the ended ones, 0 without
};

Traits traits_of(const WorkloadSummary& s, const Attempts& attempts, double idle_max) {
  Traits t;
  const auto busy = s.quantiles.find("busy");
  if (busy != s.quantiles.end()) t.busy = busy->second;
  const auto tensor = s.quantiles.find("tensor_active");
  if (tensor != s.quantiles.end()) t.tensor = &tensor->second;
  Sketch merged;
  std::int64_t held = 0, bursts = 0, ended_us = 0;
  Duration longest_ended;
  int measured = 0;
  for (const AttemptMeasurement& a : attempts) {
    t.devices = std::max(t.devices, a.devices);
    t.longest = std::max(t.longest, a.ran);
    if (a.ended) {
      ++t.ended;
      ended_us += a.ran.us;
      longest_ended = std::max(longest_ended, a.ran);
    }
    const auto sketch = a.sketches.find("busy");
    if (a.busy_source != s.busy_source || sketch == a.sketches.end()) continue;
    ++measured;
    merged.merge(Sketch(sketch->second));
    held += a.idle_held_samples;
    bursts += a.bursts;
  }
  t.idle_share = merged.share_up_to(idle_max);
  if (merged.count() > 0)
    t.idle_held_share = static_cast<double>(held) / static_cast<double>(merged.count());
  if (measured > 0) t.bursts_per_attempt = static_cast<double>(bursts) / measured;
  if (s.memory_peak && s.memory_mean && s.memory_peak->value > 0)
    t.memory_steady =
        static_cast<double>(s.memory_mean->value) / static_cast<double>(s.memory_peak->value);
  if (ended_us > 0)
    t.run_spread = static_cast<double>(longest_ended.us) * t.ended / static_cast<double>(ended_us);
  return t;
}

std::string short_run(const Traits& t, const ClassifyThresholds& limits) {
  if (t.longest >= limits.long_run) return "";
  return fmt::format("; the longest run of {} is short of {}, so this is weak evidence",
                     format_duration(t.longest), format_duration(limits.long_run));
}

bool is_batch(const WorkloadSummary& s, const Traits& t, const ClassifyThresholds& limits,
              Classification& out) {
  if (t.devices != 1 || s.attempts < limits.batch_attempts_min ||
      t.ended < limits.batch_attempts_min || t.run_spread > limits.batch_run_spread_max ||
      t.idle_held_share > limits.idle_held_share_min)
    return false;
  out.category = Category::batch;
  out.evidence.push_back(
      fmt::format("{} attempts on one device each, {} ended after {} in the mean, the longest "
                  "{:.1f} times that",
                  s.attempts, t.ended, format_duration(s.ran_mean), t.run_spread));
  out.evidence.push_back(fmt::format("busy {} in the mean, idle in {} of {} samples",
                                     percent(t.busy.mean), percent(t.idle_share), t.busy.samples));
  return true;
}

bool is_training(const Traits& t, const ClassifyThresholds& limits, Classification& out) {
  const bool steady =
      t.busy.p75 >= limits.high_busy && t.idle_share <= limits.steady_idle_share_max;
  const bool tensor = t.tensor != nullptr && t.tensor->p75 >= limits.high_tensor;
  if (!steady || (t.devices < 2 && !tensor)) return false;
  out.category = Category::training;
  out.evidence.push_back(fmt::format("steadily busy: p75 {}, idle in {} of {} samples",
                                     percent(t.busy.p75), percent(t.idle_share), t.busy.samples) +
                         short_run(t, limits));
  if (t.devices >= 2)
    out.evidence.push_back(fmt::format("one program on {} GPUs together", t.devices));
  if (tensor)
    out.evidence.push_back(fmt::format("tensor cores active: p75 {}", percent(t.tensor->p75)));
  return true;
}

bool is_serving(const Traits& t, const ClassifyThresholds& limits, Classification& out) {
  if (t.busy.mean >= limits.low_busy ||
      t.bursts_per_attempt < static_cast<double>(limits.serving_bursts_min) ||
      t.memory_steady < limits.serving_memory_steady_min)
    return false;
  out.category = Category::serving;
  out.evidence.push_back(
      fmt::format("low duty in bursts: busy {} in the mean, {:.0f} bursts an attempt",
                  percent(t.busy.mean), t.bursts_per_attempt) +
      short_run(t, limits));
  out.evidence.push_back(fmt::format("memory is held throughout: the mean is {} of the peak",
                                     percent(t.memory_steady)));
  return true;
}

bool is_experimental(const Traits& t, const ClassifyThresholds& limits, Classification& out) {
  if (t.idle_held_share <= limits.idle_held_share_min) return false;
  out.category = Category::experimental;
  out.evidence.push_back(fmt::format("idle with memory held in {} of {} samples; longest run {}",
                                     percent(t.idle_held_share), t.busy.samples,
                                     format_duration(t.longest)));
  return true;
}

// What is missing before anything may be said; true if something is.
bool too_little(const WorkloadSummary& s, const Traits& t, const ClassifyThresholds& limits,
                Classification& out) {
  if (t.devices == 0) {
    out.evidence.push_back("it was given no GPU, so there is nothing to go by");
    return true;
  }
  if (!s.attributable) {
    out.evidence.push_back(
        "shared, not attributable: the driver tells no utilisation per process on its devices");
    return true;
  }
  if (s.samples < limits.samples_min)
    out.evidence.push_back(fmt::format("{} valid utilisation samples; at least {} are needed",
                                       s.samples, limits.samples_min));
  if (s.coverage < limits.coverage_min)
    out.evidence.push_back(
        fmt::format("utilisation samples cover {} of the run time; at least {} is needed",
                    percent(s.coverage), percent(limits.coverage_min)));
  return !out.evidence.empty();
}

std::string matches_nothing(const Traits& t) {
  return fmt::format(
      "no rule matches: busy p75 {}, mean {}, idle in {} of {} samples, {:.0f} bursts an attempt{}",
      percent(t.busy.p75), percent(t.busy.mean), percent(t.idle_share), t.busy.samples,
      t.bursts_per_attempt,
      t.tensor == nullptr ? "; no tensor activity is measured to tell training from batch" : "");
}

bool same(Category category, Tier tier) { return to_string(category) == to_string(tier); }

}  // namespace

Classification classify(const WorkloadSummary& summary, const Attempts& attempts,
                        const ClassifyThresholds& thresholds) {
  Classification out;
  const Traits t = traits_of(summary, attempts, thresholds.idle_max);
  if (too_little(summary, t, thresholds, out)) return out;
  if (!is_batch(summary, t, thresholds, out) && !is_training(t, thresholds, out) &&
      !is_serving(t, thresholds, out) && !is_experimental(t, thresholds, out))
    out.evidence.push_back(matches_nothing(t));
  if (summary.busy_source == BusySource::process || summary.busy_source == BusySource::gpu_util ||
      summary.busy_source == BusySource::power)
    out.evidence.push_back(fmt::format(
        "only {} tells how busy it was: the share of time in use, not how well it was used",
        to_string(summary.busy_source)));
  if (out.category != Category::unknown && !same(out.category, summary.declared_tier))
    out.evidence.push_back(
        fmt::format("declared {}, measured like {}: the declared tier stays in force",
                    to_string(summary.declared_tier), to_string(out.category)));
  return out;
}

}  // namespace takt::insight
