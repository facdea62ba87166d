#include "core/replay/placing_engine.h"

#include <algorithm>

namespace takt::replay {
namespace {

using control::AttemptPhase;

constexpr Duration kPlacing = seconds(3);  // between two rounds of its scheduler
constexpr Duration kReporting = seconds(2);
// A hand-over that answers an older list is dropped: what it is about may have run and be
// forgotten.
constexpr Duration kStartValid = seconds(60);

}  // namespace

PlacingEngine::PlacingEngine(Node node, std::uint64_t seed, Instant truth, Witness& witness)
    : machine_(std::move(node), seed, truth, witness),
      random_(Random(seed).fork("placing")),
      away_(truth) {}

void PlacingEngine::advance(Instant truth, Network& network) {
  machine_.advance(truth);
  const auto arrived = network.effects(machine_.id(), truth);
  if (away_ && truth < *away_) return;  // nobody takes them
  if (away_) begin(truth);
  for (const control::Effect& effect : arrived)
    std::visit([&](const auto& e) { carry_out(e, truth); }, effect);
  follow(truth);
  if (machine_.up() && truth >= next_placing_) place_some(truth);
  if (truth >= next_report_) report(truth, network);
}

void PlacingEngine::begin(Instant truth) {
  away_.reset();
  ++life_;
  sequence_ = 0;
  made_.clear();
  next_report_ = truth;
}

void PlacingEngine::die(Instant truth, Duration pause) { away_ = truth + pause; }

void PlacingEngine::heal(Instant truth) {
  if (away_) away_ = truth;
  machine_.heal(truth);
}

void PlacingEngine::carry_out(const control::Start& start, Instant truth) {
  const auto made = made_.find(start.basis.sequence);
  if (start.basis.life != life_ || made == made_.end() || truth - made->second > kStartValid)
    return;  // it is handed over again when it is wanted
  auto [it, added] = entries_.try_emplace(start.order.attempt);
  if (!added) return;
  Entry& entry = it->second;
  entry.order = start.order;
  entry.shows = truth + random_.between({}, seconds(5));
  entry.seen.attempt = start.order.attempt;
  entry.seen.generation = start.order.generation;
  entry.seen.phase = AttemptPhase::queued;
}

void PlacingEngine::carry_out(const control::Stop& stop, Instant truth) {
  const auto it = entries_.find(stop.attempt);
  if (it == entries_.end() || it->second.ended) return;
  if (it->second.placed)
    machine_.stop(stop.attempt, stop.grace, truth);
  else
    never_runs(it->second, "cancelled before it started", truth);
}

void PlacingEngine::never_runs(Entry& entry, const std::string& why, Instant truth) {
  entry.seen.phase = AttemptPhase::exited;
  entry.seen.exit.emplace();
  entry.seen.exit->cause = ExitCause::lost;
  entry.seen.exit->message = why;
  entry.seen.ended = machine_.clock.wall(truth);
  entry.seen.processes_gone = true;
  entry.ended = truth;
}

// First come, first served; who finds no room lets those behind it pass, as with backfill.
void PlacingEngine::place_some(Instant truth) {
  next_placing_ = truth + kPlacing;
  for (auto& [id, entry] : entries_) {
    if (entry.placed || entry.ended) continue;
    auto grant = room_for(entry, machine_.look(truth));
    if (!grant) continue;
    entry.order.grant = *grant;
    if (!machine_.start(entry.order, truth)) continue;
    entry.placed = true;
    entry.seen.placed = std::move(grant);
  }
}

std::optional<Grant> PlacingEngine::room_for(const Entry& entry, const Node& node) const {
  const GpuRequest& asked = entry.order.gpus;
  const int count = asked.count ? *asked.count : asked.memory ? 1 : 0;
  Grant grant = entry.order.grant;
  grant.devices.clear();
  for (const Gpu& gpu : node.gpus) {
    if (static_cast<int>(grant.devices.size()) == count) break;
    const bool taken = std::any_of(entries_.begin(), entries_.end(), [&](const auto& other) {
      const Entry& e = other.second;
      return e.placed && !e.ended &&
             std::any_of(e.order.grant.devices.begin(), e.order.grant.devices.end(),
                         [&](const DeviceGrant& d) { return d.gpu == gpu.uuid; });
    });
    if (taken || gpu.health != GpuHealth::ok || !gpu.processes || !gpu.processes->empty() ||
        (asked.memory && *asked.memory > *gpu.memory_total))
      continue;
    grant.devices.push_back({DeviceKind::whole_gpu, gpu.uuid, gpu.uuid, *gpu.memory_total, 100});
  }
  if (static_cast<int>(grant.devices.size()) < count) return std::nullopt;
  return grant;
}

// What became of those that were placed; those whose machine lost power have failed with it.
void PlacingEngine::follow(Instant truth) {
  std::map<AttemptId, control::AttemptSeen> there;
  for (control::AttemptSeen& seen : machine_.scan(truth)) there[seen.attempt] = std::move(seen);
  for (auto& [id, entry] : entries_) {
    if (!entry.placed || entry.ended) continue;
    const auto it = there.find(id);
    if (it == there.end()) {
      never_runs(entry, "its node failed", truth);
      continue;
    }
    auto placed = std::move(entry.seen.placed);
    entry.seen = std::move(it->second);
    entry.seen.placed = std::move(placed);
    if (entry.seen.phase == AttemptPhase::exited && entry.seen.processes_gone) entry.ended = truth;
  }
  std::erase_if(entries_, [&](const auto& e) {
    const bool old = e.second.ended && truth - *e.second.ended > kRemembers;
    if (old) (void)machine_.forget(e.first);
    return old;
  });
}

void PlacingEngine::report(Instant truth, Network& network) {
  next_report_ = truth + kReporting;
  control::NodeReport report;
  report.life = life_;
  report.sequence = ++sequence_;
  report.at = report.made = machine_.clock.wall(truth);
  report.node = machine_.look(truth);
  report.node.boot_id = "";  // what it knows outlives its restarts
  for (const auto& [id, entry] : entries_)
    if (entry.shows <= truth) report.attempts.push_back(entry.seen);
  made_[sequence_] = truth;
  if (made_.size() > 200) made_.erase(made_.begin());
  network.to_controller(std::move(report), truth);
}

}  // namespace takt::replay
