#include "edge/store/journal.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "core/base/fault_point.h"
#include "edge/store/backup.h"
#include "edge/store/checksum.h"
#include "edge/store/sqlite_file.h"
#include "edge/store/tail_note.h"
#include "edge/store/wal_check.h"

namespace takt::store {
namespace {

const FileKind& journal_kind() {
  static const FileKind kind{
      "journal",
      0x74616B74,  // "takt"
      2,           // 2: a tail note is beside it
      1,
      "CREATE TABLE records (sequence INTEGER PRIMARY KEY, version INTEGER NOT NULL,"
      " kind TEXT NOT NULL, body TEXT NOT NULL, crc INTEGER NOT NULL) STRICT;"
      "CREATE TABLE snapshots (sequence INTEGER PRIMARY KEY, version INTEGER NOT NULL,"
      " body TEXT NOT NULL, crc INTEGER NOT NULL) STRICT;",
      true,
      "restore it from a backup, or move the folder away to start with no jobs",
      0x74616B62};  // "takb"
  return kind;
}

// How many records are read at once: appends wait for no longer than that.
constexpr std::size_t kReplayRecords = 1'000;
constexpr std::size_t kReplayBytes = std::size_t{4} << 20;
// How many are deleted in one transaction, for the same reason.
constexpr std::uint64_t kPruneRecords = 2'000;

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
  Impl(std::string path_in, Options options_in, FileLock lock_in,
       std::unique_ptr<SQLite::Database> db_in)
      : path(std::move(path_in)),
        options(options_in),
        lock(std::move(lock_in)),
        db(std::move(db_in)) {}

  Error error(const std::exception& e) const { return error_of(e, path, journal_kind(), db.get()); }
  Error damage(const std::string& how) const {
    return Error{ErrorKind::invalid, fmt::format("{} is damaged ({}): it is left as it is; {}",
                                                 path, how, journal_kind().when_damaged)};
  }

  Result<void> check_records();
  Result<void> check_tail(const std::optional<std::string>& wal_damage);
  std::string what_is_missing(const TailNote::Found& note,
                              const std::optional<std::string>& wal_damage);
  Result<void> begin();
  void claim();
  void note_acknowledged();
  Result<void> check_follows(const std::vector<Record>& batch) const;
  Result<std::vector<Record>> read_records(std::uint64_t after, std::uint64_t up_to) const;
  std::optional<Snapshot> read_snapshot(std::uint64_t sequence) const;
  std::vector<std::uint64_t> snapshot_sequences() const;  // newest first
  Result<std::optional<Snapshot>> newest_below(std::optional<std::uint64_t> sequence) const;

