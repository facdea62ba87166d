#include "edge/launch/shim/job.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "edge/launch/shim/family.h"

namespace takt::shim {
namespace {

constexpr mode_t output_mode = 0644;
// A folder of logs may carry a group (setgid) that reads them: the server's.
constexpr mode_t handed_mode = 0640;
// Enough for data loaders, and no more than any kernel grants without questions.
constexpr rlim_t open_files_wanted = 65536;

[[noreturn]] void give_up(int report_fd, const Sentence& why) {
  (void)write_all(report_fd, why.text);
  _exit(127);
}

template <class... Args>
void say(Sentence& why, const char* format, Args... args) {
  std::snprintf(why.text, sizeof why.text, format, args...);
}

void reset_signals() {
  // By the system call: glibc hides two signals from sigaction that its posix_spawn leaves ignored.
  // All zero is SIG_DFL without flags on every architecture.
  const char by_default[256] = {};
  for (int number = 1; number < NSIG; ++number) {
    syscall(SYS_rt_sigaction, number, by_default, nullptr, sizeof(std::uint64_t));
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Before the user changes: afterwards hard limits cannot be reached for.
void set_limits() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, open_files_wanted));
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  // GPU drivers pin host memory.
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_MEMLOCK, &limit);
  }
  // A core of a GPU program is as large as its memory. Who wants one raises the soft limit.
  if (getrlimit(RLIMIT_CORE, &limit) == 0) {
    limit.rlim_cur = 0;
    setrlimit(RLIMIT_CORE, &limit);
  }
}

bool join_cgroups(const Spec& spec, const char* joined, Sentence& why) {
  for (int i = 0; i < spec.cgroups_size; ++i) {
    const char* const folder = spec.cgroups[i];
    if (folder == joined) continue;
    int error = is_v1(folder) ? join_v1(folder) : EOPNOTSUPP;
    if (error != 0) error = move_into(folder, getpid());
    if (error == 0) continue;
    say(why,
        "cgroup %s cannot be joined (%s): its limits would not be in force; start the attempt "
        "again",
        folder, std::strerror(error));
    return false;
  }
  return true;
}

bool become_user(const Spec& spec, Sentence& why) {
  if (!spec.switch_user) return true;
  // Without groups only the main one, and never those of the agent.
  const gid_t* const groups = spec.groups_size > 0 ? spec.groups : &spec.gid;
  const std::size_t groups_size = spec.groups_size > 0 ? spec.groups_size : 1;
  if (setgroups(groups_size, groups) == 0 && setresgid(spec.gid, spec.gid, spec.gid) == 0 &&
      setresuid(spec.uid, spec.uid, spec.uid) == 0) {
    return true;
  }
  say(why,
      "user %s (uid %u): cannot be taken on (%s): run the agent as root with CAP_SETUID and "
      "CAP_SETGID",
      spec.user, spec.uid, std::strerror(errno));
  return false;
}

bool enter_workdir(const Spec& spec, Sentence& why) {
  if (chdir(spec.workdir) == 0) return true;
  switch (errno) {
    case ENOENT:
      say(why, "workdir %s: no such folder on this host: create it or choose another",
          spec.workdir);
      break;
    case ENOTDIR: say(why, "workdir %s: not a folder: choose a folder", spec.workdir); break;
    case EACCES:
      say(why,
          "workdir %s: user %s (uid %u) may not enter it: change its permissions or choose "
          "another",
          spec.workdir, spec.user, spec.uid);
      break;
    default:
      say(why, "workdir %s: cannot be entered: %s", spec.workdir, std::strerror(errno));
      break;
  }
  return false;
}

// Blocking again: only the opening must not wait (a FIFO without a reader).
int made_blocking(int fd) {
  if (fd < 0) return fd;
  const int flags = fcntl(fd, F_GETFL);
  fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
  return fd;
}

