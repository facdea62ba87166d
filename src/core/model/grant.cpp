#include "core/model/grant.h"

namespace takt {

std::string to_string(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::whole_gpu: return "gpu";
    case DeviceKind::mig_instance: return "mig";
    case DeviceKind::share: break;
  }
  return "share";
}

std::string describe(const ExitStatus& exit) {
  switch (exit.cause) {
    case ExitCause::exited:
      return "exit code " + std::to_string(exit.code) +
             (exit.oom ? " (the host ran it out of memory)" : "");
    case ExitCause::signalled:
      return "killed by signal " + std::to_string(exit.signal) +
             (exit.oom ? " (the host ran it out of memory)" : "");
    case ExitCause::start_failed: return "could not start: " + exit.message;
    case ExitCause::lost: break;
  }
  return "lost: " + exit.message;
}

}  // namespace takt
