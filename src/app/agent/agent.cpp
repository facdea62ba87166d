#include "app/agent/agent.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <set>

#include "app/agent/sampler.h"
#include "edge/codec/agent_json.h"
#include "edge/engine/frame_channel.h"

namespace takt::agent {
namespace {

Instant wall_clock() {
  return {std::chrono::duration_cast<std::chrono::microseconds>(
              std::chrono::system_clock::now().time_since_epoch())
              .count()};
}

class Agent {
 public:
  Agent(AgentOptions options, std::unique_ptr<launch::Launcher> launcher)
      : channel_(options.channel_fd, codec::agent_frame_bytes_max),
        launcher_(std::move(launcher)),
        sampler_(
            device::DeviceProbe::open(options.probe), [this] { return launcher_->pids(); },
            options.sample_interval, ready_) {}
  ~Agent() { ::close(ready_); }

  int run() {
    while (true) {
      pollfd fds[3] = {{channel_.fd(), POLLIN, 0},
                       {sampled_ ? launcher_->event_fd() : -1, POLLIN, 0},
                       {ready_, POLLIN, 0}};
      if (::poll(fds, 3, 1000) < 0) continue;
      bool changed = false;
      if (fds[0].revents != 0) {
        auto frames = channel_.read_available();
        if (!frames) return 0;  // the controller is gone
        for (const std::string& frame : *frames) obey(frame);
        changed = !frames->empty();
      }
      if (fds[2].revents != 0) changed = take_sample() || changed;
      changed = fds[1].revents != 0 || changed;
      if (changed && sampled_ && !report()) return 0;
    }
  }

 private:
  void obey(const std::string& frame) {
    auto effect = codec::decode_effect(frame);
    if (!effect) {
      std::fprintf(stderr, "takt agent: %s\n", effect.error().message.c_str());
      return;
    }
    std::visit([this](const auto& e) { carry_out(e); }, *effect);
  }

  void carry_out(const control::Start& start) {
    const AttemptId id = start.order.attempt;
    if (unstarted_.count(id) != 0) return;
    const auto ok = launcher_->start(start.order);
    if (ok) return;
    if (ok.error().kind == ErrorKind::conflict) {
      std::fprintf(stderr, "takt agent: attempt %s: %s\n", to_string(id).c_str(),
                   ok.error().message.c_str());
      return;
    }
    never_started(id, start.order.generation, ExitCause::start_failed, ok.error().message);
  }

  // A stop for an attempt that never arrived here is answered too, so that the controller can close
  // it; a start that comes later is ignored.
  void carry_out(const control::Stop& stop) {
    for (const control::AttemptSeen& seen : launcher_->scan())
      if (seen.attempt == stop.attempt) {
        (void)launcher_->stop(stop.attempt, stop.grace);
        return;
      }
    if (unstarted_.count(stop.attempt) == 0)
      never_started(stop.attempt, stop.generation, ExitCause::lost, "stopped before it started");
  }

  void carry_out(const control::Forget& forget) {
    unstarted_.erase(forget.attempt);
    proof_.erase(forget.attempt);
    (void)launcher_->forget(forget.attempt);
  }

  void never_started(AttemptId id, std::uint64_t generation, ExitCause cause, std::string why) {
    control::AttemptSeen seen;
    seen.attempt = id;
    seen.generation = generation;
    seen.phase = control::AttemptPhase::exited;
    seen.ended = wall_clock();
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
  // been taken: what the driver showed before proves nothing.
  void prove(control::AttemptSeen& seen) {
    if (seen.phase != control::AttemptPhase::exited || !seen.processes_gone) return;
    const auto it = proof_.find(seen.attempt);
    if (it == proof_.end()) {
      proof_[seen.attempt] = sampler_.request();
      seen.processes_gone = false;
    } else if (sampled_->number < it->second) {
      seen.processes_gone = false;
    }
  }

  bool report() {
    control::NodeReport report;
    report.sequence = ++sequence_;
    report.at = sampled_->at;
    report.node = sampled_->node;
    report.attempts = launcher_->scan();
    for (const auto& [id, seen] : unstarted_) report.attempts.push_back(seen);
    for (control::AttemptSeen& seen : report.attempts) prove(seen);
    const auto ok = channel_.write(codec::encode_report(report), seconds(10));
    if (!ok) std::fprintf(stderr, "takt agent: %s\n", ok.error().message.c_str());
    return ok.has_value();
  }

  int ready_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  engine::FrameChannel channel_;
  std::unique_ptr<launch::Launcher> launcher_;
  Sampler sampler_;
  std::optional<Sample> sampled_;
  std::uint64_t sequence_ = 0;
  std::map<AttemptId, control::AttemptSeen> unstarted_;
  std::map<AttemptId, std::uint64_t> proof_;  // sample number that proves the devices empty
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
