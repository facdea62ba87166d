#pragma once
// What every command shares: the connection to the server, how errors become exit codes, and what
// the terminal is like.
#include <map>
#include <string>
#include <vector>

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

// How far a call came.
enum class Reached {
  yes,    // the server has dealt with it
  later,  // the server is there and says to come back: it starts, or has no connection free
  no,     // no answer
};
struct Attempt {
  Result<http::Response> answer;  // errors carry the server's sentence, or why there is no answer
  Reached reached = Reached::no;
  bool sent = false;  // without an answer it may have been carried out all the same
};

class Session {
 public:
  Session();
  // The body of a successful answer. Errors carry the server's sentence. A server that says "come
  // back later" is asked again for ten seconds; where there is none the process ends with exit
  // code 3. For a command's only thread.
  Result<http::Response> get(const std::string& path, const Query& query = {},
                             Duration timeout = seconds(60));
  Result<http::Response> post(const std::string& path, const std::string& body,
                              const Query& query = {}, Duration timeout = seconds(60));
  // The body of a 200 goes to the sink. Never ends the program: the caller has something to tidy
  // up.
  Result<http::Response> fetch(const std::string& path, http::BodySink sink,
                               Duration timeout = hours(12));
  // The same for those who have more to say when there is no server: `server_there` is false then.
  Result<http::Response> wait(const std::string& method, const std::string& path,
                              const std::string& body, const Query& query = {},
                              Duration timeout = seconds(60));
  bool server_there() const { return server_there_; }
  // One try, for those who wait by themselves.
  Attempt attempt(const std::string& method, const std::string& path, const Query& query,
                  const std::string& body, Duration timeout);
  // Gives the connection back to the server; the next call makes a new one.
  void disconnect();

 private:
  Result<http::Response> call(const std::string& method, const std::string& path,
                              const Query& query, const std::string& body, Duration timeout);
  http::Client client_;
  bool server_there_ = true;  // of the last call
};

// For how long a server that says "come back later" is asked again.
inline constexpr Duration kBusyMax = seconds(10);

// format=..., with the terminal's width, colours and the offset of local time.
Query screen_query(const std::string& format);
bool on_terminal();
int terminal_rows();

// Prints the answer to a GET: JSON as it is, or text.
int print(Session& session, const std::string& path, Query query, bool json);

}  // namespace takt::cli