  const std::string path;
  const Options options;
  FileLock lock;  // outlives the database
  std::unique_ptr<SQLite::Database> db;
  std::unique_ptr<SQLite::Statement> insert;
  std::string opening_note;
  mutable std::mutex mutex;
  // Guarded by the mutex:
  std::uint64_t last = 0;
  std::optional<TailNote> tail;  // none: it is made anew after the next commit
  bool forgot = false;
  bool claimed = false;  // written to
};

Result<std::unique_ptr<Journal>> Journal::open(const std::string& path) {
  return open(path, Options{});
}

Result<std::unique_ptr<Journal>> Journal::open(const std::string& path, Options options) {
  auto lock = lock_file_of(path, journal_kind());
  if (!lock) return tl::make_unexpected(lock.error());
  const auto wal_damage = damage_in_wal(path + "-wal");
  auto db = open_file(path, journal_kind());
  if (!db) return tl::make_unexpected(db.error());
  auto impl = std::make_unique<Impl>(path, options, *std::move(lock), *std::move(db));
  const auto ready = [&]() -> Result<void> {
    try {
      if (auto fine = impl->check_records(); !fine) return fine;
      if (auto fine = impl->check_tail(wal_damage); !fine) return fine;
      return impl->begin();
    } catch (const std::exception& e) {
      return tl::make_unexpected(impl->error(e));
    }
  }();
  if (!ready) {
    impl->insert.reset();
    close_refused(std::move(impl->db), path);
    return tl::make_unexpected(ready.error());
  }
  return std::unique_ptr<Journal>(new Journal(std::move(impl)));
}

Journal::Journal(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Journal::~Journal() = default;

// The records must be without a gap and reach back to the older snapshot, or to the beginning.
Result<void> Journal::Impl::check_records() {
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
  return {};
}

// Empty: everything that was acknowledged is there.
std::string Journal::Impl::what_is_missing(const TailNote::Found& note,
                                           const std::optional<std::string>& wal_damage) {
  const std::string why = wal_damage ? " (" + *wal_damage + ")" : "";
  if (note.sequence && *note.sequence > last) {
    const std::uint64_t count = *note.sequence - last;
    if (count == 1)
      return fmt::format("{}: the acknowledged record {} is missing{}", path, last + 1, why);
    return fmt::format("{}: {} acknowledged records are missing, {} to {}{}", path, count, last + 1,
                       *note.sequence, why);
  }
  if (wal_damage) {
    return fmt::format("{}: acknowledged records after record {} may be missing{}", path, last,
                       why);
  }
  const bool new_or_old =
      last == 0 || db->execAndGet("PRAGMA user_version").getInt() < journal_kind().format_version;
  if (note.exists ? note.sequence.has_value() : new_or_old) return "";
  return fmt::format(
      "{0}: whether acknowledged records after record {1} are missing cannot be told: {2} {3}",
      path, last, tail_path_of(path), note.exists ? "is damaged" : "is not there");
}

Result<void> Journal::Impl::check_tail(const std::optional<std::string>& wal_damage) {
  const auto id = static_cast<std::uint32_t>(db->execAndGet("PRAGMA application_id").getInt());
  if (id == journal_kind().backup_id) {
    forgot = true;
    opening_note = fmt::format(
        "{} is a backup that was put in place: it ends at record {}, what "
        "came after it is not known here",
        path, last);
    return {};
  }
  const TailNote::Found note = TailNote::look(path);
  const std::string missing = what_is_missing(note, wal_damage);
  if (missing.empty()) {
    // A journal of before the note, or a new one, gets its note before anything else.
    auto opened = note.exists ? TailNote::open(path) : TailNote::create(path, last);
    if (!opened) return tl::make_unexpected(opened.error());
    tail.emplace(*std::move(opened));
    return {};
  }
  if (!options.accept_loss) {
    return fail(ErrorKind::invalid,
                missing +
                    ": it is left as it is; put a whole copy of the folder back, or go on "
                    "without them by `takt serve --accept-loss`");
  }
  forgot = true;
  opening_note = missing + "; this was accepted";
  return {};
}

Result<void> Journal::Impl::begin() {
  if (auto used = begin_use(*db, path, journal_kind(), "FULL"); !used) return used;
  if (options.pages_max > 0) db->exec(fmt::format("PRAGMA max_page_count = {}", options.pages_max));
  insert = std::make_unique<SQLite::Statement>(
      *db, "INSERT INTO records (sequence, version, kind, body, crc) VALUES (?, ?, ?, ?, ?)");
  return {};
}

// In the transaction of the first write: the file becomes one of this format, and no backup any
// more.
void Journal::Impl::claim() {
  if (claimed) return;
  allow_folding(*db);
  db->exec(fmt::format("PRAGMA user_version = {}", journal_kind().format_version));
  db->exec(
      fmt::format("PRAGMA application_id = {}", static_cast<int>(journal_kind().application_id)));
}

// A note that cannot be written stays behind: less damage is noticed then, nothing is lost.
void Journal::Impl::note_acknowledged() {
  if (tail) {
    tail->write(last);
    return;
  }
  if (auto created = TailNote::create(path, last)) tail.emplace(*std::move(created));
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
  fault_point("journal.before-write");
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
    impl_->claim();
    fault_point("journal.before-commit");
    transaction.commit();
  } catch (const std::exception& e) {
    Error error = impl_->error(e);
    insert.tryReset();
    return tl::make_unexpected(std::move(error));
  }
  fault_point("journal.after-commit");
  impl_->last = batch.back().sequence;
  impl_->claimed = true;
  impl_->forgot = false;
  impl_->note_acknowledged();
  fault_point("journal.after-note");
  return {};
}

// The next ones, at most so many as are read at once.
Result<std::vector<Record>> Journal::Impl::read_records(std::uint64_t after,
                                                        std::uint64_t up_to) const {
  SQLite::Statement rows(*db,
                         "SELECT sequence, version, kind, body, crc FROM records"
                         " WHERE sequence > ? AND sequence <= ? ORDER BY sequence LIMIT ?");
  rows.bind(1, as_column(after));
  rows.bind(2, as_column(up_to));
  rows.bind(3, static_cast<std::int64_t>(kReplayRecords));
  std::vector<Record> out;
  std::size_t bytes = 0;
  std::uint64_t expected = after + 1;
  while (bytes < kReplayBytes && rows.executeStep()) {
    Record record;
    record.sequence = sequence_in(rows.getColumn(0));
    record.version = rows.getColumn(1).getInt();
    record.kind = rows.getColumn(2).getString();
    record.body = rows.getColumn(3).getString();
    if (record.sequence != expected) break;
    const std::uint32_t crc = checksum(record.sequence, record.version, record.kind, record.body);
    if (rows.getColumn(4).getInt64() != static_cast<std::int64_t>(crc)) {
      if (!out.empty()) return out;  // those before it are given first
      return tl::make_unexpected(
          damage(fmt::format("record {} does not fit its checksum", record.sequence)));
    }
    bytes += record.body.size();
    out.push_back(std::move(record));
    ++expected;
  }
  if (out.empty()) {
    return tl::make_unexpected(damage(fmt::format("record {} is missing", expected)));
  }
  return out;
}

Result<void> Journal::replay(std::uint64_t after_sequence,
                             const std::function<Result<void>(const Record&)>& each) {
  const std::uint64_t up_to = last_sequence();
  while (after_sequence < up_to) {
    const auto records = [&]() -> Result<std::vector<Record>> {
      const std::lock_guard guard(impl_->mutex);
      try {
        return impl_->read_records(after_sequence, up_to);
      } catch (const std::exception& e) {
        return tl::make_unexpected(impl_->error(e));
      }
    }();
    if (!records) return tl::make_unexpected(records.error());
    for (const Record& record : *records) {
      if (auto done = each(record); !done) return done;
    }
    after_sequence = records->back().sequence;
  }
  return {};
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
    allow_folding(*impl_->db);
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
    fault_point("journal.before-snapshot-commit");
    transaction.commit();
    fault_point("journal.after-snapshot-commit");
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

Result<std::optional<Snapshot>> Journal::Impl::newest_below(
    std::optional<std::uint64_t> below) const {
  auto kept = snapshot_sequences();
  if (below) std::erase_if(kept, [&](std::uint64_t sequence) { return sequence >= *below; });
  if (kept.empty()) return std::optional<Snapshot>();
  for (const std::uint64_t sequence : kept) {
    auto snapshot = read_snapshot(sequence);
    if (!snapshot) continue;
    if (sequence != kept.front()) {
      snapshot->warning = fmt::format(
          "{}: the snapshot at record {} is damaged; the one at {} and the records after it are "
          "used instead, nothing is lost; look at the disk",
          path, kept.front(), sequence);
    }
    return snapshot;
  }
  return tl::make_unexpected(damage("none of its snapshots fits its checksum"));
}

Result<std::optional<Snapshot>> Journal::latest_snapshot() {
  const std::lock_guard guard(impl_->mutex);
  try {
    return impl_->newest_below(std::nullopt);
  } catch (const std::exception& e) {
    return tl::make_unexpected(impl_->error(e));
  }
}

Result<std::optional<Snapshot>> Journal::snapshot_before(std::uint64_t sequence) {
  const std::lock_guard guard(impl_->mutex);
  try {
    return impl_->newest_below(sequence);
  } catch (const std::exception& e) {
    return tl::make_unexpected(impl_->error(e));
  }
}

Result<void> Journal::prune(std::uint64_t up_to_sequence) {
  while (true) {
    const std::lock_guard guard(impl_->mutex);
    try {
      const auto kept = impl_->snapshot_sequences();
      if (kept.size() < 2) return {};
      const std::uint64_t end = std::min(up_to_sequence, kept.back());
      SQLite::Statement first(*impl_->db, "SELECT coalesce(min(sequence), 0) FROM records");
      first.executeStep();
      const std::uint64_t from = sequence_in(first.getColumn(0));
      if (from == 0 || from > end) return {};
      first.reset();
      SQLite::Transaction transaction(*impl_->db);
      SQLite::Statement remove(*impl_->db, "DELETE FROM records WHERE sequence <= ?");
      remove.bind(1, as_column(std::min(end, from + kPruneRecords - 1)));
      remove.exec();
      fault_point("journal.before-prune-commit");
      transaction.commit();
      fault_point("journal.after-prune-commit");
    } catch (const std::exception& e) {
      return tl::make_unexpected(impl_->error(e));
    }
  }
}

std::uint64_t Journal::last_sequence() const {
  const std::lock_guard guard(impl_->mutex);
  return impl_->last;
}

bool Journal::may_have_forgotten() const {
  const std::lock_guard guard(impl_->mutex);
  return impl_->forgot;
}

Result<void> Journal::back_up(const std::string& to) {
  return copy_database(*impl_->db, impl_->mutex, to, journal_kind());
}

const std::string& Journal::opening_note() const { return impl_->opening_note; }

}  // namespace takt::store
