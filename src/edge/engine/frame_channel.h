#pragma once
// One JSON document a line over a connected stream socket, with a bound on the line's length and a
// deadline on writes. Used by both ends of the agent's protocol.
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/base/quantities.h"
#include "core/base/result.h"

namespace takt::engine {

class FrameChannel {
 public:
  // Takes the descriptor over and makes it non-blocking.
  FrameChannel(int fd, std::size_t frame_bytes_max);
  ~FrameChannel();
  FrameChannel(const FrameChannel&) = delete;
  FrameChannel& operator=(const FrameChannel&) = delete;

  int fd() const { return fd_; }
  // Writes all of it or fails: unavailable when the other end takes nothing for `timeout` or is
  // gone.
  Result<void> write(const std::string& frame, Duration timeout);
  // The complete frames that have arrived, without waiting. Errors: unavailable when the other end
  // is gone, invalid when a frame is longer than allowed.
  Result<std::vector<std::string>> read_available();

 private:
  int fd_;
  std::size_t frame_bytes_max_;
  std::string pending_;
};

}  // namespace takt::engine
