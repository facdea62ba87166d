#pragma once
// HTTP/1.1 on a Unix socket. Who may connect is decided by the socket's mode and its folder; who
// somebody is, by the kernel.
//
// Every connection has a thread of its own, so a handler may block (long polls of 30 s) without
// holding up others; the number of connections bounds the threads.
#include <functional>
#include <memory>
#include <string>

#include "core/base/quantities.h"
#include "core/base/result.h"
#include "edge/http/message.h"

namespace takt::http {

using Handler = std::function<Response(const Request&)>;

struct ServerOptions {
  std::string socket_path;  // at most 107 bytes, a limit of the kernel
  unsigned socket_mode = 0600;
  std::size_t body_bytes_max = 8u << 20;
  // Request line and headers together; more is answered with 431 or 414 and the connection ends.
  std::size_t header_bytes_max = 32u << 10;
  unsigned connections_max = 1024;
  unsigned connections_per_user_max = 512;  // one user cannot lock out the others
  // Beyond both limits so many more are let in for those of whom `privileged` says so, e.g. to
  // cancel what takes the rest. It is asked then only, and may be slow. Such a connection answers
  // one request, does not wait (Request::stop has tripped already) and ends.
  unsigned connections_reserved = 16;
  std::function<bool(std::uint32_t uid)> privileged;
  Duration idle_timeout = seconds(60);  // no byte for so long ends a connection; not in handlers
};

class Server {
 public:
  // Errors: conflict (a live server holds the socket; names its pid), invalid (the path is too
  // long, or something other than a socket is there: it is never deleted), forbidden, not_found,
  // io. The socket file of a dead server is replaced. The handler is called from many threads at
  // once; an exception from it becomes a 500.
  static Result<std::unique_ptr<Server>> start(ServerOptions options, Handler handler);
  ~Server();  // stops
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Trips Request::stop, ends all connections, waits for the handlers, removes the socket file.
  // A second call does nothing.
  void stop();
  unsigned connections() const;  // now open

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace takt::http
