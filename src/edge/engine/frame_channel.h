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
  // Writes all of it or fails: unavailable when the other end does not take it within `timeout` or
  // is gone. A frame that failed half-way is completed by the next write, so that frames never mix;
  // the other end may thus get it in spite of the error.
  Result<void> write(const std::string& frame, Duration timeout);
  // The complete frames that have arrived, without waiting. Errors: unavailable when the other end
  // is gone, invalid when a frame is longer than allowed.
  Result<std::vector<std::string>> read_available();

 private:
  tl::unexpected<Error> too_long() const;
  int fd_;
  std::size_t frame_bytes_max_;
  std::string pending_;  // read: the beginning of a frame
  std::string unsent_;   // written: the tail of a frame
};

}  // namespace takt::engine
