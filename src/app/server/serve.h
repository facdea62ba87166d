#pragma once
// `takt serve`: puts the controller, the engine and the HTTP server together and runs until a
// signal.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/quantities.h"
#include "core/base/result.h"

namespace takt::server {

struct ServeOptions {
  std::string version;
  std::string state_dir;    // journal.db, telemetry.db, logs/: durable
  std::string runtime_dir;  // socket, shims' records: best on tmpfs
  std::string socket_path;
  std::string policy_file;   // empty: built-in
  bool accept_loss = false;  // open a journal of which acknowledged records are missing
  std::vector<std::string> agent_command;  // "{fd}" stands for the socket, "{records}"
                                           // for the folder of shim records
  bool multi_user = false;                 // root's server: everybody may connect
  Duration sample_interval = seconds(1);
  std::function<void(const std::string&)> note;   // sentences for the log
  std::function<void(const std::string&)> ready;  // once, when commands are taken; gets a summary
};

// Blocks SIGTERM and SIGINT in the calling thread and returns when one came: 0. An error: nothing
// was started and nothing is left.
Result<int> serve(const ServeOptions& options);

}  // namespace takt::server
