#include "app/server/log_reader.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

namespace takt::server {
namespace {

constexpr std::size_t kPieceMax = 256 << 10;
constexpr auto kPoll = std::chrono::milliseconds(20);

struct Source {
  std::string path;  // empty: no attempt yet
  bool ended = false;
};

Result<Source> source_of(const Controller& controller, const LogRequest& request) {
  Result<Source> source;
  controller.read([&](const control::Sight& sight) {
    const auto it = sight.state.jobs.find(request.job);
    if (it == sight.state.jobs.end()) {
      source = fail(
          ErrorKind::not_found,
          fmt::format("there is no job {}: `takt ps --all` lists all", to_string(request.job)));
      return;
    }
    const control::Job& job = it->second;
    if (job.submitter().uid != request.uid && !request.admin) {
      source = fail(ErrorKind::forbidden,
                    fmt::format("the output of job {} is {}'s: only {} and admins may read it",
                                to_string(job.id), job.submitter().user, job.submitter().user));
      return;
    }
    if (job.attempt) {
      const AttemptId id = job.attempt->id;
      source->path = request.stderr_stream ? control::stderr_path(sight.places, id)
                                           : control::stdout_path(sight.places, id);
    }
    source->ended = job.finished.has_value();
  });
  return source;
}

Result<std::string> read_piece(const std::string& path, std::int64_t offset) {
  if (path.empty()) return std::string();
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) {
    if (errno == ENOENT) return std::string();
    return fail(ErrorKind::io, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  }
  std::string bytes(kPieceMax, '\0');
  const ssize_t n = ::pread(fd, bytes.data(), bytes.size(), offset);
  const int error = errno;
  ::close(fd);
  if (n < 0)
    return fail(ErrorKind::io, fmt::format("cannot read {}: {}", path, std::strerror(error)));
  bytes.resize(static_cast<std::size_t>(n));
  return bytes;
}

}  // namespace

Result<LogPiece> read_log(const Controller& controller, const LogRequest& request,
                          std::stop_token stop) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(request.wait.us);
  while (true) {
    // The state first: what was written before the end is then surely read.
    auto source = source_of(controller, request);
    if (!source) return tl::make_unexpected(source.error());
    auto bytes = read_piece(source->path, request.offset);
    if (!bytes) return tl::make_unexpected(bytes.error());
    LogPiece piece;
    piece.next_offset = request.offset + static_cast<std::int64_t>(bytes->size());
    piece.ended = source->ended && bytes->empty();
    piece.bytes = std::move(*bytes);
    if (!piece.bytes.empty() || piece.ended || std::chrono::steady_clock::now() >= end)
      return piece;
    (void)controller.wait([](const control::Sight&) { return false; },
                          microseconds(std::chrono::microseconds(kPoll).count()), stop);
    if (stop.stop_requested()) return piece;
  }
}

}  // namespace takt::server
