#pragma once
// The daemon's sockets: driver.sock and one gpuN.sock per GPU. One thread; a call that hangs holds
// nothing but its own connection.
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "daemon/gpu.h"

namespace takt::emulator {

class Server {
 public:
  // `idle_exit_seconds` without any connection end the daemon; 0: never.
  Server(Fleet fleet, std::string folder, double idle_exit_seconds);
  ~Server();

  Result<void> listen();
  // Until it is idle for long enough or the signal fd (signalfd) is readable. Removes the sockets.
  Result<void> run(int signal_fd);

 private:
  struct Connection {
    int fd;
    int gpu;  // -1: driver.sock
    std::uint64_t id;
    unsigned pid;
  };
  Result<int> listen_on(const std::string& path);
  void accept_on(int listener, int gpu);
  void serve(int fd);
  void drop(int fd);
  Reply answer_driver(const Request& request) const;
  bool try_to_end();
  void remove_sockets();

  Fleet fleet_;
  std::string folder_;
  double idle_exit_seconds_;
  std::vector<std::unique_ptr<Gpu>> gpus_;
  std::map<int, int> listeners_;  // fd -> GPU, -1: driver
  std::map<int, Connection> connections_;
  std::uint64_t next_id_ = 1;
  int epoll_ = -1;
};

}  // namespace takt::emulator
