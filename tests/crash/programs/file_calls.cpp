// Fault points around the writes and syncs that SQLite makes inside of a commit, a checkpoint or a
// copy: the calls of the C library are taken over here and passed on. A write is made in two
// halves.
#include <dlfcn.h>
#include <unistd.h>

#include <cstddef>

extern "C" void takt_fault_point(const char* name);

namespace {

template <class Call>
Call next(const char* name) {
  return reinterpret_cast<Call>(dlsym(RTLD_NEXT, name));
}

using Write = ssize_t (*)(int, const void*, std::size_t, off64_t);
using Sync = int (*)(int);
using Truncate = int (*)(int, off64_t);

}  // namespace

extern "C" ssize_t pwrite64(int fd, const void* bytes, std::size_t size, off64_t offset) {
  static const Write real = next<Write>("pwrite64");
  takt_fault_point("file.before-write");
  const std::size_t half = size / 2;
  const ssize_t first = half == 0 ? 0 : real(fd, bytes, half, offset);
  if (first < 0 || static_cast<std::size_t>(first) < half) return first;
  takt_fault_point("file.half-written");
  const ssize_t second = real(fd, static_cast<const char*>(bytes) + half, size - half,
                              offset + static_cast<off64_t>(half));
  if (second >= 0) return first + second;
  return first > 0 ? first : second;
}

extern "C" int fdatasync(int fd) {
  static const Sync real = next<Sync>("fdatasync");
  takt_fault_point("file.before-sync");
  const int result = real(fd);
  takt_fault_point("file.after-sync");
  return result;
}

extern "C" int ftruncate64(int fd, off64_t size) noexcept {
  static const Truncate real = next<Truncate>("ftruncate64");
  takt_fault_point("file.before-truncate");
  return real(fd, size);
}
