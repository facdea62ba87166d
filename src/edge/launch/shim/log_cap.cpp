#include "edge/launch/shim/log_cap.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "edge/launch/shim/fields.h"

namespace takt::shim {
namespace {

constexpr std::int64_t block_min = 4096;
constexpr std::int64_t block_max = 1 << 20;

// Holes are made of whole blocks only; what is cut of others would be read as zeros.
std::int64_t block_of(const struct stat& status) {
  const std::int64_t block = status.st_blksize;
  const bool fits = block >= block_min && block <= block_max && (block & (block - 1)) == 0;
  return fits ? block : block_min;
}

// "1.2 GiB", as format_size() of core/model has it.
void print_size(char* text, std::size_t size, std::int64_t bytes) {
  static constexpr const char* names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  std::int64_t tenths = bytes * 10;
  while (tenths >= 10'240 && unit < 4) {
    tenths /= 1024;
    ++unit;
  }
  std::snprintf(text, size, "%lld.%lld %s", static_cast<long long>(tenths / 10),
                static_cast<long long>(tenths % 10), names[unit]);
}

void cut_without_holes(int fd, std::int64_t head, std::int64_t size, std::int64_t bytes_max) {
  if (ftruncate(fd, head) != 0) return;
  char dropped[32];
  char most[32];
  print_size(dropped, sizeof dropped, size - head);
  print_size(most, sizeof most, bytes_max);
  char line[200];
  const int length =
      std::snprintf(line, sizeof line,
                    "\n[takt: %s dropped here: log_bytes_max is %s, and this file system keeps no "
                    "newest part]\n",
                    dropped, most);
  if (length > 0) (void)write_all(fd, {line, static_cast<std::size_t>(length)});
}

}  // namespace

int reopen_for_cutting(int fd) {
  char path[40];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  return open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
}

int open_for_cutting(const char* path, const char* logs_dir) {
  const std::size_t below = std::strlen(logs_dir);
  if (below == 0 || std::strncmp(path, logs_dir, below) != 0 || path[below] != '/') return -1;
  const int folder = open(logs_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return -1;
  open_how how{};
  how.flags = O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  const int fd = static_cast<int>(syscall(SYS_openat2, folder, path + below + 1, &how, sizeof how));
  close(folder);
  if (fd < 0) return -1;
  struct stat status;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1) return fd;
  close(fd);
  return -1;
}

std::int64_t cap_log(int fd, std::int64_t bytes_max) {
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return -1;
  const std::int64_t size = status.st_size;
  if (bytes_max <= 0 || size <= bytes_max) return size;
  const std::int64_t block = block_of(status);
  const std::int64_t head = bytes_max / 8 / block * block;
  // What was cut before tells itself: data goes on behind the hole.
  const off_t data = lseek(fd, head, SEEK_DATA);
  if (data < 0 && errno == ENXIO) return head;
  const std::int64_t goes_on = data < 0 ? head : data;
  const std::int64_t kept = head + size - goes_on;
  if (kept <= bytes_max) return kept;
  const std::int64_t cut = (size - bytes_max * 3 / 8) / block * block;
  if (cut <= goes_on) return kept;
  if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, head, cut - head) == 0) {
    return head + size - cut;
  }
  cut_without_holes(fd, head, size, bytes_max);
  return head;
}

}  // namespace takt::shim
