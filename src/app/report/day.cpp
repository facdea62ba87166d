#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "app/report/report.h"
#include "app/report/table.h"
#include "app/report/text.h"
#include "app/report/words.h"
#include "core/model/quantity_text.h"

namespace takt::report {
namespace {

using control::JobState;
using control::JobView;

// The jobs of one name, for the account of who waited.
struct Queue {
  Tier tier = Tier::experimental;
  int jobs = 0;
  Duration sum;
  Duration longest;
  JobId longest_job;
  std::map<BlockerKind, Duration> times;
  std::map<BlockerKind, Blocker> examples;  // of the job that waited longest for it
  std::map<BlockerKind, Duration> example_times;
};

Duration waited(const JobView& job, Instant now) {
  const Instant until = job.started ? *job.started : job.ended.value_or(now);
  return std::max(until - job.submitted, Duration{});
}

void add_waits(Queue& q, const WaitLog::Wait& wait) {
  for (const auto& [kind, time] : wait.times) {
    q.times[kind] = q.times[kind] + time;
    const auto last = wait.last.find(kind);
    if (last == wait.last.end() || time < q.example_times[kind]) continue;
    q.example_times[kind] = time;
    q.examples[kind] = last->second;
  }
}

std::map<std::string, Queue> queues_of(const std::vector<JobView>& jobs, const WaitLog& waits,
                                       Instant now) {
  std::map<std::string, Queue> queues;
  for (const JobView& job : jobs) {
    Queue& q = queues[job.name];
    const Duration w = waited(job, now);
    q.tier = job.tier;
    ++q.jobs;
    q.sum = q.sum + w;
    if (q.jobs == 1 || w > q.longest) q.longest = w, q.longest_job = job.id;
    const auto seen = waits.waits().find(job.id);
    if (seen != waits.waits().end()) add_waits(q, seen->second);
  }
  return queues;
}

// The blocker that cost this queue the most time, in words.
std::string main_reason(const Queue& q) {
  if (q.longest < seconds(1)) return "";
  if (q.times.empty()) return "n/a (nobody looked while it waited)";
  const auto worst =
      std::max_element(q.times.begin(), q.times.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  std::string out = to_string(worst->first);
  const auto example = q.examples.find(worst->first);
  if (example == q.examples.end()) return out;
  out += ": needs " + example->second.needed;
  if (!example->second.available.empty()) out += "; " + example->second.available;
  return out;
}

std::string waits_text(const std::vector<JobView>& jobs, const WaitLog& waits, Instant now,
                       const Screen& screen) {
  Table table({{"WORKLOAD", 10},
               {"TIER", 0, 1},
               {"JOBS", 0, 0, true},
               {"MEAN", 0, 0, true},
               {"LONGEST", 0, 0, true},
               {"WAITED MOSTLY FOR", 20}});
  for (const auto& [name, q] : queues_of(jobs, waits, now)) {
    std::string longest = format_duration(q.longest);
    if (q.jobs > 1) longest += " (job " + to_string(q.longest_job) + ")";
    table.row({{name},
               {to_string(q.tier)},
               {std::to_string(q.jobs)},
               {format_duration(Duration{q.sum.us / q.jobs})},
               {longest},
               {main_reason(q)}},
              true);
  }
  return table.print(screen);
}

std::string outcome_sentence(const std::vector<JobView>& jobs) {
  int done = 0, failed = 0, cancelled = 0, open = 0;
  for (const JobView& job : jobs) {
    switch (job.state) {
      case JobState::done: ++done; break;
      case JobState::failed: ++failed; break;
      case JobState::cancelled: ++cancelled; break;
      case JobState::waiting:
      case JobState::starting:
      case JobState::running:
      case JobState::stopping: ++open; break;
    }
  }
  std::string out =
      fmt::format("{}: {} done", counted(static_cast<long long>(jobs.size()), "job"), done);
  if (failed > 0) out += fmt::format(", {} failed", failed);
  if (cancelled > 0) out += fmt::format(", {} cancelled", cancelled);
  if (open > 0) out += fmt::format(", {} still waiting or running", open);
  return out;
}

std::string fleet_sentence(const std::vector<control::NodeView>& nodes) {
  std::size_t gpus = 0;
  for (const control::NodeView& node : nodes) gpus += node.node.gpus.size();
  std::string out = counted(static_cast<long long>(gpus), "GPU") + " on " +
                    counted(static_cast<long long>(nodes.size()), "node");
  if (any_emulated(nodes)) out += ", EMULATED: the numbers are those of stand-in programs";
  return out;
}

std::string failures_text(const std::vector<JobView>& jobs, const Screen& screen) {
  std::string out;
  for (const JobView& job : jobs)
    if (job.state == JobState::failed)
      out += paint(paragraph(fmt::format("  job {} {}: ", to_string(job.id), harmless(job.name)),
                             harmless(reason_shown(job)), width_of(screen)),
                   Colour::red, screen);
  return out;
}

std::string advice_text(const std::vector<WorkloadSummary>& workloads, const Screen& screen) {
  std::string out;
  for (const WorkloadSummary& w : workloads)
    for (const SizeAdvice& a : w.advice) {
      out +=
          paragraph("  ", harmless(fmt::format("{}: {} {} → {}", w.workload, a.what, a.from, a.to)),
                    width_of(screen));
      out +=
          paragraph("      ", harmless(fmt::format("{} confidence: {}", a.confidence, a.evidence)),
                    width_of(screen));
    }
  if (out.empty()) out = "  nothing that the measurements would bear out\n";
  return out;
}

}  // namespace

std::string day_summary(const std::vector<JobView>& jobs,
                        const std::vector<WorkloadSummary>& workloads,
                        const std::vector<control::NodeView>& nodes, Instant now,
                        const Screen& screen, const WaitLog& waits) {
  const auto heading = [&](const std::string& text) {
    return "\n" + paint(text, Colour::bold, screen) + "\n";
  };
  const std::size_t width = width_of(screen);
  std::string out = paragraph("", fleet_sentence(nodes), width);
  out += paragraph("", outcome_sentence(jobs), width);
  out += failures_text(jobs, screen);
  if (!jobs.empty()) out += heading("Who waited, and why") + waits_text(jobs, waits, now, screen);
  out += heading("What was measured") + workloads_text(workloads, false, screen);
  out += heading("What could be smaller") + advice_text(workloads, screen);
  return out;
}

}  // namespace takt::report
