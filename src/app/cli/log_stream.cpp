#include "app/cli/log_stream.h"

#include <chrono>
#include <thread>

#include "app/cli/output.h"
#include "app/cli/session.h"

namespace takt::cli {
namespace {

// A server that does not wait (it stops, or is short of connections) is not hammered.
constexpr std::chrono::milliseconds kPollMin{200};

std::string header(const http::Response& response, const std::string& name) {
  const auto it = response.headers.find(name);
  return it == response.headers.end() ? "" : it->second;
}

}  // namespace

Result<void> copy_log(const std::string& job, const std::string& stream, int fd, bool follow,
                      Patience& patience) {
  Session session;
  std::string offset = "0";
  while (!patience.left()) {
    const auto asked = std::chrono::steady_clock::now();
    auto piece =
        patience.get(session, "/v1/jobs/" + http::percent_encoded(job) + "/logs",
                     {{"stream", stream}, {"offset", offset}, {"wait_ms", follow ? "1000" : "0"}});
    if (!piece && patience.left()) return {};
    if (!piece) return tl::make_unexpected(piece.error());
    if (auto ok = write_all(fd, piece->body); !ok) return ok;
    offset = header(*piece, "x-takt-next-offset");
    if (header(*piece, "x-takt-ended") == "true" || (!follow && piece->body.empty())) return {};
    if (piece->body.empty()) std::this_thread::sleep_until(asked + kPollMin);
  }
  return {};
}

}  // namespace takt::cli
