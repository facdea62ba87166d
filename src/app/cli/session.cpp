#include "app/cli/session.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <thread>

#include "app/cli/output.h"
#include "app/cli/places.h"
#include "edge/codec/api_json.h"
#include "edge/http/message.h"

namespace takt::cli {

int exit_code_of(const Error& error) {
  return error.kind == ErrorKind::invalid ? kExitUsage : kExitFailed;
}

int complain(const Error& error) {
  tell(error.message);
  return exit_code_of(error);
}

void tell(const std::string& sentence) {
  // Standard error may be gone too; there is nobody left to say that to.
  (void)write_all(STDERR_FILENO, "takt: " + sentence + "\n");
}

void warn(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) tell("note: " + warning);
}

Session::Session() : client_(client_socket()) {}

void Session::disconnect() { client_ = http::Client(client_socket()); }

Attempt Session::attempt(const std::string& method, const std::string& path, const Query& query,
                         const std::string& body, Duration timeout) {
  std::string target = path;
  for (const auto& [name, value] : query)
    target += (target.find('?') == std::string::npos ? "?" : "&") + name + "=" +
              http::percent_encoded(value);
  Attempt attempt{client_.call(method, target, body, timeout)};
  attempt.sent = client_.sent();
  if (!attempt.answer) {
    const ErrorKind kind = attempt.answer.error().kind;
    const bool absent = kind == ErrorKind::unavailable || kind == ErrorKind::forbidden;
    attempt.reached = absent ? Reached::no : Reached::yes;
    return attempt;
  }
  const http::Response& response = *attempt.answer;
  attempt.reached = Reached::yes;
  if (response.status < 400) return attempt;
  if (response.headers.contains("retry-after")) attempt.reached = Reached::later;
  auto sentence = codec::read_error(response.body);
  attempt.answer =
      fail(http::kind_of(response.status),
           sentence ? *sentence : fmt::format("the server answered {}", response.status));
  return attempt;
}

Result<http::Response> Session::wait(const std::string& method, const std::string& path,
                                     const std::string& body, const Query& query,
                                     Duration timeout) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(kBusyMax.us);
  while (true) {
    Attempt attempt = this->attempt(method, path, query, body, timeout);
    const bool late = std::chrono::steady_clock::now() >= end;
    if (attempt.reached != Reached::later || late) {
      server_there_ = attempt.reached == Reached::yes;
      return std::move(attempt.answer);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

Result<http::Response> Session::call(const std::string& method, const std::string& path,
                                     const Query& query, const std::string& body,
                                     Duration timeout) {
  auto answer = wait(method, path, body, query, timeout);
  if (answer || server_there_) return answer;
  // The one failure with an exit code of its own; there is nothing to be done but say so.
  tell(answer.error().message);
  std::exit(kExitNoServer);
}

Result<http::Response> Session::get(const std::string& path, const Query& query, Duration timeout) {
  return call("GET", path, query, "", timeout);
}

Result<http::Response> Session::post(const std::string& path, const std::string& body,
                                     const Query& query, Duration timeout) {
  return call("POST", path, query, body, timeout);
}

Result<http::Response> Session::fetch(const std::string& path, http::BodySink sink,
                                      Duration timeout) {
  auto response = client_.fetch(path, timeout, std::move(sink));
  if (!response || response->status == 200) return response;
  auto sentence = codec::read_error(response->body);
  return fail(http::kind_of(response->status),
              sentence ? *sentence : fmt::format("the server answered {}", response->status));
}

bool on_terminal() { return ::isatty(STDOUT_FILENO) != 0; }

namespace {

winsize terminal_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) size = winsize{};
  return size;
}

}  // namespace

int terminal_rows() {
  const int rows = terminal_size().ws_row;
  return rows > 0 ? rows : 40;
}

Query screen_query(const std::string& format) {
  const int columns = terminal_size().ws_col;
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  const bool colour = on_terminal() && std::getenv("NO_COLOR") == nullptr;
  return {{"format", format},
          {"width", std::to_string(columns > 0 ? columns : 120)},
          {"colour", colour ? "true" : "false"},
          {"utc_offset_seconds", std::to_string(local.tm_gmtoff)}};
}

int print(Session& session, const std::string& path, Query query, bool json) {
  if (json) {
    query["format"] = "json";
  } else {
    for (auto& [name, value] : screen_query("text")) query.emplace(name, value);
  }
  auto response = session.get(path, query);
  if (!response) return complain(response.error());
  std::string text = std::move(response->body);
  if (json && !text.empty() && text.back() != '\n') text += '\n';
  return put(text);
}

}  // namespace takt::cli
