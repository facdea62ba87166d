#pragma once
// What every command shares: the connection to the server, how errors become exit codes, and what
// the terminal is like.
#include <map>
#include <string>

#include "core/base/result.h"
#include "edge/http/client.h"

namespace takt::cli {

// Documented in `takt --help`.
inline constexpr int kExitFine = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNoServer = 3;

int exit_code_of(const Error& error);
// "takt: <sentence>" on standard error.
int complain(const Error& error);
void tell(const std::string& sentence);
void warn(const std::vector<std::string>& warnings);

using Query = std::map<std::string, std::string>;

class Session {
 public:
  Session();
  // The body of a successful answer. Errors carry the server's sentence.
  Result<http::Response> get(const std::string& path, const Query& query = {},
                             Duration timeout = seconds(60));
  Result<http::Response> post(const std::string& path, const std::string& body,
                              const Query& query = {}, Duration timeout = seconds(60));
  // The body of a 200 goes to the sink. Never ends the program: the caller has something to tidy
  // up.
  Result<http::Response> fetch(const std::string& path, http::BodySink sink,
                               Duration timeout = hours(12));
  const std::string& socket() const { return socket_; }

 private:
  Result<http::Response> call(const std::string& method, const std::string& path,
                              const Query& query, const std::string& body, Duration timeout);
  std::string socket_;
  http::Client client_;
};

// format=..., with the terminal's width, colours and the offset of local time.
Query screen_query(const std::string& format);
bool on_terminal();
int terminal_rows();

// Prints the answer to a GET: JSON as it is, or text.
int print(Session& session, const std::string& path, Query query, bool json);

}  // namespace takt::cli
