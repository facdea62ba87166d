#include "edge/engine/frame_channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

namespace takt::engine {

FrameChannel::FrameChannel(int fd, std::size_t frame_bytes_max)
    : fd_(fd), frame_bytes_max_(frame_bytes_max) {
  ::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) | O_NONBLOCK);
}

FrameChannel::~FrameChannel() { ::close(fd_); }

Result<void> FrameChannel::write(const std::string& frame, Duration timeout) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(timeout.us);
  // The tail of a frame that met its deadline half-way goes first, else this one would be read as
  // its middle.
  const std::size_t tail = unsent_.size();
  std::string bytes = std::move(unsent_);
  bytes += frame;
  bytes += '\n';
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::send(fd_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN)
      return fail(
          ErrorKind::unavailable,
          std::string("the other end of the agent's socket is gone: ") + std::strerror(errno));
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      // A frame of which nothing was sent is dropped.
      unsent_ = done <= tail ? bytes.substr(done, tail - done) : bytes.substr(done);
      return fail(ErrorKind::unavailable, "the other end of the agent's socket takes nothing");
    }
    pollfd p{fd_, POLLOUT, 0};
    ::poll(&p, 1, static_cast<int>(left.count()));
  }
  return {};
}

Result<std::vector<std::string>> FrameChannel::read_available() {
  std::vector<std::string> frames;
  char buffer[65536];
  while (true) {
    const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return frames;
    if (n <= 0) {
      // What came before the end is still handed out; the next call reports the end.
      if (!frames.empty()) return frames;
      return fail(ErrorKind::unavailable, "the other end of the agent's socket is gone");
    }
    const std::size_t before = pending_.size();  // no newline in that part
    pending_.append(buffer, static_cast<std::size_t>(n));
    std::size_t begin = 0;
    for (std::size_t at = pending_.find('\n', before); at != std::string::npos;
         at = pending_.find('\n', begin)) {
      if (at - begin > frame_bytes_max_) return too_long();
      frames.push_back(pending_.substr(begin, at - begin));
      begin = at + 1;
    }
    pending_.erase(0, begin);
    if (pending_.size() > frame_bytes_max_) return too_long();
  }
}

tl::unexpected<Error> FrameChannel::too_long() const {
  return fail(ErrorKind::invalid, "a frame of the agent's protocol is longer than " +
                                      std::to_string(frame_bytes_max_) + " bytes");
}

}  // namespace takt::engine