bool is_below_logs(const Spec& spec, const char* path) {
  const std::size_t below = std::strlen(spec.logs_dir);
  return below > 0 && std::strncmp(path, spec.logs_dir, below) == 0 && path[below] == '/';
}

// All that are not the server's own, with the rights of the job's user.
bool open_outputs(const Spec& spec, Sentence& why) {
  const char* const paths[] = {spec.stdout_path, spec.stderr_path};
  for (const int number : {STDOUT_FILENO, STDERR_FILENO}) {
    const char* path = paths[number - STDOUT_FILENO];
    if (is_below_logs(spec, path)) continue;
    if (*path == '\0') path = "/dev/null";
    const bool same = number == STDERR_FILENO && std::strcmp(path, spec.stdout_path) == 0;
    const int fd = same ? STDOUT_FILENO : open_output(path, spec.uid, why);
    if (fd < 0 || dup2(fd, number) < 0) return false;
  }
  return true;
}

bool is_program(const char* path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

// As a shell does: a name without a slash is looked up in the job's PATH.
bool find_program(const Spec& spec, char* path, std::size_t size, Sentence& why) {
  const char* const name = spec.argv[0];
  if (std::strchr(name, '/') != nullptr) {
    if (std::strlen(name) < size) {
      std::strcpy(path, name);
      return true;
    }
    say(why, "%.200s...: the program's path is too long: shorten it", name);
    return false;
  }
  const char* rest = find_env(spec, "PATH");
  if (rest == nullptr) rest = "/usr/local/bin:/usr/bin:/bin";
  const char* const places = rest;
  bool seen = false;
  while (*rest != '\0' && *name != '\0') {
    const std::size_t length = std::strcspn(rest, ":");
    const int printed =
        length == 0 ? std::snprintf(path, size, "./%s", name)
                    : std::snprintf(path, size, "%.*s/%s", static_cast<int>(length), rest, name);
    if (printed > 0 && static_cast<std::size_t>(printed) < size) {
      if (is_program(path)) return true;
      seen = seen || access(path, F_OK) == 0;
    }
    rest += length;
    if (*rest == ':') ++rest;
  }
  if (seen) {
    say(why, "%s: found in PATH but not executable: chmod +x it or give the full path of another",
        name);
  } else {
    say(why, "%s: no such program in PATH (%.600s): check the name or give its full path", name,
        places);
  }
  return false;
}

void close_others_on_exec() {
  if (syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */) == 0) return;
  DIR* const folder = opendir("/proc/self/fd");  // kernels before 5.11
  if (folder == nullptr) return;
  while (const dirent* const entry = readdir(folder)) {
    std::int64_t fd = 0;
    if (parse_number(entry->d_name, fd) && fd > 2) {
      fcntl(static_cast<int>(fd), F_SETFD, FD_CLOEXEC);
    }
  }
  closedir(folder);
}

}  // namespace

int open_output(const char* path, uid_t uid, Sentence& why) {
  constexpr int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_CLOEXEC | O_NONBLOCK;
  int fd = open(path, flags | O_NOFOLLOW, output_mode);
  if (fd < 0 && errno == ELOOP) {
    struct stat link;
    if (lstat(path, &link) == 0 && link.st_uid != uid && link.st_uid != 0) {
      say(why,
          "output file %s: a symbolic link of another user (uid %u): remove it or choose "
          "another file",
          path, link.st_uid);
      return -1;
    }
    fd = open(path, flags, output_mode);
  }
  if (fd < 0) {
    const char* next = "choose another file";
    if (errno == ENOENT) next = "create its folder or choose another file";
    if (errno == EACCES) next = "the job's user may not write there: choose another file";
    say(why, "output file %s: %s: %s", path, std::strerror(errno), next);
  }
  return made_blocking(fd);
}

