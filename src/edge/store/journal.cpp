#include "edge/store/journal.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "edge/store/checksum.h"
#include "edge/store/sqlite_file.h"

namespace takt::store {
namespace {

const FileKind& journal_kind() {
  static const FileKind kind{
      "journal",
      0x74616B74,  // "takt"
      1,
      "CREATE TABLE records (sequence INTEGER PRIMARY KEY, version INTEGER NOT NULL,"
      " kind TEXT NOT NULL, body TEXT NOT NULL, crc INTEGER NOT NULL) STRICT;"
      "CREATE TABLE snapshots (sequence INTEGER PRIMARY KEY, version INTEGER NOT NULL,"
      " body TEXT NOT NULL, crc INTEGER NOT NULL) STRICT;",
      true,
      "restore the folder from a backup, or move it away to start with no jobs"};
  return kind;
}

std::uint32_t checksum(std::uint64_t sequence, int version, const std::string& kind,
                       const std::string& body) {
  const std::string head = fmt::format("{} {} {} {}\n", sequence, version, kind.size(), kind);
  return crc32c(body, crc32c(head));
}

std::int64_t as_column(std::uint64_t sequence) { return static_cast<std::int64_t>(sequence); }

std::uint64_t sequence_in(const SQLite::Column& column) {
  return static_cast<std::uint64_t>(column.getInt64());
}

}  // namespace

struct Journal::Impl {
  Impl(std::string path_in, FileLock lock_in, std::unique_ptr<SQLite::Database> db_in)
      : path(std::move(path_in)), lock(std::move(lock_in)), db(std::move(db_in)) {}

  Error error(const std::exception& e) const { return error_of(e, path, journal_kind(), db.get()); }
  Error damage(const std::string& how) const {
    return Error{ErrorKind::invalid, fmt::format("{} is damaged ({}): it is left as it is; {}",
                                                 path, how, journal_kind().when_damaged)};
  }

  Result<void> start(const Options& options);
  Result<void> check_follows(const std::vector<Record>& batch) const;
  Result<void> replay_rows(SQLite::Statement& rows, std::uint64_t expected,
                           const std::function<Result<void>(const Record&)>& each) const;
  std::optional<Snapshot> read_snapshot(std::uint64_t sequence) const;
  std::vector<std::uint64_t> snapshot_sequences() const;  // newest first

