// What only the programs of the crash tests have: the function behind fault_point(). It counts on
// the board beside the program (a shim has no environment to be told by) and ends the process where
// the board says so. No C++ run-time library, since the shim has none.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "crash/fault_board.h"

extern "C" void takt_fault_point(const char* name);

namespace takt::crash {
namespace {

struct Self {
  const char* process = nullptr;  // null: a command, which has no points
  char attempt[32] = "";
  Board* board = nullptr;
};

void read_text(const char* path, char* text, std::size_t room) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t size = fd < 0 ? 0 : read(fd, text, room - 1);
  if (fd >= 0) close(fd);
  std::memset(text + (size > 0 ? size : 0), 0,
              room - static_cast<std::size_t>(size > 0 ? size : 0));
}

// Which of takt's processes this is, by what it was started as.
void name_process(Self& self) {
  char words[4096];
  read_text("/proc/self/cmdline", words, sizeof words);
  const char* const first = words + std::strlen(words) + 1;
  if (std::strcmp(words, "takt-shim") == 0) {
    self.process = kShim;
    const char* const slash = std::strrchr(first, '/');
    std::snprintf(self.attempt, sizeof self.attempt, "%s", slash == nullptr ? "" : slash + 1);
  } else if (std::strcmp(first, "serve") == 0) {
    self.process = kController;
  } else if (std::strcmp(first, "agent") == 0) {
    self.process = kAgent;
  }
}

Self find_self() {
  Self self;
  name_process(self);
  if (self.process == nullptr) return self;
  char path[4096] = "";
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 64);
  char* const slash = size > 0 ? std::strrchr(path, '/') : nullptr;
  if (slash == nullptr) return self;
  std::strcpy(slash + 1, kBoardName);
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return self;
  void* const at = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (at != MAP_FAILED) self.board = static_cast<Board*>(at);
  return self;
}

[[noreturn]] void end() {
  for (;;) {
    kill(getpid(), SIGKILL);
    pause();
  }
}

void reach(const Self& self, const char* name) {
  const int rows = static_cast<int>(self.board->rows.load());
  for (int i = 0; i < rows; ++i) {
    BoardRow& row = self.board->row[i];
    if (std::strcmp(row.point, name) != 0 || std::strcmp(row.process, self.process) != 0) continue;
    if (row.reached.fetch_add(1) + 1 != row.fatal_at.load()) return;
    std::memcpy(row.victim, self.attempt, sizeof row.victim);
    row.fired.fetch_add(1);
    end();
  }
  // Files are written by all, and watched in the controller only (file_calls.cpp).
  if (std::strncmp(name, "file.", 5) == 0) return;
  if (self.board->unknown.fetch_add(1) == 0)
    std::snprintf(self.board->unknown_point, sizeof self.board->unknown_point, "%s %.40s",
                  self.process, name);
}

}  // namespace
}  // namespace takt::crash

extern "C" void takt_fault_point(const char* name) {
  static const takt::crash::Self self = takt::crash::find_self();
  if (self.board != nullptr) takt::crash::reach(self, name);
}
