// takt top: the live view, redrawn in place on a terminal and printed one after the other
// elsewhere.
#include <fmt/core.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "app/cli/commands.h"
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
  Session session;
  const bool terminal = on_terminal();
  if (terminal) fmt::print("\033[2J");
  while (true) {
    Query query = screen_query("live");
    query["all"] = "true";
    query["limit"] = std::to_string(terminal ? terminal_rows() - 1 : 0);
    auto picture = session.get("/v1/jobs", query);
    if (!picture) return complain(picture.error());
    // Home, then the picture with each line's rest erased, then everything below.
    std::string text = picture->body;
    if (terminal) {
      for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 4)
        text.replace(at, 1, "\033[K\n");
      text = "\033[H" + text + "\033[J";
    } else {
      text += "\n";
    }
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    const auto unfinished = picture->headers.find("x-takt-unfinished");
    const bool idle = unfinished != picture->headers.end() && unfinished->second == "0";
    if (flags.once || (flags.until_idle && idle)) return kExitFine;
    std::this_thread::sleep_for(std::chrono::microseconds(interval->us));
  }
}

}  // namespace takt::cli
