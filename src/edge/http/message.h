#pragma once
// Requests and answers as values, shared by server, router and client.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace takt::http {

// Who is at the other end of the socket: the kernel's word (SO_PEERCRED), taken when they
// connected.
struct Peer {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::int64_t pid = 0;  // 0 where the process lives in a pid namespace that we cannot see
};

struct Request {
  std::string method;  // "GET", as sent
  std::string path;    // "/v1/jobs/17", still percent-encoded (checked); captures are decoded
  std::map<std::string, std::string> query;    // decoded; of a repeated name the last one counts
  std::map<std::string, std::string> headers;  // lower-case names; only content-type and accept
  std::string body;
  Peer peer;
  // Trips when the server stops. A handler that waits (long poll) must wait on it too, e.g. with
  // std::condition_variable_any::wait_for(lock, stop, ...): Server::stop waits for handlers.
  std::stop_token stop;
};

// An open file to be sent; closed with the last reference.
class BodyFile {
 public:
  BodyFile(int fd, std::uint64_t bytes) : fd_(fd), bytes_(bytes) {}
  ~BodyFile();
  BodyFile(const BodyFile&) = delete;
  BodyFile& operator=(const BodyFile&) = delete;
  int fd() const { return fd_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  const int fd_;
  const std::uint64_t bytes_;
};

// Takes a piece of a body as it comes; its error ends the transfer.
using BodySink = std::function<Result<void>(std::string_view)>;

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::map<std::string, std::string>
      headers;  // further ones; lower-case when the client returns it
  // Of the server: sent instead of the body, without being read into memory.
  std::shared_ptr<const BodyFile> file;
};

// The one shape of every error: {"error": "<sentence>"}.
Response error_response(int status, std::string_view sentence);
// The status that result.h promises for the kind.
int status_of(ErrorKind kind);
Response error_response(const Error& error);
// The kind that a status stands for, the inverse of status_of; for clients.
ErrorKind kind_of(int status);

// Text as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD.
std::string json_quoted(std::string_view text);

// Undoes %XX (and '+' for a blank where `plus_is_blank`, as in queries). Invalid or truncated
// escapes, an escaped NUL and raw control characters are an Error of kind invalid.
Result<std::string> percent_decoded(std::string_view text, bool plus_is_blank);
// Encodes everything but letters, digits and "-._~": for one path segment or one query value.
std::string percent_encoded(std::string_view text);
// "a=1&b=%20" to its pairs.
Result<std::map<std::string, std::string>> parse_query(std::string_view text);

}  // namespace takt::http
