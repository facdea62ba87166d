#include <fmt/core.h>

#include <algorithm>

#include "app/report/report.h"
#include "app/report/table.h"
#include "app/report/text.h"
#include "app/report/words.h"
#include "core/model/quantity_text.h"

namespace takt::report {
namespace {

using control::JobState;
using control::JobView;
using Jobs = std::vector<JobView>;

constexpr std::size_t fold_min = 4;  // waiting tasks of a group in a row that become one line

bool folds_with(const JobView& a, const JobView& b) {
  return a.state == JobState::waiting && b.state == JobState::waiting && a.group && b.group &&
         *a.group == *b.group && a.waiting_for == b.waiting_for;
}

// How many jobs from `from` on are one line.
std::size_t run_length(const Jobs& jobs, std::size_t from) {
  std::size_t n = 1;
  while (from + n < jobs.size() && folds_with(jobs[from], jobs[from + n])) ++n;
  return n >= fold_min ? n : 1;
}

std::string eta(const JobView& job, Instant now) {
  std::optional<Instant> at;
  if (job.state == JobState::waiting) at = job.expected_start;
  if (job.state == JobState::running) at = job.expected_end;
  if (!at) return "";
  return *at <= now ? "now" : "~" + format_duration(*at - now);
}

void add_job(Table& table, const JobView& job, std::size_t folded, JobId last, Instant now) {
  const bool many = folded > 1;
  table.row({{many ? to_string(job.id) + "…" + to_string(last) : to_string(job.id)},
             {many ? fmt::format("{} ×{}", job.name, folded) : job.name},
             {job.user},
             {to_string(job.tier)},
             {to_string(job.state), colour_of(job.state)},
             {format_duration(time_shown(job, now))},
             {devices_shown(job)},
             {eta(job, now)},
             {reason_shown(job), job.state == JobState::failed ? Colour::red : Colour::none}},
            job.state == JobState::failed);
}

std::string title(const JobView& job) {
  return fmt::format("Job {}  {}  ({}, {})", to_string(job.id), harmless(job.name),
                     harmless(job.user), to_string(job.tier));
}

std::string state_sentence(const JobView& job, Instant now) {
  const std::string time = format_duration(time_shown(job, now));
  switch (job.state) {
    case JobState::waiting: return "waiting for " + time;
    case JobState::starting: return "starting on " + devices_shown(job);
    case JobState::running: return "running for " + time + " on " + devices_shown(job);
    case JobState::stopping: return "being stopped, after " + time;
    case JobState::done: return "done after " + time;
    case JobState::failed: return "failed after " + time;
    case JobState::cancelled: break;
  }
  return job.started ? "cancelled after " + time : "cancelled before it ran";
}

std::string blockers_text(const JobView& job, std::size_t width, const Screen& screen) {
  std::string out = "\n" + paint("Waits for", Colour::bold, screen) + "\n";
  if (job.waiting_for.empty())
    out += "  nothing that is known: it has not been looked at yet, or it is about to start\n";
  int n = 0;
  for (const Blocker& blocker : job.waiting_for) {
    out += fmt::format("  {}. {}\n", ++n, to_string(blocker.kind));
    out += paragraph("     needs      ", harmless(blocker.needed), width);
    if (!blocker.available.empty())
      out += paragraph("     available  ", harmless(blocker.available), width);
    if (!blocker.action.empty())
      out += paragraph("     what helps ", harmless(blocker.action), width);
  }
  return out;
}

std::string expected_start(const JobView& job, Instant now, const Screen& screen) {
  if (job.expected_start)
    return moment(*job.expected_start, now, screen) +
           ", an estimate from the expected ends of what runs";
  return "unknown: " + (job.expected_start_unknown.empty()
                            ? std::string("it has not been worked out yet")
                            : harmless(job.expected_start_unknown));
}

}  // namespace

std::string jobs_table(const Jobs& jobs, Instant now, const Screen& screen, std::size_t limit) {
  if (jobs.empty()) return "no jobs\n";
  Table table({{"ID"},
               {"NAME", 8},
               {"USER", 6, 3},
               {"TIER", 0, 4},
               {"STATE"},
               {"TIME", 0, 2, true},
               {"DEVICES", 8, 1},
               {"ETA", 0, 5, true},
               {"WHY", 16}});
  std::size_t at = 0;
  while (at < jobs.size() && (limit == 0 || table.size() < limit)) {
    const std::size_t n = run_length(jobs, at);
    add_job(table, jobs[at], n, jobs[at + n - 1].id, now);
    at += n;
  }
  std::string out = table.print(screen);
  if (at < jobs.size()) out += fmt::format("… {} more\n", jobs.size() - at);
  return out;
}

std::string job_why(const JobView& job, Instant now, const Screen& screen) {
  const std::size_t width = width_of(screen);
  std::string out = paragraph("", title(job) + ": " + harmless(state_sentence(job, now)), width);
  if (job.group_size > 1)
    out += fmt::format("  task {} of {}\n", job.group_index + 1, job.group_size);
  out += paragraph("  asks for  ", harmless(job.request), width);
  if (!job.command.empty()) out += paragraph("  command   ", harmless(job.command), width);
  if (job.attempts > 1) out += fmt::format("  attempts  {}\n", job.attempts);
  if (job.exit && job.ended) out += paragraph("  exit      ", harmless(describe(*job.exit)), width);
  if (!job.reason.empty())
    out += paint(paragraph("  reason    ", harmless(job.reason), width),
                 job.state == JobState::failed ? Colour::red : Colour::none, screen);
  if (job.state == JobState::running && job.expected_end)
    out +=
        paragraph("  ends      ", moment(*job.expected_end, now, screen) + ", an estimate", width);
  if (!job.stdout_path.empty()) out += paragraph("  output    ", harmless(job.stdout_path), width);
  if (!job.stderr_path.empty() && job.stderr_path != job.stdout_path)
    out += paragraph("  errors    ", harmless(job.stderr_path), width);
  if (job.state == JobState::waiting) {
    out += blockers_text(job, width, screen);
    out += "\n" + paragraph("Expected start: ", expected_start(job, now, screen), width);
  }
  if (!job.decision.empty()) {
    out += "\n" + paint("Decided by", Colour::bold, screen) + "\n";
    int n = 0;
    for (const std::string& rule : job.decision)
      out += paragraph(fmt::format("  {}. ", ++n), harmless(rule), width);
  }
  return out;
}

}  // namespace takt::report