  const std::string path;
  FileLock lock;  // outlives the database
  std::unique_ptr<SQLite::Database> db;
  std::unique_ptr<SQLite::Statement> insert;
  mutable std::mutex mutex;
  std::uint64_t last = 0;  // guarded by mutex
};

Result<std::unique_ptr<Journal>> Journal::open(const std::string& path) {
  return open(path, Options{});
}

Result<std::unique_ptr<Journal>> Journal::open(const std::string& path, Options options) {
  auto lock = FileLock::take(path, journal_kind());
  if (!lock) return tl::make_unexpected(lock.error());
  auto db = open_file(path, journal_kind(), "FULL");
  if (!db) return tl::make_unexpected(db.error());
  auto impl = std::make_unique<Impl>(path, *std::move(lock), *std::move(db));
  try {
    if (auto started = impl->start(options); !started) {
      return tl::make_unexpected(started.error());
    }
  } catch (const std::exception& e) {
    return tl::make_unexpected(impl->error(e));
  }
  return std::unique_ptr<Journal>(new Journal(std::move(impl)));
}

Journal::Journal(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Journal::~Journal() = default;

// The records must be without a gap and reach back to the older snapshot, or to the beginning.
Result<void> Journal::Impl::start(const Options& options) {
  if (options.pages_max > 0) db->exec(fmt::format("PRAGMA max_page_count = {}", options.pages_max));
  SQLite::Statement span(*db,
                         "SELECT count(*), coalesce(min(sequence), 0),"
                         " coalesce(max(sequence), 0) FROM records");
  span.executeStep();
  const std::uint64_t count = sequence_in(span.getColumn(0));
  const std::uint64_t first = sequence_in(span.getColumn(1));
  last = sequence_in(span.getColumn(2));
  if (count > 0 && last - first + 1 != count) {
    return tl::make_unexpected(
        damage(fmt::format("of the records {} to {} only {} are there", first, last, count)));
  }
  const auto kept = snapshot_sequences();
  const std::uint64_t needed = kept.size() < 2 ? 1 : kept.back() + 1;
  if ((count > 0 && first > needed) || (!kept.empty() && kept.front() > last)) {
    return tl::make_unexpected(damage("records that its snapshots need are missing"));
  }
  insert = std::make_unique<SQLite::Statement>(
      *db, "INSERT INTO records (sequence, version, kind, body, crc) VALUES (?, ?, ?, ?, ?)");
  return {};
}

Result<void> Journal::Impl::check_follows(const std::vector<Record>& batch) const {
  std::uint64_t expected = last + 1;
  for (const Record& record : batch) {
    if (record.sequence != expected) {
      return fail(ErrorKind::invalid,
                  fmt::format("{}: record {} cannot follow record {}: expected {}", path,
                              record.sequence, expected - 1, expected));
    }
    ++expected;
  }
  return {};
}

Result<void> Journal::append(const std::vector<Record>& batch) {
  const std::lock_guard guard(impl_->mutex);
  if (auto follows = impl_->check_follows(batch); !follows) return follows;
  if (batch.empty()) return {};
  SQLite::Statement& insert = *impl_->insert;
  try {
    SQLite::Transaction transaction(*impl_->db);
    for (const Record& record : batch) {
      insert.reset();
      insert.bind(1, as_column(record.sequence));
      insert.bind(2, record.version);
      insert.bindNoCopy(3, record.kind);
      insert.bindNoCopy(4, record.body);
      insert.bind(5, static_cast<std::int64_t>(
                         checksum(record.sequence, record.version, record.kind, record.body)));
      insert.exec();
    }
    insert.reset();
    transaction.commit();
  } catch (const std::exception& e) {
    Error error = impl_->error(e);
    insert.tryReset();
    return tl::make_unexpected(std::move(error));
  }
  impl_->last = batch.back().sequence;
  return {};
}

Result<void> Journal::Impl::replay_rows(
    SQLite::Statement& rows, std::uint64_t expected,
    const std::function<Result<void>(const Record&)>& each) const {
  while (rows.executeStep()) {
    Record record;
    record.sequence = sequence_in(rows.getColumn(0));
    record.version = rows.getColumn(1).getInt();
    record.kind = rows.getColumn(2).getString();
    record.body = rows.getColumn(3).getString();
    if (record.sequence != expected) break;
    const std::uint32_t crc = checksum(record.sequence, record.version, record.kind, record.body);
    if (rows.getColumn(4).getInt64() != static_cast<std::int64_t>(crc)) {
      return tl::make_unexpected(
          damage(fmt::format("record {} does not fit its checksum", record.sequence)));
    }
    if (auto done = each(record); !done) return done;
    ++expected;
  }
  if (expected <= last) {
    return tl::make_unexpected(damage(fmt::format("record {} is missing", expected)));
  }
  return {};
}

Result<void> Journal::replay(std::uint64_t after_sequence,
                             const std::function<Result<void>(const Record&)>& each) {
  const std::lock_guard guard(impl_->mutex);
  if (after_sequence >= impl_->last) return {};
  try {
    SQLite::Statement rows(*impl_->db,
                           "SELECT sequence, version, kind, body, crc FROM records"
                           " WHERE sequence > ? ORDER BY sequence");
    rows.bind(1, as_column(after_sequence));
    return impl_->replay_rows(rows, after_sequence + 1, each);
  } catch (const std::exception& e) {
    return tl::make_unexpected(impl_->error(e));
  }
}

std::vector<std::uint64_t> Journal::Impl::snapshot_sequences() const {
  SQLite::Statement rows(*db, "SELECT sequence FROM snapshots ORDER BY sequence DESC");
  std::vector<std::uint64_t> out;
  while (rows.executeStep()) out.push_back(sequence_in(rows.getColumn(0)));
  return out;
}

Result<void> Journal::save_snapshot(std::uint64_t sequence, int version, const std::string& body) {
  const std::lock_guard guard(impl_->mutex);
  if (sequence > impl_->last) {
    return fail(ErrorKind::invalid,
                fmt::format("{}: no snapshot can be kept at {}: the last record is {}", impl_->path,
                            sequence, impl_->last));
  }
  try {
    const auto kept = impl_->snapshot_sequences();
    if (!kept.empty() && sequence <= kept.front()) {
      return fail(ErrorKind::invalid,
                  fmt::format("{}: no snapshot can be kept at {}: there is one at {}", impl_->path,
                              sequence, kept.front()));
    }
    SQLite::Transaction transaction(*impl_->db);
    SQLite::Statement insert(
        *impl_->db, "INSERT INTO snapshots (sequence, version, body, crc) VALUES (?, ?, ?, ?)");
    insert.bind(1, as_column(sequence));
    insert.bind(2, version);
    insert.bindNoCopy(3, body);
    insert.bind(4, static_cast<std::int64_t>(checksum(sequence, version, "snapshot", body)));
    insert.exec();
    if (!kept.empty()) {
      SQLite::Statement remove(*impl_->db, "DELETE FROM snapshots WHERE sequence < ?");
      remove.bind(1, as_column(kept.front()));
      remove.exec();
    }
    transaction.commit();
    return {};
  } catch (const std::exception& e) {
    return tl::make_unexpected(impl_->error(e));
  }
}

// nullopt when it is damaged.
std::optional<Snapshot> Journal::Impl::read_snapshot(std::uint64_t sequence) const {
  try {
    SQLite::Statement row(*db, "SELECT version, body, crc FROM snapshots WHERE sequence = ?");
    row.bind(1, as_column(sequence));
    if (!row.executeStep()) return std::nullopt;
    Snapshot snapshot{sequence, row.getColumn(0).getInt(), row.getColumn(1).getString(), {}};
    const std::uint32_t crc = checksum(sequence, snapshot.version, "snapshot", snapshot.body);
    if (row.getColumn(2).getInt64() != static_cast<std::int64_t>(crc)) return std::nullopt;
    return snapshot;
  } catch (const SQLite::Exception&) {
    return std::nullopt;  // a page of it cannot be read: damaged like one with a wrong checksum
  }
}

Result<std::optional<Snapshot>> Journal::latest_snapshot() {
  const std::lock_guard guard(impl_->mutex);
  try {
    const auto kept = impl_->snapshot_sequences();
    if (kept.empty()) return std::optional<Snapshot>();
    for (const std::uint64_t sequence : kept) {
      auto snapshot = impl_->read_snapshot(sequence);
      if (!snapshot) continue;
      if (sequence != kept.front()) {
        snapshot->warning = fmt::format(
            "{}: the snapshot at record {} is damaged; the one at {} and the records after it are "
            "used instead, nothing is lost; look at the disk",
            impl_->path, kept.front(), sequence);
      }
      return snapshot;
    }
    return tl::make_unexpected(impl_->damage("none of its snapshots fits its checksum"));
  } catch (const std::exception& e) {
    return tl::make_unexpected(impl_->error(e));
  }
}

Result<void> Journal::prune(std::uint64_t up_to_sequence) {
  const std::lock_guard guard(impl_->mutex);
  try {
    const auto kept = impl_->snapshot_sequences();
    if (kept.size() < 2) return {};
    SQLite::Statement remove(*impl_->db, "DELETE FROM records WHERE sequence <= ?");
    remove.bind(1, as_column(std::min(up_to_sequence, kept.back())));
    remove.exec();
    return {};
  } catch (const std::exception& e) {
    return tl::make_unexpected(impl_->error(e));
  }
}

std::uint64_t Journal::last_sequence() const {
  const std::lock_guard guard(impl_->mutex);
  return impl_->last;
}

}  // namespace takt::store
