#include "app/cli/places.h"

#include <fmt/core.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace takt::cli {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string home() {
  std::string folder = environment("HOME");
  if (!folder.empty()) return folder;
  const passwd* entry = ::getpwuid(::geteuid());
  return entry == nullptr ? "/" : entry->pw_dir;
}

std::string user_state_dir() {
  const std::string xdg = environment("XDG_STATE_HOME");
  return (xdg.empty() ? home() + "/.local/state" : xdg) + "/takt";
}

std::string user_runtime_dir() {
  const std::string xdg = environment("XDG_RUNTIME_DIR");
  if (!xdg.empty()) return xdg + "/takt";
  return fmt::format("/dev/shm/takt-{}", ::geteuid());
}

// /dev/shm is everybody's: a folder that somebody else made there is not ours.
Result<void> check_owner(const std::string& folder) {
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) return {};  // will be made
  if (S_ISDIR(info.st_mode) && info.st_uid == ::geteuid()) return {};
  return fail(ErrorKind::forbidden,
              fmt::format("{} belongs to somebody else (uid {}): choose another folder with "
                          "--runtime-dir",
                          folder, info.st_uid));
}

}  // namespace

Result<ServePlaces> serve_places(bool user, const std::string& state_dir,
                                 const std::string& runtime_dir, const std::string& socket_path) {
  if (!user && ::geteuid() != 0 && (state_dir.empty() || runtime_dir.empty()))
    return fail(ErrorKind::invalid,
                "the machine's server runs as root: use `sudo takt serve`, or `takt serve --user` "
                "for a server of your own");
  ServePlaces places;
  places.state_dir = !state_dir.empty() ? state_dir : user ? user_state_dir() : "/var/lib/takt";
  places.runtime_dir = !runtime_dir.empty() ? runtime_dir
                       : !state_dir.empty() ? state_dir + "/run"
                       : user               ? user_runtime_dir()
                                            : "/run/takt";
  const std::string named = environment("TAKT_SOCKET");
  places.socket_path = !socket_path.empty() ? socket_path
                       : !named.empty()     ? named
                                            : places.runtime_dir + "/takt.sock";
  for (std::string* path : {&places.state_dir, &places.runtime_dir, &places.socket_path})
    if (path->front() != '/') {
      char here[PATH_MAX];
      if (::getcwd(here, sizeof here) == nullptr)
        return fail(ErrorKind::io,
                    fmt::format("cannot tell where we are: {}", std::strerror(errno)));
      *path = std::string(here) + "/" + *path;
    }
  if (auto ok = check_owner(places.runtime_dir); !ok) return tl::make_unexpected(ok.error());
  return places;
}

std::string client_socket() {
  const std::string named = environment("TAKT_SOCKET");
  if (!named.empty()) return named;
  const std::string own = user_runtime_dir() + "/takt.sock";
  struct stat info {};
  if (::lstat(own.c_str(), &info) == 0 && info.st_uid == ::geteuid()) return own;
  return "/run/takt/takt.sock";
}

std::string nvml_library() {
  const std::string named = environment("TAKT_NVML");
  return named.empty() ? "libnvidia-ml.so.1" : named;
}

std::string own_program() {
  char path[PATH_MAX];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path - 1);
  return n > 0 ? std::string(path, static_cast<std::size_t>(n)) : "takt";
}

std::string program_beside(const std::string& name) {
  const std::string self = own_program();
  return self.substr(0, self.find_last_of('/') + 1) + name;
}

}  // namespace takt::cli
