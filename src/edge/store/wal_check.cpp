#include "edge/store/wal_check.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

namespace takt::store {
namespace {

constexpr std::size_t kHeaderBytes = 32;
constexpr std::size_t kFrameHeaderBytes = 24;
constexpr std::uint32_t kMagic = 0x377F0682;  // its lowest bit: checksums over big-endian words

std::uint32_t big_endian(const unsigned char* at) {
  return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 |
         at[3];
}
std::uint32_t little_endian(const unsigned char* at) {
  return std::uint32_t{at[3]} << 24 | std::uint32_t{at[2]} << 16 | std::uint32_t{at[1]} << 8 |
         at[0];
}

struct Sum {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  bool operator==(const Sum&) const = default;
};

Sum sum_of(const unsigned char* bytes, std::size_t count, bool big, Sum sum) {
  for (std::size_t at = 0; at + 8 <= count; at += 8) {
    sum.first += (big ? big_endian(bytes + at) : little_endian(bytes + at)) + sum.second;
    sum.second += (big ? big_endian(bytes + at + 4) : little_endian(bytes + at + 4)) + sum.first;
  }
  return sum;
}

struct Log {
  explicit Log(int fd_in) : fd(fd_in) {}
  ~Log() { ::close(fd); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // False at the end of the file or when it cannot be read.
  bool read(std::vector<unsigned char>& into, std::size_t at) const {
    std::size_t done = 0;
    while (done < into.size()) {
      const ssize_t got =
          ::pread(fd, into.data() + done, into.size() - done, static_cast<::off_t>(at + done));
      if (got <= 0) return false;
      done += static_cast<std::size_t>(got);
    }
    return true;
  }
  std::size_t size() const {
    const ::off_t end = ::lseek(fd, 0, SEEK_END);
    return end < 0 ? 0 : static_cast<std::size_t>(end);
  }
  const int fd;
};

}  // namespace

std::optional<std::string> damage_in_wal(const std::string& wal_path) {
  const int fd = ::open(wal_path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT) return std::nullopt;
    return fmt::format("its log cannot be read: {}", std::strerror(errno));
  }
  const Log log(fd);
  // The header is synced before the first frame is written: with frames behind it, it must fit.
  if (log.size() <= kHeaderBytes) return std::nullopt;
  std::vector<unsigned char> header(kHeaderBytes);
  if (!log.read(header, 0)) return "its log cannot be read";
  const std::uint32_t magic = big_endian(header.data());
  const bool big = (magic & 1) != 0;
  const std::uint32_t page_bytes = big_endian(header.data() + 8);
  Sum sum = sum_of(header.data(), 24, big, {});
  const Sum stored{big_endian(header.data() + 24), big_endian(header.data() + 28)};
  const bool usual_size = page_bytes >= 512 && page_bytes <= 65536;
  if ((magic & ~1U) != kMagic || !usual_size || sum != stored) {
    return "the header of its log does not fit its checksum";
  }
  std::vector<unsigned char> frame(kFrameHeaderBytes + page_bytes);
  Sum before = sum;  // as the frame before has it, fitting or not
  bool whole = true;
  bool after_commit = false;
  std::size_t readable = 0;  // frames, up to the last commit that can be read
  for (std::size_t i = 0; log.read(frame, kHeaderBytes + i * frame.size()); ++i) {
    const bool this_round = std::memcmp(frame.data() + 8, header.data() + 16, 8) == 0;
    sum = sum_of(frame.data(), 8, big, before);
    sum = sum_of(frame.data() + kFrameHeaderBytes, page_bytes, big, sum);
    const Sum own{big_endian(frame.data() + 16), big_endian(frame.data() + 20)};
    const bool continues = this_round && sum == own && big_endian(frame.data()) != 0;
    if (!whole && continues && after_commit) {
      return fmt::format("its log cannot be read behind page {} although commits follow there",
                         readable);
    }
    whole = whole && continues;
    after_commit = this_round && big_endian(frame.data() + 4) != 0;
    if (whole && after_commit) readable = i + 1;
    before = own;
  }
  return std::nullopt;
}

}  // namespace takt::store
