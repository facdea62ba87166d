#include "edge/store/backup.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/base/fault_point.h"

namespace takt::store {
namespace {

constexpr int kPagesAStep = 64;  // 256 KiB
// Between two steps, so that a waiting writer gets the mutex: it is not a fair one.
constexpr std::chrono::milliseconds kRest(1);

void remove_with_logs(const std::string& path) {
  for (const char* end : {"", "-wal", "-journal", "-shm"}) ::unlink((path + end).c_str());
}

void copy_pages(SQLite::Database& from, std::mutex& mutex, SQLite::Database& to) {
  // A backup of the same connection that writes follows its writes by itself.
  const auto locked = [&](auto work) {
    const std::lock_guard guard(mutex);
    return work();
  };
  sqlite3_backup* backup = locked(
      [&] { return ::sqlite3_backup_init(to.getHandle(), "main", from.getHandle(), "main"); });
  if (backup == nullptr) throw SQLite::Exception(to.getHandle());
  int code = SQLITE_OK;
  while (code == SQLITE_OK || code == SQLITE_BUSY || code == SQLITE_LOCKED) {
    code = locked([&] { return ::sqlite3_backup_step(backup, kPagesAStep); });
    fault_point("backup.after-step");
    if (code != SQLITE_DONE) std::this_thread::sleep_for(kRest);
  }
  const int finished = locked([&] { return ::sqlite3_backup_finish(backup); });
  if (finished != SQLITE_OK) throw SQLite::Exception(to.getHandle(), finished);
}

Result<void> sync_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = fd >= 0 && ::fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (synced) return {};
  return fail(ErrorKind::io, fmt::format("cannot sync {}: {}", path, std::strerror(error)));
}

}  // namespace

Result<void> copy_database(SQLite::Database& from, std::mutex& mutex, const std::string& to,
                           const FileKind& kind) {
  const int fd = ::open(to.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) {
    return fail(errno == EEXIST ? ErrorKind::conflict : ErrorKind::io,
                fmt::format("cannot create {}: {}", to, std::strerror(errno)));
  }
  ::close(fd);
  std::unique_ptr<SQLite::Database> copy;
  try {
    copy = std::make_unique<SQLite::Database>(to, SQLite::OPEN_READWRITE);
    copy->exec("PRAGMA journal_mode = OFF");  // a half-made copy is removed, not repaired
    copy->exec("PRAGMA synchronous = OFF");   // synced once, at the end
    copy_pages(from, mutex, *copy);
    copy = std::make_unique<SQLite::Database>(to, SQLite::OPEN_READWRITE);
    copy->exec(fmt::format("PRAGMA application_id = {}", static_cast<int>(kind.backup_id)));
    copy.reset();  // folds its log in and removes it
  } catch (const std::exception& e) {
    Error error = error_of(e, to, kind, copy.get());
    copy.reset();
    remove_with_logs(to);
    return tl::make_unexpected(std::move(error));
  }
  fault_point("backup.before-sync");
  auto synced = sync_file(to);
  if (!synced) remove_with_logs(to);
  return synced;
}

}  // namespace takt::store
