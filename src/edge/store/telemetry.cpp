#include "edge/store/telemetry.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "core/base/fault_point.h"
#include "edge/store/sqlite_file.h"

namespace takt::store {
namespace {

const FileKind& telemetry_kind() {
  static const FileKind kind{
      "telemetry",
      0x7461746D,  // "tatm"
      1,
      1,
      "CREATE TABLE summaries (attempt TEXT PRIMARY KEY, workload TEXT NOT NULL,"
      " ended_us INTEGER NOT NULL, json TEXT NOT NULL) STRICT;"
      "CREATE INDEX by_workload ON summaries (workload, ended_us, attempt);"
      "CREATE INDEX by_time ON summaries (ended_us, attempt);",
      false,
      "move it away: takt then measures anew, jobs are not touched"};
  return kind;
}

}  // namespace

struct Telemetry::Impl {
  Impl(std::string path_in, Options options_in, FileLock lock_in,
       std::unique_ptr<SQLite::Database> db_in)
      : path(std::move(path_in)),
        options(options_in),
        lock(std::move(lock_in)),
        db(std::move(db_in)) {}

  Error error(const std::exception& e) const {
    return error_of(e, path, telemetry_kind(), db.get());
  }
  std::int64_t trim_workload(const std::string& workload);
  // Looking for what is too much reads all that is kept of a workload: that is done for every 16th
  // part of it that was added, not with each.
  bool trim_is_due(const std::string& workload) {
    std::size_t& added = added_since_trim[workload];
    if (++added <= options.per_workload_max / 16) return false;
    added_since_trim.erase(workload);
    return true;
  }
  // Ready to be bound anew.
  SQLite::Statement& kept(std::optional<SQLite::Statement>& statement, const char* sql) {
    if (!statement) statement.emplace(*db, sql);
    (void)statement->tryReset();  // whatever an earlier failure left behind
    statement->clearBindings();
    return *statement;
  }
  std::int64_t count() { return db->execAndGet("SELECT count(*) FROM summaries").getInt64(); }

  const std::string path;
  const Options options;
  FileLock lock;
  std::unique_ptr<SQLite::Database> db;
  std::optional<SQLite::Statement> remove;
  std::optional<SQLite::Statement> insert;
  std::map<std::string, std::size_t> added_since_trim;  // by workload
  std::mutex mutex;
  std::int64_t rows = 0;  // guarded by mutex
};

Result<std::unique_ptr<Telemetry>> Telemetry::open(const std::string& path) {
  return open(path, Options{});
}

Result<std::unique_ptr<Telemetry>> Telemetry::open(const std::string& path, Options options) {
  auto lock = lock_file_of(path, telemetry_kind());
  if (!lock) return tl::make_unexpected(lock.error());
  // NORMAL: the newest summaries may be lost with the power, in exchange no save waits for the
  // disk.
  auto db = open_file(path, telemetry_kind());
  if (!db) return tl::make_unexpected(db.error());
  if (auto used = begin_use(**db, path, telemetry_kind(), "NORMAL"); !used) {
    return tl::make_unexpected(used.error());
  }
  allow_folding(**db);
  auto impl = std::make_unique<Impl>(path, options, *std::move(lock), *std::move(db));
  try {
    impl->rows = impl->count();
  } catch (const std::exception& e) {
    return tl::make_unexpected(impl->error(e));
  }
  return std::unique_ptr<Telemetry>(new Telemetry(std::move(impl)));
}

Telemetry::Telemetry(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Telemetry::~Telemetry() = default;

// How many it deleted.
std::int64_t Telemetry::Impl::trim_workload(const std::string& workload) {
  SQLite::Statement surplus(
      *db,
      "DELETE FROM summaries WHERE rowid IN (SELECT rowid FROM summaries WHERE workload = ?"
      " ORDER BY ended_us DESC, attempt DESC LIMIT -1 OFFSET ?)");
  surplus.bind(1, workload);
  surplus.bind(2, static_cast<std::int64_t>(options.per_workload_max));
  return surplus.exec();
}

Result<void> Telemetry::save_summary(const std::string& workload, const std::string& attempt,
                                     std::int64_t ended_us, const std::string& json) {
  const std::lock_guard guard(impl_->mutex);
  if (json.size() > impl_->options.json_bytes_max) {
    return fail(ErrorKind::invalid,
                fmt::format("{}: the summary of {} has {} bytes, the most that is kept is {}",
                            impl_->path, attempt, json.size(), impl_->options.json_bytes_max));
  }
  try {
    SQLite::Transaction transaction(*impl_->db);
    SQLite::Statement& remove =
        impl_->kept(impl_->remove, "DELETE FROM summaries WHERE attempt = ?");
    remove.bind(1, attempt);
    std::int64_t rows = impl_->rows - remove.exec();
    SQLite::Statement& insert = impl_->kept(impl_->insert,
                                            "INSERT INTO summaries (attempt, workload, ended_us,"
                                            " json) VALUES (?, ?, ?, ?)");
    insert.bind(1, attempt);
    insert.bind(2, workload);
    insert.bind(3, ended_us);
    insert.bindNoCopy(4, json);
    rows += insert.exec();
    if (impl_->trim_is_due(workload)) rows -= impl_->trim_workload(workload);
    const std::int64_t surplus = rows - static_cast<std::int64_t>(impl_->options.summaries_max);
    if (surplus > 0) {
      SQLite::Statement trim(*impl_->db,
                             "DELETE FROM summaries WHERE rowid IN (SELECT rowid FROM summaries"
                             " ORDER BY ended_us, attempt LIMIT ?)");
      trim.bind(1, surplus);
      rows -= trim.exec();
    }
    fault_point("telemetry.before-commit");
    transaction.commit();
    fault_point("telemetry.after-commit");
    impl_->rows = rows;
    return {};
  } catch (const std::exception& e) {
    return tl::make_unexpected(impl_->error(e));
  }
}

Result<std::vector<Summary>> Telemetry::load_summaries(const std::optional<std::string>& workload,
                                                       std::size_t limit) {
  const std::lock_guard guard(impl_->mutex);
  const auto most = static_cast<std::int64_t>(std::min<std::size_t>(limit, 1u << 30));
  try {
    SQLite::Statement rows(
        *impl_->db, workload ? "SELECT workload, attempt, ended_us, json FROM summaries"
                               " WHERE workload = ?2 ORDER BY ended_us DESC, attempt DESC LIMIT ?1"
                             : "SELECT workload, attempt, ended_us, json FROM summaries"
                               " ORDER BY ended_us DESC, attempt DESC LIMIT ?1");
    rows.bind(1, most);
    if (workload) rows.bind(2, *workload);
    std::vector<Summary> out;
    while (rows.executeStep()) {
      out.push_back(Summary{rows.getColumn(0).getString(), rows.getColumn(1).getString(),
                            rows.getColumn(2).getInt64(), rows.getColumn(3).getString()});
    }
    return out;
  } catch (const std::exception& e) {
    return tl::make_unexpected(impl_->error(e));
  }
}

}  // namespace takt::store
