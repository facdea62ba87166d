#pragma once
// Reads one HTTP/1.1 answer from bytes as they come: only what takt's own server sends. No sockets
// here, so that tests can feed it anything. Internal to the room.
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/result.h"
#include "edge/http/message.h"

namespace takt::http {

class ResponseParser {
 public:
  // head_request: the answer has no body whatever its headers say.
  ResponseParser(bool head_request, std::size_t body_bytes_max)
      : head_request_(head_request), body_bytes_max_(body_bytes_max) {}

  // The body of a 200 goes to the sink as it comes and has no limit; that of an error is kept.
  void send_body_to(BodySink sink) { sink_ = std::move(sink); }

  // Takes more bytes. True when the answer is complete; bytes behind it are then surplus().
  // Errors (io): not HTTP/1.x, a malformed or too large header, a length that is missing, malformed
  // or above the limit, a transfer encoding.
  Result<bool> feed(std::string_view bytes);

  bool begun() const { return begun_; }  // any byte came
  // After feed said true.
  Response& response() { return response_; }
  bool keeps_alive() const { return keeps_alive_; }
  bool surplus() const { return surplus_; }

 private:
  Result<bool> parse_head(std::string_view head);
  Result<void> parse_field(std::string_view line);
  Result<bool> take_body(std::string_view bytes);

  const bool head_request_;
  const std::size_t body_bytes_max_;
  bool begun_ = false;
  bool head_done_ = false;
  bool keeps_alive_ = true;
  bool surplus_ = false;
  bool length_known_ = false;
  std::size_t body_bytes_ = 0;
  std::size_t body_bytes_taken_ = 0;
  BodySink sink_;
  std::string head_;
  Response response_;
};

}  // namespace takt::http
