#pragma once
// Finished jobs that have left the live state: archive.db, SQLite in WAL mode with
// synchronous=FULL. A job is saved and synced here before the journal says that it has left; saving
// it again changes nothing, so a crash in between does no harm.
// Losing the file loses what finished jobs were, never a job that is not finished.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace takt::store {

struct ArchivedJob {
  std::uint64_t id = 0;
  std::string user;
  std::string name;     // of the workload
  std::string outcome;  // "done", "failed", "cancelled"
  std::uint32_t attempts = 0;
  std::int64_t ended_us = 0;
  std::string facts;  // text made by edge/codec that rebuilds the job; opaque here
  bool operator==(const ArchivedJob&) const = default;
};

class Archive {
 public:
  struct Wanted {
    std::optional<std::string> user;
    std::optional<std::string> name;
    std::optional<std::string> outcome;
    std::optional<std::int64_t> ended_from_us;
  };
  struct Page {
    std::vector<ArchivedJob> jobs;  // newest end first
    std::uint64_t more = 0;         // that fit too and are older
  };
  // A job that has left for good: its log files may go.
  struct Removed {
    std::uint64_t id = 0;
    std::uint32_t attempts = 0;
  };

  // Opens or creates. Errors as of Journal::open.
  static Result<std::unique_ptr<Archive>> open(const std::string& path);
  ~Archive();
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  // All in one transaction with one sync; jobs that are there already are replaced.
  Result<void> save(const std::vector<ArchivedJob>& jobs);
  // nullopt: it is not here. invalid: its row is damaged; the others are not touched by that.
  Result<std::optional<ArchivedJob>> find(std::uint64_t id);
  Result<Page> newest(const Wanted& wanted, std::size_t limit);
  Result<std::uint64_t> count();
  // Removes the oldest ends: all before `keep_from_us`, and more while the file holds more than so
  // many bytes. At most `jobs_max` at once, so that nobody waits for long; call again while it
  // removes some.
  Result<std::vector<Removed>> trim(std::int64_t keep_from_us, std::uint64_t bytes_max,
                                    std::size_t jobs_max = 500);

 private:
  struct Impl;
  explicit Archive(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace takt::store
