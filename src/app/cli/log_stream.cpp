#include "app/cli/log_stream.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "app/cli/session.h"

namespace takt::cli {
namespace {

Result<void> write_all(int fd, const std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return fail(ErrorKind::io, std::string("cannot print the output: ") + std::strerror(errno));
    done += static_cast<std::size_t>(n);
  }
  return {};
}

std::string header(const http::Response& response, const std::string& name) {
  const auto it = response.headers.find(name);
  return it == response.headers.end() ? "" : it->second;
}

}  // namespace

Result<void> copy_log(const std::string& job, const std::string& stream, int fd, bool follow,
                      const std::atomic<bool>& leave) {
  Session session;
  std::string offset = "0";
  while (!leave) {
    auto piece =
        session.get("/v1/jobs/" + job + "/logs",
                    {{"stream", stream}, {"offset", offset}, {"wait_ms", follow ? "1000" : "0"}});
    if (!piece) return tl::make_unexpected(piece.error());
    if (auto ok = write_all(fd, piece->body); !ok) return ok;
    offset = header(*piece, "x-takt-next-offset");
    if (header(*piece, "x-takt-ended") == "true" || (!follow && piece->body.empty())) return {};
  }
  return {};
}

}  // namespace takt::cli
