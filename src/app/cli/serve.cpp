// takt serve, and the agent that it starts.
#include "app/server/serve.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>

#include "app/agent/agent.h"
#include "app/cli/commands.h"
#include "app/cli/places.h"
#include "app/cli/session.h"
#include "core/model/quantity_text.h"
#include "takt_version.h"

namespace takt::cli {

int serve(const ServeFlags& flags) {
  const auto sample = parse_duration(flags.sample);
  if (!sample || *sample < milliseconds(50))
    return complain(
        {ErrorKind::invalid,
         fmt::format("--sample: '{}' is not a duration of at least 50ms", flags.sample)});
  const auto places =
      serve_places(flags.user, flags.state_dir, flags.runtime_dir, flags.socket_path);
  if (!places) return complain(places.error());
  server::ServeOptions options;
  options.version = TAKT_VERSION;
  options.state_dir = places->state_dir;
  options.runtime_dir = places->runtime_dir;
  options.socket_path = places->socket_path;
  options.policy_file = flags.policy_file;
  options.accept_loss = flags.accept_loss;
  options.multi_user = ::geteuid() == 0 && !flags.user;
  options.sample_interval = *sample;
  options.agent_command = {own_program(), "agent",     "--fd",   "{fd}",
                           "--records",   "{records}", "--logs", places->state_dir + "/logs",
                           "--sample",    flags.sample};
  options.note = [](const std::string& sentence) { tell(sentence); };
  options.ready = [](const std::string& summary) {
    std::puts(summary.c_str());
    std::fflush(stdout);
  };
  auto code = server::serve(options);
  if (!code) {
    tell(code.error().message);
    return code.error().kind == ErrorKind::invalid ? kExitUsage : kExitFailed;
  }
  return *code;
}

int agent(const AgentFlags& flags) {
  const auto sample = parse_duration(flags.sample);
  agent::AgentOptions options;
  options.channel_fd = flags.fd;
  options.version = TAKT_VERSION;
  options.launcher.records_dir = flags.records_dir;
  options.launcher.shim_path = program_beside("takt-shim");
  options.launcher.logs_dir = flags.logs_dir;
  options.probe.nvml_path = nvml_library();
  if (sample) options.sample_interval = *sample;
  const int code = agent::run_agent(std::move(options));
  // Without the exit handlers: a call into a sick driver may still hang in a thread of its own, and
  // would race with them.
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace takt::cli
