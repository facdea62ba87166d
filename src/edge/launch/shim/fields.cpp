#include "edge/launch/shim/fields.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/base/fault_point.h"

namespace takt::shim {

bool FieldReader::next(Field& field) {
  if (rest_.empty() || damaged_) return false;
  const std::size_t end = rest_.find(end_);
  const std::size_t equals = rest_.substr(0, end).find('=');
  if (end == std::string_view::npos || equals == std::string_view::npos || equals == 0) {
    damaged_ = true;
    return false;
  }
  field.name = rest_.substr(0, equals);
  field.value = rest_.substr(equals + 1, end - equals - 1);
  rest_.remove_prefix(end + 1);
  return true;
}

bool parse_number(std::string_view text, std::int64_t& number) {
  const char* const end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, number);
  return !text.empty() && result.ec == std::errc{} && result.ptr == end;
}

void LineWriter::put(std::string_view text, bool clean) {
  // One place is kept for the line's end, so that a cut record can still be read.
  const std::size_t room = buffer_.size() - 1 - size_;
  if (text.size() > room) {
    text = text.substr(0, room);
    fits_ = false;
  }
  for (const char c : text) buffer_[size_++] = clean && c == record_end ? ' ' : c;
}

void LineWriter::add(std::string_view name, std::string_view value) {
  if (name.size() + 2 > buffer_.size() - size_) {
    fits_ = false;
    return;
  }
  put(name, false);
  put("=", false);
  put(value, true);
  buffer_[size_++] = record_end;
}

void LineWriter::add(std::string_view name, std::int64_t value) {
  std::array<char, 24> digits;
  const std::to_chars_result result =
      std::to_chars(digits.data(), digits.data() + digits.size(), value);
  add(name, std::string_view(digits.data(), static_cast<std::size_t>(result.ptr - digits.data())));
}

Blob read_whole(int folder, const char* name, std::size_t bytes_max) {
  Blob blob;
  const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) {
    blob.error = errno;
    return blob;
  }
  // Files of /proc and cgroups have no size beforehand: grow while there is more.
  std::size_t room = record_bytes_max;
  char* data = static_cast<char*>(std::malloc(room + 1));
  std::size_t size = 0;
  int error = data == nullptr ? ENOMEM : 0;
  while (error == 0) {
    if (size == room) {
      if (room >= bytes_max) {
        error = EFBIG;
        break;
      }
      room *= 2;
      char* const larger = static_cast<char*>(std::realloc(data, room + 1));
      if (larger == nullptr) {
        error = ENOMEM;
        break;
      }
      data = larger;
    }
    const ssize_t got = read(fd, data + size, room - size);
    if (got == 0) break;
    if (got > 0) {
      size += static_cast<std::size_t>(got);
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  close(fd);
  if (error != 0) {
    std::free(data);
    blob.error = error;
    return blob;
  }
  data[size] = '\0';
  blob.data = data;
  blob.size = size;
  return blob;
}

int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = write(fd, text.data(), text.size());
    if (put < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return 0;
}

int write_record(int folder, const char* name, const char* beside, std::string_view text) {
  const int fd =
      openat(folder, beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return errno;
  int error = write_all(fd, text);
  if (close(fd) != 0 && error == 0) error = errno;
  fault_point("record.before-rename");
  if (error == 0 && renameat(folder, beside, folder, name) != 0) error = errno;
  if (error != 0) unlinkat(folder, beside, 0);
  return error;
}

int reserve_exit_record(int folder) {
  const int fd = openat(folder, exit_reserve_file,
                        O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return errno;
  std::array<char, record_bytes_max> blank;
  blank.fill(record_end);
  const int error = write_all(fd, {blank.data(), blank.size()});
  close(fd);
  if (error != 0) unlinkat(folder, exit_reserve_file, 0);
  return error;
}

int write_exit_record(int folder, std::string_view text) {
  const int fd = openat(folder, exit_reserve_file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return write_record(folder, exit_file, exit_reserve_file, text);
  int error = write_all(fd, text);
  if (error == 0 && ftruncate(fd, static_cast<off_t>(text.size())) != 0) error = errno;
  close(fd);
  fault_point("record.before-rename-exit");
  if (error == 0 && renameat(folder, exit_reserve_file, folder, exit_file) != 0) error = errno;
  return error;
}

}  // namespace takt::shim
