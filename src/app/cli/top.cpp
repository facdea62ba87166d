// takt top: the live view, redrawn in place on a terminal and printed one after the other
// elsewhere.
#include <fmt/core.h>

#include <chrono>
#include <thread>
#include <utility>

#include "app/cli/commands.h"
#include "app/cli/output.h"
#include "app/cli/patience.h"
#include "app/cli/session.h"
#include "core/model/quantity_text.h"

namespace takt::cli {

int top(const TopFlags& flags) {
  const auto interval = parse_duration(flags.interval);
  if (!interval || *interval < milliseconds(100))
    return complain(
        {ErrorKind::invalid, fmt::format("--interval: '{}' is not a duration of at least "
                                         "100ms, e.g. 1s",
                                         flags.interval)});
  const auto reconnect = reconnect_time(flags.reconnect);
  if (!reconnect) return complain(reconnect.error());
  Session session;
  Patience patience("jobs go on", flags.once ? Duration{0} : *reconnect);
  const bool terminal = on_terminal();
  std::string before = terminal ? "\033[2J" : "";  // clears the screen once
  while (true) {
    Query query = screen_query("live");
    query["all"] = "true";
    query["limit"] = std::to_string(terminal ? terminal_rows() - 1 : 0);
    auto picture = patience.get(session, "/v1/jobs", query);
    if (!picture) {
      const int code = complain(picture.error());
      return patience.gave_up() ? kExitNoServer : code;
    }
    // Home, then the picture with each line's rest erased, then everything below.
    std::string text = picture->body;
    if (terminal) {
      for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 4)
        text.replace(at, 1, "\033[K\n");
      text = "\033[H" + text + "\033[J";
    } else {
      text += "\n";
    }
    if (const int code = put(std::exchange(before, "") + text); code != kExitFine) return code;
    const auto unfinished = picture->headers.find("x-takt-unfinished");
    const bool idle = unfinished != picture->headers.end() && unfinished->second == "0";
    if (flags.once || (flags.until_idle && idle)) return kExitFine;
    std::this_thread::sleep_for(std::chrono::microseconds(interval->us));
  }
}

}  // namespace takt::cli
