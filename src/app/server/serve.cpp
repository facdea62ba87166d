#include "app/server/serve.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "app/server/api.h"
#include "app/server/folder_lock.h"
#include "app/server/watched_journal.h"
#include "edge/codec/policy_yaml.h"
#include "edge/device/host_facts.h"
#include "edge/engine/local_engine.h"
#include "edge/http/server.h"
#include "edge/store/journal.h"

namespace takt::server {
namespace {

using device::wall_clock;

control::ClockReading read_clocks() {
  static const std::string boot_id = device::read_host_facts().boot_id;
  return {wall_clock(), device::since_boot(), boot_id};
}

// For a state folder that is new: 64 bits of the kernel's randomness.
std::string fresh_identity() {
  std::uint64_t bits = 0;
  if (::getrandom(&bits, sizeof bits, 0) != static_cast<ssize_t>(sizeof bits))
    bits = static_cast<std::uint64_t>(wall_clock().us);
  return fmt::format("{:016x}", bits);
}

// Makes the folder and those above it. The mode holds for the last one only.
Result<void> make_folder(const std::string& path, mode_t mode) {
  for (std::size_t at = 1; at <= path.size(); ++at) {
    if (at != path.size() && path[at] != '/') continue;
    const std::string part = path.substr(0, at);
    if (::mkdir(part.c_str(), at == path.size() ? mode : 0755) == 0 || errno == EEXIST) continue;
    return fail(errno == EACCES || errno == EROFS ? ErrorKind::forbidden : ErrorKind::io,
                fmt::format("cannot make the folder {}: {}: choose another one with --state-dir or "
                            "--runtime-dir, or run with --user",
                            part, std::strerror(errno)));
  }
  if (::access(path.c_str(), W_OK) != 0)
    return fail(ErrorKind::forbidden,
                fmt::format("the folder {} cannot be written: {}: make it writable, or choose "
                            "another one with --state-dir or --runtime-dir",
                            path, std::strerror(errno)));
  return {};
}

Result<Policy> load_policy(const std::string& file) {
  if (file.empty()) return Policy{};
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in)
    return fail(ErrorKind::invalid, fmt::format("{}: cannot be read: {}: check the path given to "
                                                "--policy",
                                                file, std::strerror(errno)));
  return codec::parse_policy_yaml(text.str(), file);
}

std::string summary_of(const Controller& controller, const std::string& socket) {
  std::string summary;
  controller.read([&](const control::Sight& sight) {
    for (const auto& [id, seen] : sight.cluster.nodes) {
      const Node& node = seen.report.node;
      if (!node.driver_problem.empty())
        summary += fmt::format("{}: {}\n", id.value, node.driver_problem);
      summary += fmt::format("{}: {} GPU{}{}, {} CPUs\n", id.value, node.gpus.size(),
                             node.gpus.size() == 1 ? "" : "s", node.emulated ? " (emulated)" : "",
                             node.cpus);
    }
    if (sight.cluster.nodes.empty()) summary += "the node agent has not reported yet\n";
    const auto counts = control::counts(sight.state);
    if (!sight.state.jobs.empty())
      summary += fmt::format("from before: {} waiting, {} running\n", counts.waiting,
                             counts.running + counts.starting + counts.stopping);
  });
  return summary + "takt is ready: " + socket;
}

// Answers from the moment that the socket is ours, so that nobody else takes it and clients know
// that it is worth waiting; the routes come when the journal was replayed and the node was seen.
class FrontDoor {
 public:
  void open(const http::Router& router) { router_.store(&router); }
  http::Response answer(const http::Request& request) const {
    const http::Router* router = router_.load();
    if (router != nullptr) return router->route(request);
    http::Response response =
        http::error_response(503, "takt is starting: it reads its journal; try again in a moment");
    response.headers["Retry-After"] = "1";
    return response;
  }

