// Stands in for the node agent: `fake_agent FD WORD FILE`. WORD says how it behaves; FILE gets a
// line for each effect that arrives, and its pid at the start.
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "edge/codec/agent_json.h"
#include "edge/engine/frame_channel.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string behaviour = argv[2];
  std::ofstream file(argv[3], std::ios::app);
  file << "pid " << ::getpid() << std::endl;
  takt::engine::FrameChannel channel(std::atoi(argv[1]), takt::codec::agent_frame_bytes_max);
  takt::control::NodeReport report;
  report.node.id = takt::NodeId("fake");
  const auto send = [&] {
    ++report.sequence;
    return channel.write(takt::codec::encode_report(report), takt::seconds(5)).has_value();
  };
  const auto say_nothing_more = [&] {
    while (channel.read_available()) ::usleep(5000);
    return 0;
  };
  if (behaviour == "exits-at-once") return 3;
  if (behaviour == "garbage") {
    (void)channel.write("this is no report", takt::seconds(5));
    return say_nothing_more();
  }
  if (behaviour == "other-release")
    (void)channel.write(R"({"protocol":7,"type":"hello","takt":"9.0.0"})", takt::seconds(5));
  else if (behaviour != "no-hello")
    (void)channel.write(takt::codec::encode_hello("0.1.0"), takt::seconds(5));
  if (!send()) return 0;
  if (behaviour == "dies-after-one") return 1;
  if (behaviour == "silent") return say_nothing_more();
  if (behaviour == "ignores-the-end")
    for (;;) ::sleep(1);
  for (;;) {
    pollfd p{channel.fd(), POLLIN, 0};
    ::poll(&p, 1, 50);
    auto frames = channel.read_available();
    if (!frames) return 0;
    for (const std::string& frame : *frames) {
      if (takt::codec::check_hello(frame, "0.1.0", "the server", "this agent")) {
        file << "hello" << std::endl;
        continue;
      }
      auto effect = takt::codec::decode_effect(frame);
      file << (effect ? "effect " + std::to_string(effect->index()) : "broken") << std::endl;
    }
    if (!send()) return 0;
  }
}
