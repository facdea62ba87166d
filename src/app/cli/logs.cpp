// takt logs
#include <unistd.h>

#include <thread>

#include "app/cli/commands.h"
#include "app/cli/log_stream.h"
#include "app/cli/session.h"

namespace takt::cli {

int logs(const std::string& id, bool follow, const std::string& stream) {
  const std::atomic<bool> leave{false};
  if (stream != "both") {
    auto ok = copy_log(id, stream, STDOUT_FILENO, follow, leave);
    return ok ? kExitFine : complain(ok.error());
  }
  // Each stream to its own descriptor, as the program wrote them.
  Result<void> errors;
  std::thread other([&] { errors = copy_log(id, "stderr", STDERR_FILENO, follow, leave); });
  auto ok = copy_log(id, "stdout", STDOUT_FILENO, follow, leave);
  other.join();
  if (!ok) return complain(ok.error());
  return errors ? kExitFine : complain(errors.error());
}

}  // namespace takt::cli