int open_handed_output(const char* path, const char* logs_dir, uid_t owner, Sentence& why) {
  const int folder = open(logs_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) {
    say(why, "folder of output files %s: %s: create it", logs_dir, std::strerror(errno));
    return -1;
  }
  open_how how{};
  how.flags = O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_CLOEXEC | O_NONBLOCK;
  how.mode = handed_mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  const int fd = static_cast<int>(syscall(SYS_openat2, folder, path, &how, sizeof how));
  const int error = errno;
  close(folder);
  if (fd < 0) {
    say(why, "output file %s/%s: %s: create its folder, without symbolic links", logs_dir, path,
        std::strerror(error));
    return -1;
  }
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1) {
    say(why, "output file %s/%s: not a plain file with one name: remove it", logs_dir, path);
    close(fd);
    return -1;
  }
  if (status.st_uid != owner && fchown(fd, owner, static_cast<gid_t>(-1)) != 0) {
    say(why, "output file %s/%s: cannot be handed to uid %u: %s", logs_dir, path, owner,
        std::strerror(errno));
    close(fd);
    return -1;
  }
  return made_blocking(fd);
}

int open_log(const Spec& spec, const char* path, Sentence& why) {
  if (!is_below_logs(spec, path)) return -2;
  const mode_t before = umask(0022);
  const int fd =
      open_handed_output(path + std::strlen(spec.logs_dir) + 1, spec.logs_dir, spec.uid, why);
  umask(before);
  return fd;
}

void explain_exec(const char* named, const char* program, int error, const Spec& spec,
                  Sentence& why) {
  switch (error) {
    case ENOENT:
      if (access(program, F_OK) == 0) {
        say(why,
            "%s: the interpreter of its first line, or its loader, is missing on this host: "
            "install it or correct the line",
            named);
      } else {
        say(why, "%s: no such file: check the path or the image", named);
      }
      break;
    case EACCES: {
      struct stat status;
      if (stat(program, &status) == 0 && S_ISDIR(status.st_mode)) {
        say(why, "%s: is a folder: name a program in it", named);
      } else if (stat(program, &status) == 0) {
        say(why,
            "%s: not executable for user %s (uid %u): chmod +x it, or run it through its "
            "interpreter",
            named, spec.user, spec.uid);
      } else {
        say(why, "%s: user %s (uid %u) may not enter its folder: change the folder's permissions",
            named, spec.user, spec.uid);
      }
      break;
    }
    case ENOEXEC:
      say(why,
          "%s: neither a program for this machine nor a script with a #! line: add the line or "
          "run it through its interpreter",
          named);
      break;
    case E2BIG:
      say(why, "%s: arguments and environment are larger than the kernel takes: shorten them",
          named);
      break;
    case EAGAIN:
      say(why, "%s: user %s (uid %u) has as many processes as its limit allows: end some", named,
          spec.user, spec.uid);
      break;
    default: say(why, "%s: cannot be executed: %s", named, std::strerror(error)); break;
  }
}

void become_job(const Spec& spec, const char* joined, int release_fd, int report_fd) {
  Sentence why;
  reset_signals();
  setsid();
  if (!join_cgroups(spec, joined, why)) give_up(report_fd, why);
  (void)write_all(report_fd, joined_word);
  char byte = 0;
  ssize_t got = 0;
  do {
    got = read(release_fd, &byte, 1);
  } while (got < 0 && errno == EINTR);
  if (got != 1) _exit(127);

  set_limits();
  umask(0022);
  if (!become_user(spec, why)) give_up(report_fd, why);
  // Outputs may be relative to nothing: the launcher insists on absolute paths.
  if (!enter_workdir(spec, why)) give_up(report_fd, why);
  if (!open_outputs(spec, why)) give_up(report_fd, why);
  char path[4096];
  if (!find_program(spec, path, sizeof path, why)) give_up(report_fd, why);
  close_others_on_exec();
  execve(path, spec.argv, spec.env);
  explain_exec(spec.argv[0], path, errno, spec, why);
  give_up(report_fd, why);
}

}  // namespace takt::shim
