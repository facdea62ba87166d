#include "edge/store/sqlite_file.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/fault_point.h"

namespace takt::store {
namespace {

namespace fs = std::filesystem;

std::string words(int error) { return std::strerror(error); }

bool means_full(int error) { return error == ENOSPC || error == EFBIG || error == EDQUOT; }

Error full(const std::string& path) {
  return Error{
      ErrorKind::unavailable,
      fmt::format("{}: the disk is full: free some space; nothing of this write was kept", path)};
}

Error damaged(const std::string& path, const FileKind& kind, const std::string& how) {
  return Error{ErrorKind::invalid, fmt::format("{} is damaged ({}): it is left as it is; {}", path,
                                               how, kind.when_damaged)};
}

// Why the last write or sync of the log or else of the database failed; 0 when that is not known.
// (sqlite3_system_errno has forgotten it after a rollback.)
int last_errno(const SQLite::Database& db) {
  sqlite3* handle = db.getHandle();
  int error = 0;
  sqlite3_file* log = nullptr;
  ::sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
  if (log != nullptr && log->pMethods != nullptr) {
    log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &error);
  }
  if (error == 0) ::sqlite3_file_control(handle, "main", SQLITE_FCNTL_LAST_ERRNO, &error);
  return error != 0 ? error : ::sqlite3_system_errno(handle);
}

// The start of an SQLite file (https://www.sqlite.org/fileformat.html, "The Database Header").
struct Header {
  std::uint64_t page_bytes = 0;
  std::uint64_t pages = 0;
  std::uint32_t application_id = 0;
};

std::uint32_t big_endian(const std::array<unsigned char, 100>& bytes, std::size_t at,
                         std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = at; i < at + count; ++i) value = value << 8 | bytes[i];
  return value;
}

// nullopt when it does not start like an SQLite file.
std::optional<Header> read_header(const std::string& path) {
  std::array<unsigned char, 100> bytes{};
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t got = fd < 0 ? -1 : ::read(fd, bytes.data(), bytes.size());
  if (fd >= 0) ::close(fd);
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  if (got != static_cast<ssize_t>(bytes.size()) ||
      std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    return std::nullopt;
  }
  Header header;
  header.page_bytes = big_endian(bytes, 16, 2);
  if (header.page_bytes == 1) header.page_bytes = 65536;
  header.pages = big_endian(bytes, 28, 4);
  header.application_id = big_endian(bytes, 68, 4);
  return header;
}

std::uint64_t size_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

// What can be told without SQLite, which would repair, create or extend what it opens.
Result<void> check_before_opening(const std::string& path, const FileKind& kind) {
  const std::uint64_t bytes = size_of(path);
  if (bytes == 0) return tl::make_unexpected(damaged(path, kind, "it is empty"));
  const auto header = read_header(path);
  const bool backup = header && kind.backup_id != 0 && header->application_id == kind.backup_id;
  if (!header || (header->application_id != kind.application_id && !backup)) {
    // A file that is cut off within its header is ours and damaged, or anything: both hold.
    return fail(ErrorKind::invalid,
                fmt::format("{} is not takt's {}: it is left as it is; move it away, or {}", path,
                            kind.name, kind.when_damaged));
  }
  if (size_of(path + "-journal") > 0) {
    return fail(ErrorKind::invalid,
                fmt::format("{0}-journal is not takt's, and opening {0} would apply it: both are "
                            "left as they are; move it away if you know what it is",
                            path));
  }
  if (backup && size_of(path + "-wal") > 0) {
    return fail(ErrorKind::invalid,
                fmt::format("{0} is a backup, but {0}-wal of another {1} is beside it: nothing was "
                            "touched; move {0}-wal away",
                            path, kind.name));
  }
  // While a log exists, the file may be shorter than its header says: a crash in the middle of
  // folding the log in. SQLite sorts that out. Without a log it is damage.
  if (size_of(path + "-wal") == 0 && bytes < header->pages * header->page_bytes) {
    return tl::make_unexpected(damaged(path, kind,
                                       fmt::format("it has {} bytes, its header promises {}", bytes,
                                                   header->pages * header->page_bytes)));
  }
  return {};
}

