#include "core/replay/node_agent.h"

namespace takt::replay {
namespace {

constexpr Duration kLookInterval = seconds(2);
constexpr std::size_t kReportsRemembered = 200;  // a lease that answers an older one says nothing

}  // namespace

NodeAgent::NodeAgent(Node node, std::uint64_t seed, Instant truth, Witness& witness,
                     std::optional<Duration> lease)
    : machine_(std::move(node), seed, truth, witness), lease_(lease) {
  away_ = truth;
}

void NodeAgent::advance(Instant truth, Network& network) {
  machine_.advance(truth);
  if (!machine_.up()) return;
  if (book_ && boot_id_ != machine_.boot_id()) {  // the host was restarted under it
    book_.reset();
    away_ = truth;
  }
  std::vector<control::Effect> arrived = network.effects(machine_.id(), truth);
  if (!book_) {
    if (away_ && truth < *away_) return;  // nobody is there to take them
    begin(truth);
    arrived.clear();
  }
  for (const control::Effect& effect : arrived)
    std::visit([&](const auto& e) { carry_out(e, truth); }, effect);
  const bool looked = look(truth);
  if (looked || !arrived.empty()) report(truth, network);
}

void NodeAgent::begin(Instant truth) {
  boot_id_ = machine_.boot_id();
  life_ = static_cast<std::uint64_t>(machine_.clock.since_boot(truth).us) + 1;
  book_.emplace(life_);
  away_.reset();
  looks_ = 0;
  look_asked_ = true;
  made_.clear();
}

void NodeAgent::die(Instant truth, Duration pause) {
  book_.reset();
  away_ = truth + pause;
  machine_.agent_died();
}

void NodeAgent::heal(Instant truth) {
  if (away_) away_ = truth;
  machine_.heal(truth);
}

void NodeAgent::carry_out(const control::Start& start, Instant truth) {
  if (!book_->obeys(start, boot_id_)) return;
  if (lease_ && machine_.lease_lapsed(truth)) return;  // it is sent again when it is wanted
  if (!machine_.start(start.order, truth))
    book_->close(start.order.attempt, start.order.generation, ExitCause::start_failed,
                 "the records folder is full", machine_.clock.wall(truth));
}

void NodeAgent::carry_out(const control::Stop& stop, Instant truth) {
  if (book_->closed(stop.attempt)) return;
  machine_.stop(stop.attempt, stop.grace, truth);
  if (!machine_.knows(stop.attempt))
    book_->close(stop.attempt, stop.generation, ExitCause::lost, "stopped before it started",
                 machine_.clock.wall(truth));
}

void NodeAgent::carry_out(const control::Forget& forget, Instant) {
  book_->forget(forget.attempt);
  (void)machine_.forget(forget.attempt);
}

void NodeAgent::carry_out(const control::Renew& renew, Instant) {
  if (!lease_ || renew.basis.boot_id != boot_id_ || renew.basis.life != life_) return;
  const auto made = made_.find(renew.basis.sequence);
  if (made != made_.end()) machine_.lease(made->second + *lease_);
}

bool NodeAgent::look(Instant truth) {
  if (!look_asked_ && truth < next_look_) return false;
  look_asked_ = false;
  next_look_ = truth + kLookInterval;
  ++looks_;
  seen_ = machine_.look(truth);
  seen_at_ = machine_.clock.wall(truth);
  return true;
}

void NodeAgent::report(Instant truth, Network& network) {
  control::NodeReport report;
  report.at = seen_at_;
  report.made = machine_.clock.wall(truth);
  report.node = seen_;
  report.attempts = machine_.scan(truth);
  book_->sign(
      report, {looks_, seen_},
      [this] {
        look_asked_ = true;
        return looks_ + 1;
      },
      [this](AttemptId id) { return machine_.devices(id); });
  made_[report.sequence] = machine_.clock.since_boot(truth);
  if (made_.size() > kReportsRemembered) made_.erase(made_.begin());
  network.to_controller(std::move(report), truth);
}

}  // namespace takt::replay
