// takt logs
#include <fmt/core.h>
#include <unistd.h>

#include <thread>

#include "app/cli/commands.h"
#include "app/cli/log_stream.h"
#include "app/cli/session.h"

namespace takt::cli {
namespace {

int code_of(const Result<void>& copied, const std::string& id, const Patience& patience) {
  if (copied) return kExitFine;
  if (!copied.error().message.empty()) tell(copied.error().message);
  if (!patience.gave_up()) return exit_code_of(copied.error());
  if (patience.away()) tell(fmt::format("job {} goes on: `takt logs -f {}`", id, id));
  return kExitNoServer;
}

}  // namespace

int logs(const LogsFlags& flags) {
  const auto reconnect = reconnect_time(flags.reconnect);
  if (!reconnect) return complain(reconnect.error());
  const std::string& id = flags.id;
  Patience patience(fmt::format("job {} goes on", id), flags.follow ? *reconnect : Duration{0});
  if (flags.stream != "both")
    return code_of(copy_log(id, flags.stream, STDOUT_FILENO, flags.follow, patience), id, patience);
  // Each stream to its own descriptor, as the program wrote them. What ends one ends both.
  const auto copy = [&](const char* stream, int fd) {
    auto copied = copy_log(id, stream, fd, flags.follow, patience);
    if (!copied) patience.leave();
    return copied;
  };
  Result<void> errors;
  std::thread other([&] { errors = copy("stderr", STDERR_FILENO); });
  const Result<void> ok = copy("stdout", STDOUT_FILENO);
  other.join();
  return code_of(ok ? errors : ok, id, patience);
}

}  // namespace takt::cli
