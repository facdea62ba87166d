#pragma once
// Opening one of takt's SQLite files so that nothing damaged, foreign or newer is ever touched, and
// turning SQLite's errors into sentences. Internal to the room.
#include <cstdint>
#include <exception>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "edge/store/file_lock.h"

namespace SQLite {
class Database;
}

namespace takt::store {

// What tells our files from others.
struct FileKind {
  std::string name;              // "journal", for sentences
  std::uint32_t application_id;  // SQLite's, in the file's header
  int format_version;            // SQLite's user_version; newer files are refused
  int oldest_version;            // that is still read; the caller lifts it
  std::string schema;            // SQL that makes an empty one
  bool checked_whole;            // read every page at open; else damage shows when it is met
  std::string when_damaged;      // the next step, as a clause: "restore it from ..."
  // The application_id of a copy made by a backup; 0: this kind has none. Such a file is opened
  // only without a log beside it, which would be another one's.
  std::uint32_t backup_id = 0;
};

// The lock beside the database.
Result<FileLock> lock_file_of(const std::string& path, const FileKind& kind);

// Opens or creates, with exclusive locking. The caller holds the lock, and makes its own checks
// before it calls begin_use.
Result<std::unique_ptr<SQLite::Database>> open_file(const std::string& path, const FileKind& kind);
// WAL mode with the given synchronous mode ("FULL").
Result<void> begin_use(SQLite::Database& db, const std::string& path, const FileKind& kind,
                       const std::string& synchronous);
// Before the first write. Until then closing leaves file and log byte for byte as they are, so that
// a reader who cannot use what is in them has changed nothing; from now on it folds the log in.
void allow_folding(SQLite::Database& db);
// Closes a file that was refused, and takes away the empty log that looking at it made.
void close_refused(std::unique_ptr<SQLite::Database> db, const std::string& path);

Result<void> sync_folder_of(const std::string& path);

// The exception that is being handled, as an Error about the file. db may be null.
Error error_of(const std::exception& e, const std::string& path, const FileKind& kind,
               const SQLite::Database* db);

}  // namespace takt::store
