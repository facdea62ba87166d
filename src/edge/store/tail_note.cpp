#include "edge/store/tail_note.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/base/fault_point.h"
#include "edge/store/checksum.h"
#include "edge/store/sqlite_file.h"

namespace takt::store {
namespace {

constexpr int kSlots = 2;
constexpr ::off_t kSlotBytes = 512;  // a sector: the smallest thing that a disk writes whole
constexpr std::size_t kFileBytes = kSlots * kSlotBytes;
constexpr std::string_view kWord = "acknowledged ";

std::string slot_text(std::uint64_t sequence) {
  std::string text = fmt::format("{}{:020} crc ", kWord, sequence);
  return text + fmt::format("{:08x}\n", crc32c(text));
}

std::optional<std::uint64_t> slot_value(std::string_view text) {
  const std::size_t digits_at = kWord.size();
  constexpr std::size_t kDigits = 20;
  if (text.size() < digits_at + kDigits) return std::nullopt;
  std::uint64_t sequence = 0;
  const char* digits = text.data() + digits_at;
  const auto read = std::from_chars(digits, digits + kDigits, sequence);
  if (read.ec != std::errc() || read.ptr != digits + kDigits) return std::nullopt;
  const std::string expected = slot_text(sequence);
  if (text.substr(0, expected.size()) != expected) return std::nullopt;
  return sequence;
}

struct Slots {
  bool exists = false;
  std::array<std::optional<std::uint64_t>, kSlots> value;
};

Slots read_slots(const std::string& path) {
  Slots slots;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    slots.exists = errno != ENOENT;
    return slots;
  }
  slots.exists = true;
  for (int i = 0; i < kSlots; ++i) {
    std::array<char, kSlotBytes> bytes{};
    const ssize_t got = ::pread(fd, bytes.data(), bytes.size(), i * kSlotBytes);
    if (got > 0) {
      slots.value[static_cast<std::size_t>(i)] =
          slot_value({bytes.data(), static_cast<std::size_t>(got)});
    }
  }
  ::close(fd);
  return slots;
}

}  // namespace

std::string tail_path_of(const std::string& journal_path) { return journal_path + ".tail"; }

TailNote::Found TailNote::look(const std::string& journal_path) {
  const Slots slots = read_slots(tail_path_of(journal_path));
  Found found{slots.exists, slots.value[0]};
  if (slots.value[1] && (!found.sequence || *slots.value[1] > *found.sequence)) {
    found.sequence = slots.value[1];
  }
  return found;
}

Result<TailNote> TailNote::open(const std::string& journal_path) {
  const std::string path = tail_path_of(journal_path);
  const Slots slots = read_slots(path);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    return fail(ErrorKind::io, fmt::format("cannot open {}: {}; make it writable for this user",
                                           path, std::strerror(errno)));
  }
  // The newer slot stays until the other one is written.
  const bool second_is_newer =
      slots.value[1] && (!slots.value[0] || *slots.value[1] > *slots.value[0]);
  return TailNote(fd, second_is_newer ? 0 : 1);
}

Result<TailNote> TailNote::create(const std::string& journal_path, std::uint64_t sequence) {
  const std::string path = tail_path_of(journal_path);
  const std::string fresh = path + ".new";
  std::string bytes(kFileBytes, '\0');
  const std::string text = slot_text(sequence);
  for (int i = 0; i < kSlots; ++i) {
    bytes.replace(static_cast<std::size_t>(i * kSlotBytes), text.size(), text);
  }
  const int fd = ::open(fresh.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const bool complete =
      fd >= 0 && ::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) &&
      ::fsync(fd) == 0;
  fault_point("journal.before-note-created");
  const bool written = complete && ::rename(fresh.c_str(), path.c_str()) == 0;
  if (!written) {
    const int error = errno;
    if (fd >= 0) ::close(fd);
    ::unlink(fresh.c_str());
    return fail(error == ENOSPC || error == EDQUOT || error == EFBIG ? ErrorKind::unavailable
                                                                     : ErrorKind::io,
                fmt::format("cannot write {}: {}: free some space or make the folder writable",
                            path, std::strerror(error)));
  }
  fault_point("journal.after-note-created");
  TailNote note(fd, 0);
  if (auto synced = sync_folder_of(path); !synced) return tl::make_unexpected(synced.error());
  return note;
}

TailNote::TailNote(TailNote&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), next_slot_(other.next_slot_) {}

TailNote::~TailNote() {
  if (fd_ >= 0) ::close(fd_);
}

bool TailNote::write(std::uint64_t sequence) {
  const std::string text = slot_text(sequence);
  const ssize_t written = ::pwrite(fd_, text.data(), text.size(), next_slot_ * kSlotBytes);
  if (written != static_cast<ssize_t>(text.size())) return false;
  next_slot_ = 1 - next_slot_;
  return true;
}

}  // namespace takt::store
