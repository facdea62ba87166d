#include "crash/points.h"

#include <iterator>

#include "crash/fault_board.h"

namespace takt::crash {
namespace {

constexpr Point kPoints[] = {
    // Of an empty state folder, in this order.
    {kController, "store.before-create", Way::fresh, 0},
    {kController, "store.after-create", Way::fresh, 0},
    {kController, "journal.before-note-created", Way::fresh, 0},
    {kController, "journal.after-note-created", Way::fresh, 0},

    {kController, "journal.before-write", Way::jobs, 5},
    {kController, "journal.before-commit", Way::jobs, 5},
    {kController, "journal.after-commit", Way::jobs, 5},
    {kController, "journal.after-note", Way::jobs, 5},
    {kController, "controller.before-append", Way::jobs, 5},
    {kController, "controller.after-append", Way::jobs, 5},
    {kController, "controller.before-reply", Way::jobs, 5},
    {kController, "controller.before-send", Way::jobs, 5},
    {kController, "controller.after-send", Way::jobs, 5},
    {kController, "journal.before-snapshot-commit", Way::stop, 2},
    {kController, "journal.after-snapshot-commit", Way::stop, 2},
    {kController, "journal.before-prune-commit", Way::stop, 2},
    {kController, "journal.after-prune-commit", Way::stop, 2},
    {kController, "telemetry.before-commit", Way::jobs, 3},
    {kController, "telemetry.after-commit", Way::jobs, 3},
    {kController, "archive.before-write", Way::restart, 2},
    {kController, "archive.before-commit", Way::restart, 2},
    {kController, "archive.after-commit", Way::restart, 2},
    {kController, "archive.before-told", Way::restart, 2},
    {kController, "backup.after-step", Way::backup, 2},
    {kController, "backup.before-sync", Way::backup, 2},
    {kController, "engine.after-fork", Way::restart, 2},
#ifndef TAKT_SANITIZED
    // Inside of SQLite (programs/file_calls.cpp).
    {kController, "file.before-write", Way::jobs, 17},
    {kController, "file.half-written", Way::jobs, 10},
    {kController, "file.before-sync", Way::jobs, 5},
    {kController, "file.after-sync", Way::jobs, 5},
    {kController, "file.before-truncate", Way::stop, 2},
#endif

    {kAgent, "agent.before-effect", Way::jobs, 4},
    {kAgent, "agent.after-effect", Way::jobs, 4},
    {kAgent, "agent.before-report", Way::jobs, 5},
    {kAgent, "agent.after-report", Way::jobs, 5},
    {kAgent, "launcher.after-folder", Way::jobs, 3},
    {kAgent, "launcher.after-cgroups", Way::jobs, 3},
    {kAgent, "launcher.before-write-spec", Way::jobs, 3},
    {kAgent, "record.before-rename", Way::jobs, 3},
    {kAgent, "launcher.after-write-spec", Way::jobs, 3},
    {kAgent, "launcher.before-spawn", Way::jobs, 3},
    {kAgent, "launcher.after-spawn", Way::jobs, 3},
    {kAgent, "launcher.before-remove", Way::jobs, 3},
    {kAgent, "launcher.after-remove-spec", Way::jobs, 3},
    {kAgent, "launcher.before-delete", Way::jobs, 3},
    {kAgent, "launcher.after-remove", Way::jobs, 3},
    {kAgent, "launcher.before-write-stop", Way::cancel, 2},
    {kAgent, "launcher.after-write-stop", Way::cancel, 2},
    {kAgent, "launcher.before-write-exit", Way::lost_shim, 2},
    {kAgent, "record.before-rename-exit", Way::lost_shim, 2},
    {kAgent, "launcher.after-write-exit", Way::lost_shim, 2},

    {kShim, "shim.after-detach"},
    {kShim, "shim.after-lock"},
    {kShim, "shim.after-reserve"},
    {kShim, "shim.before-fork"},
    {kShim, "shim.after-fork"},
    {kShim, "shim.before-write-job"},
    {kShim, "record.before-rename"},
    {kShim, "shim.after-write-job"},
    {kShim, "shim.before-release"},
    {kShim, "shim.after-release"},
    {kShim, "shim.before-write-exit"},
    {kShim, "record.before-rename-exit"},
    {kShim, "shim.after-write-exit"},
    {kShim, "shim.before-remove-cgroups"},
    {kShim, "shim.after-remove-cgroups"},

    // Last: after these jobs that are over may be gone.
    {kController, "archive.before-trim-commit", Way::trim, 2},
    {kController, "archive.before-remove-logs", Way::trim, 2},
};

}  // namespace

const std::vector<Point>& points() {
  static const std::vector<Point> all(std::begin(kPoints), std::end(kPoints));
  return all;
}

}  // namespace takt::crash
