// takt doctor: what works, what does not, and the next step.
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>

#include "app/cli/commands.h"
#include "app/cli/output.h"
#include "app/cli/places.h"
#include "app/cli/session.h"
#include "edge/codec/api_json.h"
#include "edge/device/device_probe.h"
#include "edge/http/message.h"
#include "takt_version.h"

namespace takt::cli {
namespace {

struct Check {
  std::string name;
  bool fine = true;
  std::string detail;  // a sentence
};

Instant wall_clock() {
  return {std::chrono::duration_cast<std::chrono::microseconds>(
              std::chrono::system_clock::now().time_since_epoch())
              .count()};
}

void check_devices(std::vector<Check>& checks) {
  device::ProbeOptions options;
  options.nvml_path = nvml_library();
  const Node node = device::DeviceProbe::open(options)->read(wall_clock());
  if (!node.driver_problem.empty()) {
    checks.push_back({"driver", false, node.driver_problem});
    return;
  }
  checks.push_back({"driver", true,
                    fmt::format("version {}{}", node.driver_version,
                                node.emulated ? ", emulated: these GPUs are not real" : "")});
  for (const Gpu& gpu : node.gpus)
    checks.push_back({fmt::format("gpu{}", gpu.index), gpu.health == GpuHealth::ok,
                      gpu.health == GpuHealth::ok
                          ? fmt::format("{} answers", gpu.model)
                          : fmt::format("{}: {}", to_string(gpu.health), gpu.health_reason)});
  for (const std::string& note : node.notes) checks.push_back({"host", true, note});
}

void check_server(std::vector<Check>& checks) {
  http::Client client(client_socket());
  auto answer = client.call("GET", "/v1/status", "", seconds(5));
  if (!answer) {
    checks.push_back({"server", false, answer.error().message});
    return;
  }
  if (answer->status >= 400) {
    const auto sentence = codec::read_error(answer->body);
    checks.push_back(
        {"server", false, sentence ? *sentence : fmt::format("it answered {}", answer->status)});
    return;
  }
  auto status = codec::read_status(answer->body);
  if (!status) {
    checks.push_back({"server", false, status.error().message});
    return;
  }
  checks.push_back({"server", status->problem.empty(),
                    status->problem.empty()
                        ? fmt::format("answers at {} (pid {}, policy {})", client_socket(),
                                      status->pid, status->policy_revision)
                        : status->problem});
  checks.push_back({"node agent", status->nodes_reachable > 0,
                    status->nodes_reachable > 0
                        ? fmt::format("{} of {} node{} reported lately", status->nodes_reachable,
                                      status->nodes, status->nodes == 1 ? "" : "s")
                        : "no node has reported lately: the server's log says why"});
  checks.push_back({"you", true,
                    fmt::format("{}, {}", status->caller,
                                status->caller_admin ? "may cancel everybody's jobs"
                                                     : "may cancel your own jobs")});
}

void check_programs(std::vector<Check>& checks) {
  const std::string shim = program_beside("takt-shim");
  const bool there = ::access(shim.c_str(), X_OK) == 0;
  checks.push_back(
      {"takt-shim", there, there ? shim : shim + " is missing: jobs cannot start; reinstall takt"});
}

}  // namespace

int doctor(bool json) {
  std::vector<Check> checks;
  check_programs(checks);
  check_devices(checks);
  check_server(checks);
  bool fine = true;
  std::string list;
  std::string text;
  for (const Check& check : checks) {
    fine = fine && check.fine;
    if (json)
      list +=
          fmt::format(R"({}{{"name": {}, "fine": {}, "detail": {}}})", list.empty() ? "" : ", ",
                      http::json_quoted(check.name), check.fine, http::json_quoted(check.detail));
    else
      text += fmt::format("{:<4} {:<11} {}\n", check.fine ? "ok" : "BAD", check.name, check.detail);
  }
  if (json)
    text = fmt::format(R"({{"takt": "{}", "warnings": [], "fine": {}, "checks": [{}]}})"
                       "\n",
                       TAKT_VERSION, fine, list);
  return put(text, fine ? kExitFine : kExitFailed);
}

}  // namespace takt::cli
