#pragma once
// Text for people: views in, tables out. Pure: the time, the width and the colours are given.
//
// What comes from users (names, commands, process names, reasons) is made harmless: control
// characters, escape sequences, invalid UTF-8 and direction marks never reach the terminal. Missing
// numbers are "n/a (reason)", never 0. Every text ends in a newline.
#include <cstddef>
#include <string>
#include <vector>

#include "app/report/wait_log.h"
#include "core/base/quantities.h"
#include "core/control/view.h"
#include "core/model/measurement.h"

namespace takt::report {

struct Screen {
  int width = 100;           // columns; below 40 it is taken as 40
  bool colour = false;       // ANSI colours
  Duration utc_offset = {};  // of the reader's clock, for times of day
};

// ID NAME USER TIER STATE TIME DEVICES WHY. At most `limit` lines (0: all), then "… N more". Four
// or more waiting tasks of one group in a row with equal blockers are one line.
std::string jobs_table(const std::vector<control::JobView>& jobs, Instant now, const Screen& screen,
                       std::size_t limit);

// All about one job: its blockers with what is needed, what there is and what helps; the rules
// applied; when it may start, or why that is unknown.
std::string job_why(const control::JobView& job, Instant now, const Screen& screen);

// The GPUs of every node with MIG instances and processes below them.
std::string gpus_table(const std::vector<control::NodeView>& nodes, Instant now,
                       const Screen& screen);

// What was measured per workload, its category with evidence, and what could be smaller.
std::string workloads_table(const std::vector<WorkloadSummary>& workloads, const Screen& screen);

// The end of a day: what ran, who waited how long and for what, what was measured, what could be
// smaller. What started jobs had waited for is known from `waits` only.
std::string day_summary(const std::vector<control::JobView>& jobs,
                        const std::vector<WorkloadSummary>& workloads,
                        const std::vector<control::NodeView>& nodes, Instant now,
                        const Screen& screen, const WaitLog& waits = {});

// One picture of `takt top`: GPUs as bars, progress, running and waiting jobs; at most `rows` lines
// (0: no limit). The caller clears the screen.
std::string live_screen(const std::vector<control::JobView>& jobs,
                        const std::vector<control::NodeView>& nodes, const control::Counts& counts,
                        Instant now, const Screen& screen, std::size_t rows);

}  // namespace takt::report
