#include "edge/store/archive.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/base/fault_point.h"
#include "edge/store/checksum.h"
#include "edge/store/sqlite_file.h"

namespace takt::store {
namespace {

const FileKind& archive_kind() {
  static const FileKind kind{
      "archive",
      0x7461726B,  // "tark"
      1,
      1,
      "CREATE TABLE jobs (id INTEGER PRIMARY KEY, user TEXT NOT NULL, name TEXT NOT NULL,"
      " outcome TEXT NOT NULL, attempts INTEGER NOT NULL, ended_us INTEGER NOT NULL,"
      " facts TEXT NOT NULL, crc INTEGER NOT NULL) STRICT;"
      "CREATE INDEX by_end ON jobs (ended_us, id);"
      "CREATE INDEX by_user ON jobs (user, ended_us, id);"
      "CREATE INDEX by_name ON jobs (name, ended_us, id);",
      false,
      "restore it from a backup, or move it away: finished jobs in it are then not shown any more"};
  return kind;
}

constexpr const char* kColumns = "id, user, name, outcome, attempts, ended_us, facts, crc";

std::int64_t checksum(const ArchivedJob& job) {
  const std::string head = fmt::format("{} {} {} {} {} {} {}\n", job.id, job.attempts, job.ended_us,
                                       job.user.size(), job.name.size(), job.outcome, job.user);
  return crc32c(job.facts, crc32c(job.name, crc32c(head)));
}

ArchivedJob job_in(const SQLite::Statement& row) {
  ArchivedJob job;
  job.id = static_cast<std::uint64_t>(row.getColumn(0).getInt64());
  job.user = row.getColumn(1).getString();
  job.name = row.getColumn(2).getString();
  job.outcome = row.getColumn(3).getString();
  job.attempts = row.getColumn(4).getUInt();
  job.ended_us = row.getColumn(5).getInt64();
  job.facts = row.getColumn(6).getString();
  return job;
}

// The values stand in the order of their names here.
std::string condition(const Archive::Wanted& wanted) {
  std::string all = " WHERE 1";
  if (wanted.user) all += " AND user = :user";
  if (wanted.name) all += " AND name = :name";
  if (wanted.outcome) all += " AND outcome = :outcome";
  if (wanted.ended_from_us) all += " AND ended_us >= :from";
  return all;
}

void bind(SQLite::Statement& statement, const Archive::Wanted& wanted) {
  if (wanted.user) statement.bind(":user", *wanted.user);
  if (wanted.name) statement.bind(":name", *wanted.name);
  if (wanted.outcome) statement.bind(":outcome", *wanted.outcome);
  if (wanted.ended_from_us) statement.bind(":from", *wanted.ended_from_us);
}

}  // namespace

struct Archive::Impl {
  Impl(std::string path_in, FileLock lock_in, std::unique_ptr<SQLite::Database> db_in)
      : path(std::move(path_in)), lock(std::move(lock_in)), db(std::move(db_in)) {}

  Error error(const std::exception& e) const { return error_of(e, path, archive_kind(), db.get()); }
  Result<ArchivedJob> checked(const SQLite::Statement& row) const;
  std::uint64_t bytes_used() const;