// A new file appears under its name when it is complete: an empty or half-made one under that name
// is always damage. Only its owner may read it: jobs' environments are in it.
Result<void> create(const std::string& path, const FileKind& kind) {
  for (const auto& [end, what] : {std::pair{"-wal", "log"}, {".tail", "note"}}) {
    if (size_of(path + end) == 0) continue;
    return fail(ErrorKind::invalid,
                fmt::format("{0} is missing but its {2} {0}{1} is there: put it back, or {3}", path,
                            end, what, kind.when_damaged));
  }
  const std::string fresh = path + ".new";
  for (const char* end : {"", "-wal", "-journal", "-shm"}) ::unlink((fresh + end).c_str());
  const int fd = ::open(fresh.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) {
    const int error = errno;
    if (means_full(error)) return tl::make_unexpected(full(path));
    return fail(error == EACCES || error == EROFS ? ErrorKind::forbidden : ErrorKind::io,
                fmt::format("cannot create {}: {}", fresh, words(error)));
  }
  // SQLite loses the reason of a failed write on the way up (a quota looks like a broken disk), so
  // it is found out here whether there is space for an empty database.
  const std::string page(64u << 10, '\0');
  const ssize_t written = ::write(fd, page.data(), page.size());
  const int write_error = written < 0 ? errno : ENOSPC;
  const bool room = written == static_cast<ssize_t>(page.size()) && ::ftruncate(fd, 0) == 0;
  ::close(fd);
  if (!room) {
    ::unlink(fresh.c_str());
    if (means_full(write_error)) return tl::make_unexpected(full(path));
    return fail(ErrorKind::io, fmt::format("cannot write {}: {}", fresh, words(write_error)));
  }
  std::unique_ptr<SQLite::Database> db;
  try {
    db = std::make_unique<SQLite::Database>(fresh, SQLite::OPEN_READWRITE);
    db->exec("PRAGMA synchronous = FULL");
    // Half as many frames for a batch as with SQLite's own 4096: measured 15 % less for 1,000
    // records, and no more for one (bench/journal_bench).
    db->exec("PRAGMA page_size = 8192");
    db->exec(fmt::format("PRAGMA application_id = {}", static_cast<int>(kind.application_id)));
    db->exec(fmt::format("PRAGMA user_version = {}", kind.format_version));
    db->exec(kind.schema);
    db->exec("PRAGMA journal_mode = WAL");
    db.reset();
  } catch (const std::exception& e) {
    Error error = error_of(e, path, kind, db.get());
    db.reset();
    for (const char* end : {"", "-wal", "-journal", "-shm"}) ::unlink((fresh + end).c_str());
    return tl::make_unexpected(std::move(error));
  }
  fault_point("store.before-create");
  if (::rename(fresh.c_str(), path.c_str()) != 0) {
    return fail(ErrorKind::io, fmt::format("cannot name {} {}: {}", fresh, path, words(errno)));
  }
  fault_point("store.after-create");
  return sync_folder_of(path);
}

// Damage in the table of contents would else show as an error in some statement.
std::string schema_of(SQLite::Database& db) {
  SQLite::Statement rows(db,
                         "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"
                         " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid");
  std::string all;
  while (rows.executeStep()) all += rows.getColumn(0).getString() + ";";
  return all;
}

Result<void> check_after_opening(SQLite::Database& db, const std::string& path,
                                 const FileKind& kind) {
  const int version = db.execAndGet("PRAGMA user_version").getInt();
  if (version > kind.format_version) {
    return fail(ErrorKind::invalid,
                fmt::format("{} was written by a newer takt (format {}, this one knows up to {}): "
                            "it is left as it is; run the newer takt, or name another state folder",
                            path, version, kind.format_version));
  }
  if (version < kind.oldest_version) {
    return tl::make_unexpected(damaged(path, kind, fmt::format("unknown format {}", version)));
  }
  if (schema_of(db) != kind.schema) {
    return tl::make_unexpected(damaged(path, kind, "its tables are not those of this format"));
  }
  if (!kind.checked_whole) return {};
  const std::string verdict = db.execAndGet("PRAGMA quick_check(1)").getString();
  if (verdict != "ok") return tl::make_unexpected(damaged(path, kind, verdict));
  return {};
}

}  // namespace

Result<void> sync_folder_of(const std::string& path) {
  const std::string folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : ".";
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = fd >= 0 && ::fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (!synced) return fail(ErrorKind::io, fmt::format("cannot sync {}: {}", folder, words(error)));
  return {};
}

Result<FileLock> lock_file_of(const std::string& path, const FileKind& kind) {
  const std::string lock_path = path + ".lock";
  auto lock = FileLock::take(lock_path, 0600);
  if (lock) return *std::move(lock);
  const FileLock::Refusal& refusal = lock.error();
  const int error = refusal.error;
  if (refusal.kind == FileLock::Refusal::Kind::held)
    return fail(ErrorKind::conflict,
                fmt::format("the {} {} is in use by another takt{}: stop that one first, or name "
                            "another state folder",
                            kind.name, path,
                            refusal.holder.empty() ? "" : " (pid " + refusal.holder + ")"));
  if (refusal.kind == FileLock::Refusal::Kind::cannot_lock)
    return fail(ErrorKind::io, fmt::format("cannot lock {}: {}", lock_path, words(error)));
  const std::string folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : ".";
  if (error == ENOENT || error == ENOTDIR)
    return fail(ErrorKind::not_found,
                fmt::format("the folder {} for the {} does not exist: create it or name another",
                            folder, kind.name));
  if (means_full(error)) return tl::make_unexpected(full(path));
  return fail(
      error == EACCES || error == EROFS || error == EPERM ? ErrorKind::forbidden : ErrorKind::io,
      fmt::format("cannot write in {}, where the {} is to be: {}; make it writable for this user "
                  "or name another folder",
                  folder, kind.name, words(error)));
}

