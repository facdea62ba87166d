#pragma once
// Where things are on this machine: state, sockets, programs. The only place that reads takt's
// environment variables (TAKT_SOCKET, TAKT_NVML) and the XDG folders.
#include <string>

#include "core/base/result.h"

namespace takt::cli {

struct ServePlaces {
  std::string state_dir;    // durable
  std::string runtime_dir;  // on tmpfs where there is one
  std::string socket_path;
};

// Root: /var/lib/takt and /run/takt. With `user`: the user's XDG folders, else ~/.local/state/takt
// and a folder of its own below /dev/shm. Not empty arguments win.
Result<ServePlaces> serve_places(bool user, const std::string& state_dir,
                                 const std::string& runtime_dir, const std::string& socket_path);

// Which server a command speaks to: TAKT_SOCKET, else the user's own, else the machine's.
std::string client_socket();

// The NVML library: TAKT_NVML, else the driver's.
std::string nvml_library();

// A program that was installed or built beside this one.
std::string program_beside(const std::string& name);
std::string own_program();

}  // namespace takt::cli
