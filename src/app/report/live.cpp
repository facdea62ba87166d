#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "app/report/report.h"
#include "app/report/table.h"
#include "app/report/text.h"
#include "app/report/words.h"
#include "core/model/quantity_text.h"

namespace takt::report {
namespace {

using control::Counts;
using control::JobState;
using control::JobView;
using Lines = std::vector<std::string>;

std::string bar(double ratio, std::size_t width) {
  const double part = std::clamp(ratio, 0.0, 1.0) * static_cast<double>(width);
  auto full = static_cast<std::size_t>(std::lround(part));
  if (full == 0 && ratio > 0) full = 1;  // a little is not nothing
  std::string out;
  for (std::size_t i = 0; i < width; ++i) out += i < full ? "█" : "░";
  return out;
}

// A missing number has no bar, not an empty one.
std::string no_bar(std::size_t width) { return std::string(width, '.'); }

bool holds(JobState state) {
  switch (state) {
    case JobState::starting:
    case JobState::running:
    case JobState::stopping: return true;
    case JobState::waiting:
    case JobState::done:
    case JobState::failed:
    case JobState::cancelled: break;
  }
  return false;
}

std::string on_it(const Gpu& gpu, const std::vector<JobView>& jobs) {
  std::string ids;
  for (const JobView& job : jobs) {
    if (!job.grant || !holds(job.state)) continue;
    const bool here = std::any_of(job.grant->devices.begin(), job.grant->devices.end(),
                                  [&](const DeviceGrant& d) { return d.gpu == gpu.uuid; });
    if (here) ids += (ids.empty() ? "job " : ", ") + to_string(job.id);
  }
  int foreign = 0;
  if (gpu.processes)
    for (const GpuProcess& p : *gpu.processes) foreign += p.foreign() ? 1 : 0;
  if (foreign > 0)
    ids += fmt::format("{}{} not takt's", ids.empty() ? "" : ", ", counted(foreign, "process"));
  return ids.empty() ? "free" : ids;
}

// "gpu0 ████░░░░ 56 %  memory ██░░░░ 12.0 GiB of 80.0 GiB  job 3": busy by SM activity where GPM
// tells it, else GPU_UTIL.
std::string gpu_line(const Gpu& gpu, const std::string& label, std::size_t label_width,
                     std::size_t bar_width, const std::vector<JobView>& jobs) {
  std::string busy = "n/a", picture = no_bar(bar_width);
  const char* what = gpu.sm_active_ratio ? "SM  " : "util";
  if (gpu.sm_active_ratio || gpu.utilization_percent) {
    const double ratio =
        gpu.sm_active_ratio ? *gpu.sm_active_ratio : *gpu.utilization_percent / 100.0;
    busy = percent(ratio);
    picture = bar(ratio, bar_width);
  }
  std::string memory = "n/a", memory_picture = no_bar(bar_width);
  if (gpu.memory_used && gpu.memory_total && gpu.memory_total->value > 0) {
    memory = format_size(*gpu.memory_used) + " of " + format_size(*gpu.memory_total);
    memory_picture = bar(
        static_cast<double>(gpu.memory_used->value) / static_cast<double>(gpu.memory_total->value),
        bar_width);
  }
  const std::string state = gpu.health == GpuHealth::ok ? on_it(gpu, jobs) : to_string(gpu.health);
  return fmt::format("{} {} {} {}  {} {}  {}", pad(label, label_width), what, picture,
                     pad_left(busy, 5), memory_picture, pad(memory, 21), state);
}

void add_gpus(Lines& lines, const std::vector<JobView>& jobs,
              const std::vector<control::NodeView>& nodes, std::size_t width,
              std::size_t rows_max) {
  const bool several = nodes.size() > 1;
  std::vector<std::pair<std::string, const Gpu*>> gpus;
  for (const control::NodeView& node : nodes)
    for (const Gpu& gpu : node.node.gpus)
      gpus.emplace_back((several ? harmless(node.node.id.value) + " " : "") + "gpu" +
                            std::to_string(gpu.index) + (node.reachable ? "" : " (old)"),
                        &gpu);
  std::size_t label_width = 0;
  for (const auto& [label, gpu] : gpus) label_width = std::max(label_width, columns(label));
  label_width = std::min<std::size_t>(label_width, 24);
  const std::size_t fixed = label_width + 72;
  const std::size_t bar_width =
      width > fixed ? std::clamp<std::size_t>((width - fixed) / 2, 4, 24) : 4;
  std::size_t shown = 0;
  for (const auto& [label, gpu] : gpus) {
    if (rows_max > 0 && shown == rows_max) break;
    lines.push_back(gpu_line(*gpu, label, label_width, bar_width, jobs));
    ++shown;
  }
  if (shown < gpus.size())
    lines.push_back(
        fmt::format("… {} more", counted(static_cast<long long>(gpus.size() - shown), "GPU")));
  for (const control::NodeView& node : nodes)
    if (!node.node.driver_problem.empty()) lines.push_back(harmless(node.node.driver_problem));
  if (gpus.empty()) lines.push_back("no GPU has been reported");
}

std::string progress_line(const Counts& c, std::size_t width) {
  const int over = c.done + c.failed + c.cancelled;
  const int all = over + c.waiting + c.starting + c.running + c.stopping;
  if (all == 0) return "no jobs";
  const std::string text = fmt::format(
      "{} of {} over: {} running, {} waiting{}", over, all, c.starting + c.running + c.stopping,
      c.waiting, c.failed > 0 ? fmt::format(", {} failed", c.failed) : std::string());
  const std::size_t bar_width = width > columns(text) + 14 ? width - columns(text) - 2 : 12;
  return bar(static_cast<double>(over) / all, std::min<std::size_t>(bar_width, 40)) + "  " + text;
}

// Running first, then what waits: those move.
std::vector<JobView> moving(const std::vector<JobView>& jobs) {
  std::vector<JobView> out;
  for (const JobView& job : jobs)
    if (holds(job.state)) out.push_back(job);
  for (const JobView& job : jobs)
    if (job.state == JobState::waiting) out.push_back(job);
  return out;
}

}  // namespace

std::string live_screen(const std::vector<JobView>& jobs,
                        const std::vector<control::NodeView>& nodes, const Counts& counts,
                        Instant now, const Screen& screen, std::size_t rows) {
  const std::size_t width = width_of(screen);
  Lines lines;
  std::string head = "takt  " + time_of_day(now, screen);
  if (any_emulated(nodes)) head += "  EMULATED GPUs";
  lines.push_back(paint(cut(head, width), Colour::bold, screen));
  Lines plain;
  // Half of a short screen belongs to the jobs.
  add_gpus(plain, jobs, nodes, width, rows == 0 ? 0 : std::max<std::size_t>(1, rows / 2));
  plain.push_back("");
  plain.push_back(progress_line(counts, width));
  plain.push_back("");
  for (const std::string& line : plain) lines.push_back(cut(line, width));
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  const std::vector<JobView> shown = moving(jobs);
  if (shown.empty()) return out + "nothing runs and nothing waits\n";
  // The table's own head and its "… more" need two lines.
  if (rows > 0 && rows <= lines.size() + 3) return out;
  return out + jobs_table(shown, now, screen, rows == 0 ? 0 : rows - lines.size() - 2);
}

}  // namespace takt::report
