#pragma once
// The small words that all reports share.
#include <string>
#include <vector>

#include "app/report/table.h"
#include "core/base/measured.h"
#include "core/base/quantities.h"
#include "core/control/view.h"
#include "core/model/measurement.h"

namespace takt::report {

Colour colour_of(control::JobState state);

// "14:20", of the reader's clock.
std::string time_of_day(Instant at, const Screen& screen);
// "in 4m30s (about 14:20)", or "any moment now".
std::string moment(Instant at, Instant now, const Screen& screen);

std::string percent(double ratio);
// "n/a (reason)".
std::string not_available(const Missing& why);
// "3 jobs", "1 job".
std::string counted(long long n, const std::string& noun);

// Waiting: since when; running: for how long; over: how long it ran.
Duration time_shown(const control::JobView& job, Instant now);
// "gpu0, gpu1", or what is asked for while it has nothing.
std::string devices_shown(const control::JobView& job);
// Why it waits, failed or was stopped, in a line; may be empty.
std::string reason_shown(const control::JobView& job);

// The table of workloads, with or without its lines of advice.
std::string workloads_text(const std::vector<WorkloadSummary>& workloads, bool with_advice,
                           const Screen& screen);

bool any_emulated(const std::vector<control::NodeView>& nodes);

}  // namespace takt::report
