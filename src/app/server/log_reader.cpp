#include "app/server/log_reader.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "core/model/quantity_text.h"

namespace takt::server {
namespace {

constexpr std::int64_t kPieceMax = 256 << 10;
constexpr auto kPoll = std::chrono::milliseconds(20);

struct Source {
  std::string path;  // empty: no attempt yet
  bool ended = false;
  Bytes log_max;
};

Result<Source> source_in(const control::Sight& sight, const control::Job& job,
                         const LogRequest& request) {
  if (job.submitter().uid != request.uid && !request.admin)
    return fail(ErrorKind::forbidden,
                fmt::format("the output of job {} is {}'s: only {} and admins may read it",
                            to_string(job.id), job.submitter().user, job.submitter().user));
  Source source;
  if (job.attempt) {
    const AttemptId id = job.attempt->id;
    source.path = request.stderr_stream ? control::stderr_path(sight.places, id)
                                        : control::stdout_path(sight.places, id);
  }
  source.log_max = sight.places.log_max;
  source.ended = static_cast<bool>(job.finished);
  return source;
}

Result<Source> source_of(const Controller& controller, const Archivist* archive,
                         const LogRequest& request) {
  std::optional<Result<Source>> source;
  controller.read([&](const control::Sight& sight) {
    const auto it = sight.state.jobs.find(request.job);
    if (it != sight.state.jobs.end()) source = source_in(sight, it->second, request);
  });
  if (source) return *source;
  if (archive != nullptr) {
    auto archived = archive->find(request.job);
    if (!archived) return tl::make_unexpected(archived.error());
    if (*archived)
      controller.read([&](const control::Sight& sight) {
        source = source_in(sight, (*archived)->job(), request);
      });
  }
  if (source) return *source;
  return fail(ErrorKind::not_found,
              fmt::format("there is no job {}: `takt ps --all` lists all", to_string(request.job)));
}

// A descriptor that is closed at the end.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {}
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

// Where data begins at or behind `offset`, which is below `size`: `offset` itself unless there is a
// hole. File systems without holes have data everywhere.
std::int64_t data_from(int fd, std::int64_t offset, std::int64_t size) {
  const off_t data = ::lseek(fd, offset, SEEK_DATA);
  if (data >= 0) return std::min<std::int64_t>(data, size);
  return errno == ENXIO ? size : offset;
}

std::int64_t hole_from(int fd, std::int64_t offset, std::int64_t size) {
  const off_t hole = ::lseek(fd, offset, SEEK_HOLE);
  return hole < 0 ? size : std::min<std::int64_t>(hole, size);
}

}  // namespace

Result<LogPiece> read_log_file(const std::string& path, std::int64_t offset, Bytes log_max) {
  LogPiece piece;
  piece.next_offset = offset;
  if (path.empty()) return piece;
  const OpenFile file(path);
  const auto refuse = [&] {
    return fail(ErrorKind::io, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  };
  if (file.fd() < 0) {
    if (errno == ENOENT) return piece;
    return refuse();
  }
  struct stat status {};
  if (::fstat(file.fd(), &status) != 0) return refuse();
  const std::int64_t size = status.st_size;
  // A file that was cut short is read on from its new end.
  if (offset >= size) {
    piece.next_offset = size;
    return piece;
  }
  // It may be cut while we look: then once more.
  for (int round = 0;; ++round) {
    const std::int64_t data = data_from(file.fd(), offset, size);
    if (data > offset) {
      piece.bytes = fmt::format("\n[takt: {} dropped here: log_bytes_max is {}]\n",
                                format_size(Bytes{data - offset}), format_size(log_max));
      piece.next_offset = data;
      return piece;
    }
    const std::int64_t end = hole_from(file.fd(), offset, size);
    const auto wanted = static_cast<std::size_t>(std::min<std::int64_t>(end - offset, kPieceMax));
    piece.bytes.resize(wanted);
    const ssize_t n = ::pread(file.fd(), piece.bytes.data(), wanted, offset);
    if (n < 0) return refuse();
    if (round < 3 && hole_from(file.fd(), offset, size) < offset + n) continue;
    piece.bytes.resize(static_cast<std::size_t>(n));
    piece.next_offset = offset + n;
    return piece;
  }
}

Result<LogPiece> read_log(const Controller& controller, const Archivist* archive,
                          const LogRequest& request, std::stop_token stop) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(request.wait.us);
  while (true) {
    // The state first: what was written before the end is then surely read.
    auto source = source_of(controller, archive, request);
    if (!source) return tl::make_unexpected(source.error());
    auto read = read_log_file(source->path, request.offset, source->log_max);
    if (!read) return read;
    LogPiece piece = std::move(*read);
    piece.ended = source->ended && piece.bytes.empty();
    if (piece.next_offset != request.offset || piece.ended ||
        std::chrono::steady_clock::now() >= end)
      return piece;
    (void)controller.wait([](const control::Sight&) { return false; },
                          microseconds(std::chrono::microseconds(kPoll).count()), stop);
    if (stop.stop_requested()) return piece;
  }
}

}  // namespace takt::server
