// takt gpus: from the server, or straight from the devices where none runs.
#include <fmt/core.h>
#include <sys/stat.h>
#include <time.h>

#include <chrono>

#include "app/cli/commands.h"
#include "app/cli/output.h"
#include "app/cli/places.h"
#include "app/cli/session.h"
#include "app/report/report.h"
#include "edge/codec/api_json.h"
#include "edge/device/device_probe.h"
#include "takt_version.h"

namespace takt::cli {
namespace {

Instant wall_clock() {
  return {std::chrono::duration_cast<std::chrono::microseconds>(
              std::chrono::system_clock::now().time_since_epoch())
              .count()};
}

bool server_answers() {
  http::Client client(client_socket());
  return client.call("GET", "/v1/version", "", seconds(2)).has_value();
}

int read_devices(bool json) {
  device::ProbeOptions options;
  options.nvml_path = nvml_library();
  const auto probe = device::DeviceProbe::open(options);
  const std::vector<control::NodeView> nodes = {{probe->read(wall_clock()), wall_clock(), true}};
  const std::string note = "no server runs here: these were read from the devices directly";
  std::string text;
  if (json) {
    text = codec::gpus_json({TAKT_VERSION, {note}}, nodes) + "\n";
  } else {
    tell(note);
    report::Screen screen;
    const Query query = screen_query("text");
    screen.width = std::stoi(query.at("width"));
    screen.colour = query.at("colour") == "true";
    text = report::gpus_table(nodes, wall_clock(), screen);
  }
  return put(text);
}

}  // namespace

int gpus(bool json) {
  if (!server_answers()) return read_devices(json);
  Session session;
  return print(session, "/v1/gpus", {}, json);
}

}  // namespace takt::cli
