#include "app/server/watched_journal.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace takt::server {

WatchedJournal::WatchedJournal(store::JournalPort& below, const std::string& path)
    : below_(below), database_(look(path)), log_(look(path + "-wal")) {}

WatchedJournal::File WatchedJournal::look(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {path, false, 0, 0};
  return {path, true, status.st_dev, status.st_ino};
}

Result<void> WatchedJournal::check() {
  const File log = look(log_.path);
  if (!log_.there) log_ = log;
  for (const auto& [open, found] : {std::pair{database_, look(database_.path)}, {log_, log}})
    if (!(open == found))
      return fail(ErrorKind::unavailable,
                  fmt::format("{} was {} while takt runs: put the same file back, or restart takt, "
                              "which goes on with what is there then",
                              open.path, found.there ? "replaced" : "deleted or moved"));
  return {};
}

Result<void> WatchedJournal::append(const std::vector<store::Record>& batch) {
  if (auto fine = check(); !fine) return fine;
  return below_.append(batch);
}

Result<void> WatchedJournal::replay(std::uint64_t after,
                                    const std::function<Result<void>(const store::Record&)>& each) {
  return below_.replay(after, each);
}

Result<void> WatchedJournal::save_snapshot(std::uint64_t sequence, int version,
                                           const std::string& body) {
  return below_.save_snapshot(sequence, version, body);
}

Result<std::optional<store::Snapshot>> WatchedJournal::latest_snapshot() {
  return below_.latest_snapshot();
}

Result<std::optional<store::Snapshot>> WatchedJournal::snapshot_before(std::uint64_t sequence) {
  return below_.snapshot_before(sequence);
}

Result<void> WatchedJournal::prune(std::uint64_t up_to) { return below_.prune(up_to); }

std::uint64_t WatchedJournal::last_sequence() const { return below_.last_sequence(); }

bool WatchedJournal::may_have_forgotten() const { return below_.may_have_forgotten(); }

}  // namespace takt::server