Result<std::unique_ptr<SQLite::Database>> open_file(const std::string& path, const FileKind& kind) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno != ENOENT) {
      return fail(ErrorKind::io, fmt::format("cannot look at {}: {}", path, words(errno)));
    }
    if (auto created = create(path, kind); !created) return tl::make_unexpected(created.error());
  } else if (!S_ISREG(status.st_mode)) {
    return fail(ErrorKind::invalid,
                fmt::format("{} is not a file: move it away or name another state folder", path));
  } else if (::access(path.c_str(), R_OK | W_OK) != 0) {
    return fail(ErrorKind::forbidden,
                fmt::format("{} may not be read and written by this user ({}): is it another "
                            "user's? Name another state folder",
                            path, words(errno)));
  }
  if (auto fine = check_before_opening(path, kind); !fine) {
    return tl::make_unexpected(fine.error());
  }
  std::unique_ptr<SQLite::Database> db;
  try {
    db = std::make_unique<SQLite::Database>(path, SQLite::OPEN_READWRITE);
    ::sqlite3_db_config(db->getHandle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    db->exec("PRAGMA locking_mode = EXCLUSIVE");
    if (auto fine = check_after_opening(*db, path, kind); !fine) {
      close_refused(std::move(db), path);
      return tl::make_unexpected(fine.error());
    }
    return db;
  } catch (const std::exception& e) {
    Error error = error_of(e, path, kind, db.get());
    close_refused(std::move(db), path);
    return tl::make_unexpected(std::move(error));
  }
}

Result<void> begin_use(SQLite::Database& db, const std::string& path, const FileKind& kind,
                       const std::string& synchronous) {
  try {
    const std::string mode = db.execAndGet("PRAGMA journal_mode = WAL").getString();
    if (mode != "wal") {
      return fail(ErrorKind::io, fmt::format("{} cannot be used in WAL mode (SQLite says {}): is "
                                             "its file system read-only?",
                                             path, mode));
    }
    db.exec("PRAGMA synchronous = " + synchronous);
    db.exec("PRAGMA journal_size_limit = 16777216");  // the log shrinks again after a burst
    return {};
  } catch (const std::exception& e) {
    return tl::make_unexpected(error_of(e, path, kind, &db));
  }
}

void allow_folding(SQLite::Database& db) {
  ::sqlite3_db_config(db.getHandle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
}

void close_refused(std::unique_ptr<SQLite::Database> db, const std::string& path) {
  db.reset();
  const std::string log = path + "-wal";
  struct stat status {};
  if (::stat(log.c_str(), &status) == 0 && status.st_size == 0) ::unlink(log.c_str());
}

Error error_of(const std::exception& e, const std::string& path, const FileKind& kind,
               const SQLite::Database* db) {
  const auto* sqlite = dynamic_cast<const SQLite::Exception*>(&e);
  const int code = sqlite == nullptr ? SQLITE_ERROR : sqlite->getErrorCode() & 0xFF;
  const int system = db == nullptr ? 0 : last_errno(*db);
  const auto with = [&](ErrorKind error_kind, const std::string& next) {
    return Error{error_kind, fmt::format("{}: {}; {}", path, e.what(), next)};
  };
  switch (code) {
    case SQLITE_FULL: return full(path);
    case SQLITE_IOERR:
      if (means_full(system)) return full(path);
      return with(ErrorKind::io, (system == 0 ? std::string() : words(system) + ": ") +
                                     "look at the disk and the system's log");
    case SQLITE_ERROR:  // our statements are right: the schema is not what it was
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return damaged(path, kind, e.what());
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return with(ErrorKind::conflict,
                  "another program has it open: close that one first (an sqlite3 shell?)");
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      if (means_full(system)) return full(path);
      return with(ErrorKind::forbidden, "make it and its folder writable for this user");
    case SQLITE_TOOBIG:
      return with(ErrorKind::invalid, "the text is larger than SQLite takes in one row");
    default: return with(ErrorKind::io, "this is unexpected; please report it");
  }
}

}  // namespace takt::store
