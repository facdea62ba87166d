#pragma once
// Taking a path for a listening Unix socket, without taking it from a live server. Internal to the
// room.
#include <sys/types.h>

#include <string>

#include "core/base/result.h"

namespace takt::http {

class ListenSocket {
 public:
  // Errors as of Server::start.
  static Result<ListenSocket> take(const std::string& path, unsigned mode);
  ~ListenSocket();  // closes; removes the file if it is still ours
  ListenSocket(ListenSocket&& other) noexcept;
  ListenSocket& operator=(ListenSocket&&) = delete;

  int fd() const { return fd_; }
  void remove_file();  // nobody new finds us; a second call does nothing

 private:
  ListenSocket(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_ = -1;
  std::string path_;
  dev_t device_ = 0;  // of the file that we made, to tell it from a successor's
  ino_t inode_ = 0;
};

}  // namespace takt::http