  const std::string path;
  FileLock lock;
  std::unique_ptr<SQLite::Database> db;
  std::mutex mutex;
};

Result<std::unique_ptr<Archive>> Archive::open(const std::string& path) {
  auto lock = lock_file_of(path, archive_kind());
  if (!lock) return tl::make_unexpected(lock.error());
  auto db = open_file(path, archive_kind());
  if (!db) return tl::make_unexpected(db.error());
  if (auto used = begin_use(**db, path, archive_kind(), "FULL"); !used) {
    return tl::make_unexpected(used.error());
  }
  allow_folding(**db);
  return std::unique_ptr<Archive>(
      new Archive(std::make_unique<Impl>(path, *std::move(lock), *std::move(db))));
}

Archive::Archive(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Archive::~Archive() = default;

Result<void> Archive::save(const std::vector<ArchivedJob>& jobs) {
  if (jobs.empty()) return {};
  const std::lock_guard guard(impl_->mutex);
  fault_point("archive.before-write");
  try {
    SQLite::Transaction transaction(*impl_->db);
    SQLite::Statement insert(*impl_->db, fmt::format("INSERT OR REPLACE INTO jobs ({})"
                                                     " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                                                     kColumns));
    for (const ArchivedJob& job : jobs) {
      insert.reset();
      insert.bind(1, static_cast<std::int64_t>(job.id));
      insert.bindNoCopy(2, job.user);
      insert.bindNoCopy(3, job.name);
      insert.bindNoCopy(4, job.outcome);
      insert.bind(5, job.attempts);
      insert.bind(6, job.ended_us);
      insert.bindNoCopy(7, job.facts);
      insert.bind(8, checksum(job));
      insert.exec();
    }
    fault_point("archive.before-commit");
    transaction.commit();
    fault_point("archive.after-commit");
    return {};
  } catch (const std::exception& e) {
    return tl::make_unexpected(impl_->error(e));
  }
}

Result<ArchivedJob> Archive::Impl::checked(const SQLite::Statement& row) const {
  ArchivedJob job = job_in(row);
  if (row.getColumn(7).getInt64() == checksum(job)) return job;
  return fail(ErrorKind::invalid, fmt::format("{} is damaged (job {} does not fit its checksum): "
                                              "it is left as it is; {}",
                                              path, job.id, archive_kind().when_damaged));
}

Result<std::optional<ArchivedJob>> Archive::find(std::uint64_t id) {
  const std::lock_guard guard(impl_->mutex);
  try {
    SQLite::Statement row(*impl_->db, fmt::format("SELECT {} FROM jobs WHERE id = ?", kColumns));
    row.bind(1, static_cast<std::int64_t>(id));
    if (!row.executeStep()) return std::optional<ArchivedJob>();
    auto job = impl_->checked(row);
    if (!job) return tl::make_unexpected(job.error());
    return std::optional<ArchivedJob>(*std::move(job));
  } catch (const std::exception& e) {
    return tl::make_unexpected(impl_->error(e));
  }
}

Result<Archive::Page> Archive::newest(const Wanted& wanted, std::size_t limit) {
  const std::lock_guard guard(impl_->mutex);
  const std::string where = condition(wanted);
  try {
    Page page;
    SQLite::Statement rows(*impl_->db,
                           fmt::format("SELECT {} FROM jobs{} ORDER BY ended_us DESC, id DESC"
                                       " LIMIT :limit",
                                       kColumns, where));
    bind(rows, wanted);
    rows.bind(":limit", static_cast<std::int64_t>(std::min<std::size_t>(limit, 1u << 30)));
    while (rows.executeStep()) {
      auto job = impl_->checked(rows);
      if (!job) return tl::make_unexpected(job.error());
      page.jobs.push_back(*std::move(job));
    }
    SQLite::Statement all(*impl_->db, "SELECT count(*) FROM jobs" + where);
    bind(all, wanted);
    all.executeStep();
    page.more = static_cast<std::uint64_t>(all.getColumn(0).getInt64()) - page.jobs.size();
    return page;
  } catch (const std::exception& e) {
    return tl::make_unexpected(impl_->error(e));
  }
}

Result<std::uint64_t> Archive::count() {
  const std::lock_guard guard(impl_->mutex);
  try {
    return static_cast<std::uint64_t>(
        impl_->db->execAndGet("SELECT count(*) FROM jobs").getInt64());
  } catch (const std::exception& e) {
    return tl::make_unexpected(impl_->error(e));
  }
}

// Pages that are free again are used before the file grows, so this bounds the file.
std::uint64_t Archive::Impl::bytes_used() const {
  const auto pragma = [&](const char* name) {
    return static_cast<std::uint64_t>(db->execAndGet(std::string("PRAGMA ") + name).getInt64());
  };
  return (pragma("page_count") - pragma("freelist_count")) * pragma("page_size");
}

Result<std::vector<Archive::Removed>> Archive::trim(std::int64_t keep_from_us,
                                                    std::uint64_t bytes_max, std::size_t jobs_max) {
  const std::lock_guard guard(impl_->mutex);
  try {
    const bool too_large = impl_->bytes_used() > bytes_max;
    SQLite::Statement rows(
        *impl_->db, too_large ? "SELECT id, attempts, ended_us FROM jobs ORDER BY ended_us, id"
                                " LIMIT ?"
                              : "SELECT id, attempts, ended_us FROM jobs WHERE ended_us < ?2"
                                " ORDER BY ended_us, id LIMIT ?1");
    // Too large: a small part at a time, so that not more leaves than must.
    const std::size_t at_once = too_large ? std::min<std::size_t>(jobs_max, 50) : jobs_max;
    rows.bind(1, static_cast<std::int64_t>(at_once));
    if (!too_large) rows.bind(2, keep_from_us);
    std::vector<Removed> removed;
    while (rows.executeStep()) {
      removed.push_back(
          {static_cast<std::uint64_t>(rows.getColumn(0).getInt64()), rows.getColumn(1).getUInt()});
    }
    rows.reset();
    if (removed.empty()) return removed;
    SQLite::Transaction transaction(*impl_->db);
    SQLite::Statement remove(*impl_->db, "DELETE FROM jobs WHERE id = ?");
    for (const Removed& job : removed) {
      remove.reset();
      remove.bind(1, static_cast<std::int64_t>(job.id));
      remove.exec();
    }
    fault_point("archive.before-trim-commit");
    transaction.commit();
    return removed;
  } catch (const std::exception& e) {
    return tl::make_unexpected(impl_->error(e));
  }
}

}  // namespace takt::store
