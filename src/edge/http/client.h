#pragma once
// Client of takt's own server on a Unix socket: HTTP/1.1 with Content-Length, one kept-alive
// connection. Written by hand because both ends are ours and libcurl costs every start of `takt` 5
// ms of CPU (half of what `takt --version` may take). It does not speak to other servers (no
// chunked answers, no TLS).
#include <memory>
#include <string>

#include "core/base/quantities.h"
#include "core/base/result.h"
#include "edge/http/message.h"

namespace takt::http {

struct ClientOptions {
  std::size_t response_bytes_max = 256u << 20;
};

// Not for several threads at once.
class Client {
 public:
  explicit Client(std::string socket_path, ClientOptions options = {});
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  // target: path and query, already encoded. timeout: for the whole call, connecting included.
  // Any HTTP status is a Response. Errors: unavailable when nobody listens, in time out, or when
  // the connection breaks (the sentence says whether the request may have been carried out);
  // forbidden when the socket's mode keeps us out; invalid for a target, method or path that cannot
  // be sent; io for an answer that is not HTTP as spoken here.
  Result<Response> call(const std::string& method, const std::string& target,
                        const std::string& body, Duration timeout);

  // GET, where the body of a 200 goes to the sink instead of the Response. Not tried again: the
  // sink may have had a part. Errors as of call, and the sink's own.
  Result<Response> fetch(const std::string& target, Duration timeout, BodySink sink);
  // Whether the last call got as far as sending: if it failed, the server may have carried it out.
  bool sent() const;

  // The server's process as the kernel names it. Only while connected (after a call that
  // succeeded).
  Result<Peer> peer() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace takt::http
