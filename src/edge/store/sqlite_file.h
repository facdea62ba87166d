#pragma once
// Opening one of takt's SQLite files so that nothing damaged, foreign or newer is ever touched, and
// turning SQLite's errors into sentences. Internal to the room.
#include <cstdint>
#include <exception>
#include <memory>
#include <string>

#include "core/base/result.h"

namespace SQLite {
class Database;
}

namespace takt::store {

// What tells our files from others.
struct FileKind {
  std::string name;              // "journal", for sentences
  std::uint32_t application_id;  // SQLite's, in the file's header
  int format_version;            // SQLite's user_version; newer files are refused
  std::string schema;            // SQL that makes an empty one
  bool checked_whole;            // read every page at open; else damage shows when it is met
  std::string when_damaged;      // the next step, as a clause: "restore it from ..."
};

// A lock file beside the database, held with flock as long as this lives; the kernel releases it
// when the process dies. The file itself stays: removing it would let two processes hold two locks.
class FileLock {
 public:
  static Result<FileLock> take(const std::string& path, const FileKind& kind);
  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

// Opens or creates, in WAL mode with exclusive locking and the given synchronous mode ("FULL").
// The caller holds the lock.
Result<std::unique_ptr<SQLite::Database>> open_file(const std::string& path, const FileKind& kind,
                                                    const std::string& synchronous);

// The exception that is being handled, as an Error about the file. db may be null.
Error error_of(const std::exception& e, const std::string& path, const FileKind& kind,
               const SQLite::Database* db);

}  // namespace takt::store
