// takt-shim: one per attempt, between the launcher and the job. It outlives the launcher, starts
// the job once, waits for it and for all that descends from it, and puts the outcome on record.
//
//   takt-shim RECORD_FOLDER      readiness pipe on descriptor 3
//   takt-shim --version
//
// The formats and the order of steps: docs/formats/shim.md.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/base/fault_point.h"
#include "edge/launch/shim/protocol.h"
#include "edge/launch/shim/supervision.h"

namespace takt::shim {
namespace {

// Another shim, or a launcher that withdraws the start, may hold the lock for a moment.
constexpr int lock_tries_max = 50;
constexpr useconds_t lock_pause_us = 2000;

void answer(const char* word, const char* sentence) {
  char text[message_bytes_max + 32];
  const int size =
      std::snprintf(text, sizeof text, "%s%s%.1000s", word, *sentence ? " " : "", sentence);
  if (size > 0) (void)write_all(ready_fd, {text, static_cast<std::size_t>(size)});
  close(ready_fd);
}

bool is_there(int folder, const char* name) {
  struct stat status;
  return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

bool take_lock(int folder) {
  const int fd = openat(folder, lock_file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return false;
  for (int i = 0; i < lock_tries_max; ++i) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;  // held until this process ends
    if (errno != EWOULDBLOCK) break;
    if (is_there(folder, job_file)) break;
    usleep(lock_pause_us);
  }
  close(fd);
  return false;
}

// Nothing of the launcher may stay open or in force here.
bool detach() {
  if (syscall(SYS_close_range, static_cast<unsigned>(ready_fd + 1), ~0U, 0U) != 0) {
    for (int fd = ready_fd + 1; fd < 1024; ++fd) close(fd);  // kernels before 5.9
  }
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  const pid_t child = fork();
  if (child < 0) {
    answer(answer_failed, "the host has no room for another process: end some");
    _exit(1);
  }
  if (child > 0) _exit(0);
  setsid();
  umask(0077);
  const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int out = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (in < 0 || out < 0) return false;
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  close(in);
  close(out);
  fcntl(ready_fd, F_SETFD, FD_CLOEXEC);
  return chdir("/") == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L) == 0;
}

int run(const char* record) {
  if (!detach()) {
    answer(answer_failed, "takt-shim cannot leave the launcher: is /dev/null there?");
    return 1;
  }
  fault_point("shim.after-detach");
  const int folder = open(record, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) {
    answer(answer_failed, "the record folder is gone");
    return 1;
  }
  if (!take_lock(folder)) {
    answer(answer_busy, "");
    return 0;
  }
  fault_point("shim.after-lock");
  if (is_there(folder, job_file) || is_there(folder, exit_file)) {
    answer(answer_known, "");
    return 0;
  }
  Supervision supervision(folder);
  Sentence why;
  const Begin begun = supervision.begin(why);
  switch (begun) {
    case Begin::started: answer(answer_started, ""); break;
    case Begin::recorded: answer(answer_recorded, why.text); return 0;
    case Begin::failed: answer(answer_failed, why.text); return 1;
  }
  supervision.wait_for_end();
  return 0;
}

}  // namespace
}  // namespace takt::shim

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    std::printf("takt-shim protocol %s\n", takt::shim::protocol_version);
    return 0;
  }
  if (argc != 2 || argv[1][0] != '/') {
    std::fprintf(stderr, "takt-shim is started by takt's node agent: takt-shim RECORD_FOLDER\n");
    return 2;
  }
  return takt::shim::run(argv[1]);
}
