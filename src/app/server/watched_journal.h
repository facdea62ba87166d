#pragma once
// Notices that the journal's files were deleted or replaced under a running server. The kernel goes
// on writing to files that have no name any more: everything would be acknowledged and nothing
// would be there after a restart.
#include <sys/types.h>

#include <string>
#include <vector>

#include "edge/store/journal_port.h"

namespace takt::server {

class WatchedJournal final : public store::JournalPort {
 public:
  // path: of the journal that `below` has open at this moment.
  WatchedJournal(store::JournalPort& below, const std::string& path);

  // Refused with a sentence (kind unavailable) while the files are not those that are open. They
  // count as open again when they are put back.
  Result<void> append(const std::vector<store::Record>& batch) override;
  Result<void> replay(std::uint64_t after,
                      const std::function<Result<void>(const store::Record&)>& each) override;
  Result<void> save_snapshot(std::uint64_t sequence, int version, const std::string& body) override;
  Result<std::optional<store::Snapshot>> latest_snapshot() override;
  Result<std::optional<store::Snapshot>> snapshot_before(std::uint64_t sequence) override;
  Result<void> prune(std::uint64_t up_to) override;
  std::uint64_t last_sequence() const override;
  bool may_have_forgotten() const override;

 private:
  struct File {
    std::string path;
    bool there = false;
    dev_t device = 0;
    ino_t inode = 0;
    bool operator==(const File&) const = default;
  };
  static File look(const std::string& path);
  Result<void> check();

  store::JournalPort& below_;
  File database_;
  File log_;  // SQLite's write-ahead log: holds the newest commits, made with the first of them
};

}  // namespace takt::server
