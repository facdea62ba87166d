#pragma once
// One connection of a client to a socket of the daemon.
#include <string>

#include "core/base/result.h"
#include "wire/message.h"

namespace takt::emulator {

class Channel {
 public:
  static Result<Channel> connect(const std::string& socket_path);
  Channel(Channel&& other) noexcept;
  Channel& operator=(Channel&& other) noexcept;
  ~Channel();

  // Blocks until the daemon replies: for ever where the fleet says that the call hangs.
  Result<Reply> call(const Request& request);

 private:
  explicit Channel(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace takt::emulator
