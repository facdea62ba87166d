#include "app/agent/agent.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdio>

#include "app/agent/sampler.h"
#include "core/base/fault_point.h"
#include "core/control/agent_book.h"
#include "edge/codec/agent_json.h"
#include "edge/device/host_facts.h"
#include "edge/engine/frame_channel.h"

namespace takt::agent {
namespace {

constexpr Duration kHeldBackMax = milliseconds(20);  // a report waits for a look

class Agent {
 public:
  Agent(AgentOptions options, std::unique_ptr<launch::Launcher> launcher)
      : channel_(options.channel_fd, codec::agent_frame_bytes_max),
        version_(options.version),
        launcher_(std::move(launcher)),
        sampler_(
            device::DeviceProbe::open(options.probe), [this] { return launcher_->pids(); },
            options.sample_interval, ready_) {}
  ~Agent() { ::close(ready_); }

  int run() {
    if (!channel_.write(codec::encode_hello(version_), seconds(10))) return 0;
    while (true) {
      pollfd fds[3] = {{channel_.fd(), POLLIN, 0},
                       {sampled_ ? launcher_->event_fd() : -1, POLLIN, 0},
                       {ready_, POLLIN, 0}};
      if (::poll(fds, 3, held_back_ ? static_cast<int>(kHeldBackMax.us / 1000) : 1000) < 0)
        continue;
      changed_ = changed_ || fds[1].revents != 0;
      if (fds[0].revents != 0) {
        auto frames = channel_.read_available();
        if (!frames) return 0;  // the controller is gone
        for (const std::string& frame : *frames)
          if (!obey(frame)) return 1;
      }
      const bool looked = fds[2].revents != 0 && take_sample();
      if ((changed_ || looked) && sampled_ && !report(looked)) return 0;
    }
  }

 private:
  // False: the controller speaks otherwise.
  bool obey(const std::string& frame) {
    if (!greeted_) {
      const auto fits = codec::check_hello(frame, version_, "the server", "this node agent");
      if (!fits) std::fprintf(stderr, "takt agent: %s\n", fits.error().message.c_str());
      greeted_ = fits.has_value();
      return greeted_;
    }
    auto effect = codec::decode_effect(frame);
    if (!effect) {
      std::fprintf(stderr, "takt agent: %s\n", effect.error().message.c_str());
      return true;
    }
    fault_point("agent.before-effect");
    std::visit([this](const auto& e) { carry_out(e); }, *effect);
    fault_point("agent.after-effect");
    return true;
  }

  void carry_out(const control::Start& start) {
    const AttemptId id = start.order.attempt;
    if (!book_.obeys(start, boot_id())) return;
    const auto ok = launcher_->start(start.order);
    if (ok) return;
    if (ok.error().kind == ErrorKind::conflict) {
      std::fprintf(stderr, "takt agent: attempt %s: %s\n", to_string(id).c_str(),
                   ok.error().message.c_str());
      return;
    }
    changed_ = true;
    book_.close(id, start.order.generation, ExitCause::start_failed, ok.error().message,
                device::wall_clock());
  }

  // Of the last sample: starts answer reports, and each has one.
  std::string boot_id() const { return sampled_ ? sampled_->node.boot_id : ""; }

  // This agent gives no lease: its host is the controller's too (EngineInfo::lease).
  void carry_out(const control::Renew&) {}

  // A stop for an attempt that never arrived here is answered too, so that the controller can close
  // it; a start that comes later is ignored. One that is known in any way is not that: a shim may
  // be on its way, and only the launcher can say that it will start nothing.
  void carry_out(const control::Stop& stop) {
    changed_ = true;
    if (book_.closed(stop.attempt)) return;
    const auto ok = launcher_->stop(stop.attempt, stop.grace);
    if (!ok)
      std::fprintf(stderr, "takt agent: attempt %s: %s\n", to_string(stop.attempt).c_str(),
                   ok.error().message.c_str());
    if (!launcher_->knows(stop.attempt))
      book_.close(stop.attempt, stop.generation, ExitCause::lost, "stopped before it started",
                  device::wall_clock());
  }

  void carry_out(const control::Forget& forget) {
    book_.forget(forget.attempt);
    (void)launcher_->forget(forget.attempt);
  }

  bool take_sample() {
    std::uint64_t count = 0;
    (void)!::read(ready_, &count, sizeof count);
    auto sample = sampler_.take();
    if (!sample) return false;
    sampled_ = std::move(sample);
    const auto notes = launcher_->notes();
    sampled_->node.notes.insert(sampled_->node.notes.end(), notes.begin(), notes.end());
    return true;
  }

  // Where an attempt ended just now and a quick look at the devices is under way, its end and the
  // proof that nothing is left are told together, unless the look takes its time. `at_once`: it is
  // told as it is.
  bool report(bool at_once) {
    control::NodeReport report;
    report.at = sampled_->at;
    report.made = device::wall_clock();
    report.node = sampled_->node;
    report.attempts = launcher_->scan();
    book_.sign(
        report, {sampled_->number, sampled_->node},
        [this] { return asked_look_ = sampler_.request(); },
        [this](AttemptId id) { return launcher_->devices(id); });
    const bool looking = asked_look_ > sampled_->number;
    if (looking && !held_back_) held_back_ = device::since_boot();
    if (looking && !at_once && device::since_boot() - *held_back_ < kHeldBackMax) return true;
    held_back_.reset();
    changed_ = false;
    fault_point("agent.before-report");
    const auto ok = channel_.write(codec::encode_report(report), seconds(10));
    fault_point("agent.after-report");
    if (!ok) std::fprintf(stderr, "takt agent: %s\n", ok.error().message.c_str());
    return ok.has_value();
  }

  int ready_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  engine::FrameChannel channel_;
  const std::string version_;
  bool greeted_ = false;  // the controller has said who it is
  std::unique_ptr<launch::Launcher> launcher_;
  Sampler sampler_;
  std::optional<Sample> sampled_;
  // What people wait for has changed since the last report. Starts and what is forgotten are not:
  // the one shows itself soon, of the other nobody has to hear at once.
  bool changed_ = false;
  std::optional<Duration> held_back_;  // a report waits for a look, since then
  std::uint64_t asked_look_ = 0;       // the newest that was asked for
  control::AgentBook book_{static_cast<std::uint64_t>(device::since_boot().us)};
};

}  // namespace

int run_agent(AgentOptions options) {
  auto launcher = launch::Launcher::open(options.launcher);
  if (!launcher) {
    std::fprintf(stderr, "takt agent: %s\n", launcher.error().message.c_str());
    return 1;
  }
  return Agent(std::move(options), std::move(*launcher)).run();
}

}  // namespace takt::agent
