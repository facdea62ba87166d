#pragma once
// A consistent copy of a database that goes on being written (SQLite's online backup,
// https://www.sqlite.org/backup.html). Internal to the room.
#include <mutex>
#include <string>

#include "core/base/result.h"
#include "edge/store/sqlite_file.h"

namespace takt::store {

// Copies to a new file, readable by its owner only, synced, and marked as a backup of the kind.
// The mutex guards the connection and is held for one step at a time, so writers wait a few
// milliseconds at most. The file must not exist. On an error nothing is left of it.
Result<void> copy_database(SQLite::Database& from, std::mutex& mutex, const std::string& to,
                           const FileKind& kind);

}  // namespace takt::store
