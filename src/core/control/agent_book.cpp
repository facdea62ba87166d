#include "core/control/agent_book.h"

#include "core/base/planted.h"

#include <algorithm>
#include <utility>

namespace takt::control {
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

}  // namespace

bool AgentBook::obeys(const Start& start, const std::string& boot_id) const {
  const Basis& basis = start.basis;
  if (planted(Planted::late_start_obeyed)) return !closed(start.order.attempt);
  return !closed(start.order.attempt) && basis.boot_id == boot_id && basis.life == life_ &&
         basis.sequence >= forgotten_at_;
}

void AgentBook::close(AttemptId attempt, std::uint64_t generation, ExitCause cause, std::string why,
                      Instant now) {
  AttemptSeen seen;
  seen.attempt = attempt;
  seen.generation = generation;
  seen.phase = AttemptPhase::exited;
  seen.ended = now;
  seen.exit.emplace();
  seen.exit->cause = cause;
  seen.exit->message = std::move(why);
  seen.processes_gone = true;
  closed_[attempt] = std::move(seen);
}

void AgentBook::forget(AttemptId attempt) {
  forgotten_at_ = sequence_ + 1;
  closed_.erase(attempt);
  proofs_.erase(attempt);
}

void AgentBook::sign(NodeReport& report, const Look& look,
                     const std::function<std::uint64_t()>& request,
                     const std::function<std::vector<std::string>(AttemptId)>& devices) {
  report.life = life_;
  report.sequence = ++sequence_;
  for (const auto& [id, seen] : closed_) report.attempts.push_back(seen);
  for (AttemptSeen& seen : report.attempts) {
    if (seen.phase != AttemptPhase::exited || !seen.processes_gone) continue;
    auto it = proofs_.find(seen.attempt);
    if (it == proofs_.end())
      it = proofs_.emplace(seen.attempt, Proof{request(), devices(seen.attempt)}).first;
    seen.processes_gone = look.number >= it->second.look &&
                          shows_none_of(look.node, seen.attempt, it->second.devices);
  }
}

}  // namespace takt::control
