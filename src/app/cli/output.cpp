#include "app/cli/output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "app/cli/session.h"

namespace takt::cli {

Result<void> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      // Somebody who shares the terminal or pipe with us has made it non-blocking.
      pollfd wanted{fd, POLLOUT, 0};
      (void)::poll(&wanted, 1, 1000);
    } else if (errno == EPIPE) {
      return fail(ErrorKind::io, "");
    } else if (errno != EINTR) {
      return fail(ErrorKind::io, std::string("cannot write to standard ") +
                                     (fd == STDERR_FILENO ? "error: " : "output: ") +
                                     std::strerror(errno));
    }
  }
  return {};
}

int put(std::string_view text, int code) {
  const auto written = write_all(STDOUT_FILENO, text);
  if (written) return code;
  if (!written.error().message.empty()) tell(written.error().message);
  return kExitFailed;
}

void hold_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) (void)::open("/dev/null", O_RDONLY);
}

}  // namespace takt::cli
