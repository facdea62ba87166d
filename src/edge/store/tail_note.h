#pragma once
// The note beside the journal of what was acknowledged last: journal.db.tail.
//
// Why: SQLite ends its log silently at the first frame that does not fit its checksum. That is
// right for a batch which the power cut short, and wrong for a damaged one that somebody was told
// is on disk. The note is written after each commit with one pwrite and is not synced: the kernel
// keeps it when the process is killed, and writes it out by itself within half a minute (Linux,
// vm.dirty_expire_centisecs). So it may be behind after a power failure, never ahead.
//
// Two slots, each in a sector of its own, take turns; a slot that does not fit its checksum does
// not count. Each is a line of text: "acknowledged 00000000000000001234 crc 89abcdef".
// Internal to the room.
#include <cstdint>
#include <optional>
#include <string>

#include "core/base/result.h"

namespace takt::store {

class TailNote {
 public:
  struct Found {
    bool exists = false;
    std::optional<std::uint64_t> sequence;  // nullopt: neither slot can be read
  };
  // Only looks.
  static Found look(const std::string& journal_path);

  // Opens the note that is there and can be read.
  static Result<TailNote> open(const std::string& journal_path);
  // Makes a new one, synced; it replaces what is there at once or not at all.
  static Result<TailNote> create(const std::string& journal_path, std::uint64_t sequence);

  ~TailNote();
  TailNote(TailNote&& other) noexcept;
  TailNote& operator=(TailNote&&) = delete;

  // False: it could not be written, so it stays behind, which is the safe side.
  bool write(std::uint64_t sequence);

 private:
  explicit TailNote(int fd, int next) : fd_(fd), next_slot_(next) {}
  int fd_ = -1;
  int next_slot_ = 0;
};

std::string tail_path_of(const std::string& journal_path);

}  // namespace takt::store
