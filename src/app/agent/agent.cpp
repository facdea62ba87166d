#include "app/agent/agent.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "app/agent/sampler.h"
#include "core/base/fault_point.h"
#include "edge/codec/agent_json.h"
#include "edge/device/host_facts.h"
#include "edge/engine/frame_channel.h"

namespace takt::agent {
namespace {

// Reasons for which a driver will never tell who is on a GPU. What it cannot tell just now proves
// nothing.
bool will_never_tell(MissingKind kind) {
  return kind == MissingKind::not_supported || kind == MissingKind::not_permitted ||
         kind == MissingKind::device_lost;
}

// Nobody of the attempt is on any device, as far as anybody can know.
bool shows_none_of(const Node& node, AttemptId id, const std::vector<std::string>& granted) {
  return std::none_of(node.gpus.begin(), node.gpus.end(), [&](const Gpu& gpu) {
    if (gpu.processes)
      return std::any_of(gpu.processes->begin(), gpu.processes->end(),
                         [&](const GpuProcess& p) { return p.attempt == id; });
    const bool is_granted =
        std::find(granted.begin(), granted.end(), gpu.uuid.value) != granted.end();
    return is_granted && !will_never_tell(gpu.processes.error().kind);
  });
}

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
      if (::poll(fds, 3, 1000) < 0) continue;
      bool changed = false;
      if (fds[0].revents != 0) {
        auto frames = channel_.read_available();
        if (!frames) return 0;  // the controller is gone
        for (const std::string& frame : *frames)
          if (!obey(frame)) return 1;
        changed = !frames->empty();
      }
      if (fds[2].revents != 0) changed = take_sample() || changed;
      changed = fds[1].revents != 0 || changed;
      if (changed && sampled_ && !report()) return 0;
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
    if (unstarted_.count(id) != 0 || too_old(start.basis)) return;
    const auto ok = launcher_->start(start.order);
    if (ok) return;
    if (ok.error().kind == ErrorKind::conflict) {
      std::fprintf(stderr, "takt agent: attempt %s: %s\n", to_string(id).c_str(),
                   ok.error().message.c_str());
      return;
    }
    never_started(id, start.order.generation, ExitCause::start_failed, ok.error().message);
  }

  // The report that this start answers was made before something was forgotten since, or in another
  // life: the attempt may have been here and be over. If it is still wanted, it is sent again.
  bool too_old(const control::Basis& basis) const {
    if (sampled_ && basis.boot_id != sampled_->node.boot_id) return true;
    return basis.life != life_ || basis.sequence < forgotten_at_;
  }

  // This agent gives no lease: its host is the controller's too (EngineInfo::lease).
  void carry_out(const control::Renew&) {}

  // A stop for an attempt that never arrived here is answered too, so that the controller can close
  // it; a start that comes later is ignored. One that is known in any way is not that: a shim may
  // be on its way, and only the launcher can say that it will start nothing.
  void carry_out(const control::Stop& stop) {
    if (unstarted_.count(stop.attempt) != 0) return;
    const auto ok = launcher_->stop(stop.attempt, stop.grace);
    if (!ok)
      std::fprintf(stderr, "takt agent: attempt %s: %s\n", to_string(stop.attempt).c_str(),
                   ok.error().message.c_str());
    if (!launcher_->knows(stop.attempt))
      never_started(stop.attempt, stop.generation, ExitCause::lost, "stopped before it started");
  }

  void carry_out(const control::Forget& forget) {
    forgotten_at_ = sequence_ + 1;
    unstarted_.erase(forget.attempt);
    proof_.erase(forget.attempt);
    (void)launcher_->forget(forget.attempt);
  }

  void never_started(AttemptId id, std::uint64_t generation, ExitCause cause, std::string why) {
    control::AttemptSeen seen;
    seen.attempt = id;
    seen.generation = generation;
    seen.phase = control::AttemptPhase::exited;
    seen.ended = device::wall_clock();
    seen.exit.emplace();
    seen.exit->cause = cause;
    seen.exit->message = std::move(why);
    seen.processes_gone = true;
    unstarted_[id] = std::move(seen);
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

  // An ended attempt counts as gone only when a look at the devices that began after its end has
  // been taken, and shows no process of it: what the driver showed before proves nothing.
  void prove(control::AttemptSeen& seen) {
    if (seen.phase != control::AttemptPhase::exited || !seen.processes_gone) return;
    auto it = proof_.find(seen.attempt);
    if (it == proof_.end()) {
      Proof proof{sampler_.request(), launcher_->devices(seen.attempt)};
      it = proof_.emplace(seen.attempt, std::move(proof)).first;
    }
    const Proof& proof = it->second;
    seen.processes_gone = sampled_->number >= proof.sample &&
                          shows_none_of(sampled_->node, seen.attempt, proof.devices);
  }

  bool report() {
    control::NodeReport report;
    report.life = life_;
    report.sequence = ++sequence_;
    report.at = sampled_->at;
    report.node = sampled_->node;
    report.attempts = launcher_->scan();
    for (const auto& [id, seen] : unstarted_) report.attempts.push_back(seen);
    for (control::AttemptSeen& seen : report.attempts) prove(seen);
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
  // Grows from agent to agent of one boot.
  const std::uint64_t life_ = static_cast<std::uint64_t>(device::since_boot().us);
  std::uint64_t sequence_ = 0;
  std::uint64_t forgotten_at_ = 0;  // starts that answer an older report are dropped
  std::map<AttemptId, control::AttemptSeen> unstarted_;
  struct Proof {
    std::uint64_t sample = 0;          // the first one that began after the end
    std::vector<std::string> devices;  // that must be seen to be empty
  };
  std::map<AttemptId, Proof> proof_;
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
