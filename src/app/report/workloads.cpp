#include <fmt/core.h>

#include "app/report/report.h"
#include "app/report/table.h"
#include "app/report/text.h"
#include "app/report/words.h"
#include "core/model/quantity_text.h"

namespace takt::report {
namespace {

// "11.2 of 80.0 GiB": the unit once, if it is the same.
std::string memory_cell(const WorkloadSummary& w) {
  if (w.devices == 0) return "no GPU";
  std::string peak = w.memory_peak ? format_size(*w.memory_peak) : std::string("n/a");
  if (!w.granted_memory) return peak;
  const std::string granted = format_size(*w.granted_memory);
  const std::size_t unit = granted.rfind(' ');
  if (unit != std::string::npos && peak.ends_with(granted.substr(unit)))
    peak.resize(peak.size() - (granted.size() - unit));
  return peak + " of " + granted;
}

const Quantiles* busy_of(const WorkloadSummary& w) {
  const auto it = w.quantiles.find("busy");
  return it == w.quantiles.end() || it->second.samples == 0 ? nullptr : &it->second;
}

std::string busy_cell(const WorkloadSummary& w) {
  if (w.devices == 0) return "";
  const Quantiles* busy = busy_of(w);
  return busy == nullptr ? "n/a" : percent(busy->p50) + " / " + percent(busy->p95);
}

std::string commonest_reason(const WorkloadSummary& w, const std::string& prefix) {
  std::string best = "no sample yet";
  std::int64_t most = 0;
  for (const auto& [reason, count] : w.missing_samples)
    if (reason.starts_with(prefix) && count > most) {
      most = count;
      best = reason.substr(prefix.size());
    }
  return best;
}

// Where the numbers come from and how much of the time they cover.
std::string provenance(const WorkloadSummary& w) {
  std::string out;
  if (!w.attributable)
    out = "busy n/a (shared, not attributable)";
  else if (busy_of(w) == nullptr)
    out = "busy n/a (" + commonest_reason(w, "busy: ") + ")";
  else
    out = fmt::format("busy by {}, {} samples, coverage {}", to_string(w.busy_source), w.samples,
                      percent(w.coverage));
  if (!w.memory_peak) return out + "; memory " + not_available(w.memory_peak.error());
  out += fmt::format("; memory {}, {} samples, coverage {}",
                     w.memory_of_device ? "of the device" : "of its processes", w.memory_samples,
                     percent(w.memory_coverage));
  const auto gaps = w.missing_samples.find("no report");
  if (gaps != w.missing_samples.end())
    out += fmt::format("; {} missed", counted(gaps->second, "report"));
  return out;
}

void add_workload(Table& table, const WorkloadSummary& w, bool with_advice) {
  std::string runs = std::to_string(w.attempts);
  if (w.running > 0) runs += fmt::format(", {} open", w.running);
  const std::string waited = format_duration(w.waited_mean) + " / " + format_duration(w.waited_max);
  table.row({{w.workload},
             {to_string(w.declared_tier)},
             {to_string(w.category), w.category == Category::unknown ? Colour::dim : Colour::none},
             {runs},
             {waited},
             {memory_cell(w)},
             {busy_cell(w)}});
  if (w.devices > 0) table.line("    measured: ", provenance(w), Colour::dim);
  for (const std::string& sentence : w.evidence)
    table.line(w.category == Category::unknown ? "    unknown: " : "    " + w.confidence + ": ",
               sentence);
  for (const SizeAdvice& a : w.advice) {
    if (!with_advice) break;
    table.line("    could be smaller: ",
               fmt::format("{} {} → {} ({} confidence)", a.what, a.from, a.to, a.confidence),
               Colour::green);
    table.line("      ", fmt::format("{}; undo: {}", a.evidence, a.undo));
  }
  for (const std::string& note : w.notes) table.line("    note: ", note, Colour::dim);
}

}  // namespace

std::string workloads_text(const std::vector<WorkloadSummary>& workloads, bool with_advice,
                           const Screen& screen) {
  if (workloads.empty()) return "nothing has been measured yet\n";
  Table table({{"WORKLOAD", 10},
               {"DECLARED", 0, 3},
               {"MEASURED LIKE", 13},
               {"RUNS", 0, 2},
               {"WAITED mean/max", 0, 1},
               {"MEMORY peak"},
               {"BUSY p50/p95"}});
  for (const WorkloadSummary& w : workloads) add_workload(table, w, with_advice);
  return table.print(screen);
}

std::string workloads_table(const std::vector<WorkloadSummary>& workloads, const Screen& screen) {
  return workloads_text(workloads, true, screen);
}

}  // namespace takt::report