 private:
  std::atomic<const http::Router*> router_{nullptr};
};

// What is made first and goes last.
struct Parts {
  std::unique_ptr<store::Journal> journal;
  std::unique_ptr<WatchedJournal> watched;
  std::unique_ptr<Measurements> measurements;
  std::unique_ptr<Controller> controller;
  std::unique_ptr<Archivist> archivist;
  std::unique_ptr<engine::LocalEngine> engine;
};

Result<void> open_stores(const ServeOptions& options, const Policy& policy, Parts& parts) {
  store::Journal::Options journal_options;
  journal_options.accept_loss = options.accept_loss;
  auto journal = store::Journal::open(options.state_dir + "/journal.db", journal_options);
  if (!journal) return tl::make_unexpected(journal.error());
  if (!(*journal)->opening_note().empty()) options.note((*journal)->opening_note());
  parts.journal = std::move(*journal);
  parts.watched =
      std::make_unique<WatchedJournal>(*parts.journal, options.state_dir + "/journal.db");
  std::unique_ptr<store::Telemetry> telemetry;
  if (auto opened = store::Telemetry::open(options.state_dir + "/telemetry.db"))
    telemetry = std::move(*opened);
  else
    options.note("measurements are not kept over a restart: " + opened.error().message);
  Measurements::Options measuring;
  measuring.interval = options.sample_interval;
  measuring.note = options.note;
  parts.measurements = std::make_unique<Measurements>(std::move(telemetry), measuring);
  parts.measurements->recover();

  ControllerOptions control;
  control.policy = policy;
  control.places = {options.state_dir + "/logs", options.socket_path, policy.limits.log_bytes_max};
  control.clock = wall_clock;
  control.clocks = read_clocks;
  control.identity = fresh_identity();
  control.note = options.note;
  parts.controller =
      std::make_unique<Controller>(*parts.watched, *parts.measurements, std::move(control));
  if (auto ok = parts.controller->recover(); !ok) return ok;

  std::unique_ptr<store::Archive> archive;
  if (auto opened = store::Archive::open(options.state_dir + "/archive.db"))
    archive = std::move(*opened);
  else
    options.note("finished jobs stay in the live state, those of before are not shown: " +
                 opened.error().message);
  Archivist::Options archiving;
  archiving.logs = options.state_dir + "/logs";
  archiving.clock = wall_clock;
  archiving.note = options.note;
  parts.archivist =
      std::make_unique<Archivist>(std::move(archive), *parts.controller, std::move(archiving));
  return {};
}

// The records of this state's attempts. Another state folder on this machine has its own, with the
// same numbers: its attempts are neither adopted nor ended, and their processes are respected.
Result<std::string> records_folder(const ServeOptions& options, const Controller& controller) {
  std::string folder = options.runtime_dir + "/jobs";
  controller.read([&](const control::Sight& sight) {
    if (!sight.state.identity.empty()) folder += "/" + sight.state.identity;
  });
  if (auto ok = make_folder(folder, 0700); !ok) return tl::make_unexpected(ok.error());
  return folder;
}

Result<void> start_engine(const ServeOptions& options, const Policy& policy, Parts& parts) {
  engine::LocalEngineOptions engine;
  engine.agent_command = options.agent_command;
  auto records = records_folder(options, *parts.controller);
  if (!records) return tl::make_unexpected(records.error());
  for (std::string& word : engine.agent_command)
    if (word == "{records}") word = *records;
  engine.takt_version = options.version;
  engine.silent_max = policy.node_silent_max;
  Controller* controller = parts.controller.get();
  auto started = engine::LocalEngine::start(
      engine, [controller](control::NodeReport report) { controller->report(std::move(report)); },
      options.note);
  if (!started) return tl::make_unexpected(started.error());
  parts.engine = std::move(*started);
  engine::LocalEngine* raw = parts.engine.get();
  controller->start([raw](const std::vector<control::Effect>& effects) { raw->send(effects); });
  // What the devices are is known before the first command is answered; a sick driver is not
  // waited for longer than its deadline and a little.
  (void)controller->wait([](const control::Sight& sight) { return !sight.cluster.nodes.empty(); },
                         seconds(5), {});
  return {};
}

int wait_for_signal() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ::sigaddset(&set, SIGINT);
  int got = 0;
  while (::sigwait(&set, &got) != 0) {
  }
  return got;
}

void block_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ::sigaddset(&set, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

// The machine's server lets root, and those who may cancel everybody's jobs, in when all others
// have taken what there is.
Result<std::unique_ptr<http::Server>> open_door(const ServeOptions& options, const Policy& policy,
                                                identity::Directory& directory,
                                                const FrontDoor& door) {
  http::ServerOptions http;
  http.socket_path = options.socket_path;
  http.socket_mode = options.multi_user ? 0666 : 0600;
  http.body_bytes_max = policy.limits.spec_bytes_max;
  http.connections_max = static_cast<unsigned>(policy.limits.connections_max);
  http.connections_per_user_max = static_cast<unsigned>(policy.limits.connections_per_user_max);
  http.privileged = [&directory, groups = policy.admin_groups,
                     own = ::geteuid()](std::uint32_t uid) {
    return uid == 0 || uid == own || directory.in_any_group(uid, groups);
  };
  return http::Server::start(
      std::move(http), [&door](const http::Request& request) { return door.answer(request); });
}

Result<void> make_folders(const ServeOptions& options) {
  // Jobs write into logs/ as their owners, who pass through the state folder but cannot list it.
  const mode_t passable = options.multi_user ? 0711 : 0700;
  for (const auto& [folder, mode] :
       {std::pair{options.state_dir, passable},
        {options.state_dir + "/logs", passable},
        {options.runtime_dir, options.multi_user ? mode_t{0755} : mode_t{0700}}})
    if (auto ok = make_folder(folder, mode); !ok) return ok;
  return {};
}

}  // namespace

Result<int> serve(const ServeOptions& options) {
  block_signals();  // before any thread starts, so that all inherit it
  auto policy = load_policy(options.policy_file);
  if (!policy) return tl::make_unexpected(policy.error());
  if (auto ok = make_folders(options); !ok) return tl::make_unexpected(ok.error());
  // What only one server may have comes first: the runtime folder, the socket, the journal. An
  // agent is started and jobs are touched by whoever has all three.
  auto lock = lock_runtime_folder(options.runtime_dir);
  if (!lock) return tl::make_unexpected(lock.error());
  identity::Directory directory(identity::system_accounts());
  FrontDoor door;
  std::optional<http::Router> router;
  Parts parts;
  auto server = open_door(options, *policy, directory, door);
  if (!server) return tl::make_unexpected(server.error());

  if (auto ok = open_stores(options, *policy, parts); !ok) return tl::make_unexpected(ok.error());
  if (auto ok = start_engine(options, *policy, parts); !ok) return tl::make_unexpected(ok.error());
  store::Journal* journal = parts.journal.get();
  Backups backups(options.state_dir,
                  [journal](const std::string& to) { return journal->back_up(to); });
  ApiContext context{*parts.controller, *parts.measurements,  directory,
                     options.version,   options.state_dir,    wall_clock(),
                     ::getpid(),        ::geteuid(),          wall_clock,
                     &backups,          parts.archivist.get()};
  router.emplace(make_router(context));
  door.open(*router);

  parts.archivist->start();
  options.ready(summary_of(*parts.controller, options.socket_path));
  wait_for_signal();
  (*server)->stop();
  parts.archivist->stop();
  parts.controller->stop();
  parts.engine->stop();
  return 0;
}

}  // namespace takt::server
