#include "app/report/words.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

#include "core/model/quantity_text.h"

namespace takt::report {

using control::JobState;
using control::JobView;

Colour colour_of(JobState state) {
  switch (state) {
    case JobState::waiting: return Colour::yellow;
    case JobState::starting:
    case JobState::running: return Colour::green;
    case JobState::stopping: return Colour::yellow;
    case JobState::failed: return Colour::red;
    case JobState::done:
    case JobState::cancelled: break;
  }
  return Colour::dim;
}

std::string time_of_day(Instant at, const Screen& screen) {
  constexpr std::int64_t day = 24LL * 3600;
  std::int64_t s = ((at + screen.utc_offset).us / 1'000'000) % day;
  if (s < 0) s += day;
  return fmt::format("{:02}:{:02}", s / 3600, s / 60 % 60);
}

std::string moment(Instant at, Instant now, const Screen& screen) {
  if (at <= now) return "any moment now";
  return fmt::format("in {} (about {})", format_duration(at - now), time_of_day(at, screen));
}

std::string percent(double ratio) { return fmt::format("{:.0f} %", ratio * 100); }

std::string not_available(const Missing& why) { return "n/a (" + to_string(why) + ")"; }

std::string counted(long long n, const std::string& noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

Duration time_shown(const JobView& job, Instant now) {
  const Instant from = job.started && job.state != JobState::waiting ? *job.started : job.submitted;
  return std::max(job.ended.value_or(now) - from, Duration{});
}

std::string devices_shown(const JobView& job) {
  std::string out;
  for (const control::DeviceLabel& device : job.devices)
    out += (out.empty() ? "" : ", ") + device.label;
  if (out.empty() && job.state == JobState::waiting) return "asks " + job.request;
  return out;
}

std::string reason_shown(const JobView& job) {
  if (job.state == JobState::waiting && !job.waiting_for.empty()) {
    const Blocker& first = job.waiting_for.front();
    std::string out = "needs " + first.needed;
    if (!first.available.empty()) out += "; " + first.available;
    if (job.waiting_for.size() > 1) out += fmt::format(" (+{} more)", job.waiting_for.size() - 1);
    return out;
  }
  if (!job.reason.empty()) return job.reason;
  if (job.state == JobState::failed && job.exit) return describe(*job.exit);
  return "";
}

bool any_emulated(const std::vector<control::NodeView>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const control::NodeView& n) { return n.node.emulated; });
}

}  // namespace takt::report
