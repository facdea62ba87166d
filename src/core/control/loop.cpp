#include "core/control/loop.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/base/planted.h"
#include "core/schedule/decide.h"

namespace takt::control {

Loop::Loop(const Policy& policy, Places places, EngineInfo engine)
    : policy_(policy), places_(std::move(places)) {
  cluster_.engine = std::move(engine);
  published_cluster_ = cluster_;
}

void Loop::begin(State recovered, Instant now) {
  state_ = std::move(recovered);
  published_ = state_;
  cluster_.began = now;
  published_cluster_ = cluster_;
  // So that those who look before the first turn are told why a job waits.
  plan_ = std::make_shared<schedule::Plan>(
      schedule::decide(snapshot(state_, cluster_, policy_, now), policy_, now));
}

Result<void> Loop::append(std::vector<Fact> facts, LoopPort& port) {
  Batch batch;
  apply(std::move(facts), batch);
  if (auto ok = port.append(batch.facts); !ok) {
    state_ = published_;
    return ok;
  }
  publish(batch, port);
  return {};
}

Turn Loop::turn(std::vector<Input> inputs, const std::optional<ClockReading>& clocks, Instant now,
                LoopPort& port) {
  Batch batch;
  if (clocks) look_at_clock(*clocks, batch, port);
  for (Input& input : inputs) take(std::move(input), now, batch);
  observe_silence(cluster_, policy_, now);
  apply(tick(state_, cluster_, policy_, now), batch);
  if (pass_needed(now)) pass(now, batch, port);
  Turn turn;
  if (planted(Planted::start_before_sync)) act(batch, now, port);
  if (planted(Planted::answer_before_sync)) reply(batch, port);
  if (planted(Planted::view_before_sync)) publish(batch, port);
  if (!batch.facts.empty())
    if (const auto ok = port.append(batch.facts); !ok) {
      turn.problem = roll_back(batch, ok.error(), port);
      return turn;
    }
  if (!planted(Planted::view_before_sync)) publish(batch, port);
  reply(batch, port);
  act(batch, now, port);
  turn.facts = std::move(batch.facts);
  turn.reports = std::move(batch.reports);
  return turn;
}

Sight Loop::sight(Instant now) const {
  return {published_, published_cluster_, *plan_, policy_, places_, now};
}

void Loop::apply(std::vector<Fact> facts, Batch& batch) {
  for (Fact& fact : facts) {
    fold(state_, fact, policy_.fair_share_half_life);
    batch.facts.push_back(std::move(fact));
  }
}

// Times of what is under way move with the clock, so that no limit strikes early or late.
void Loop::look_at_clock(const ClockReading& reading, Batch& batch, LoopPort& port) {
  observe_clock(cluster_, reading);
  const auto set = clock_set(state_, reading);
  if (!set) return;
  if (set->by.us != 0)
    port.note(
        fmt::format("the host's clock was set by {} s: times of what is under way move with it",
                    set->by.us / 1'000'000));
  apply({*set}, batch);
}

void Loop::take(Input input, Instant now, Batch& batch) {
  if (auto* asked = std::get_if<Asked>(&input)) {
    auto answer = handle(state_, cluster_, policy_, asked->command, now);
    if (answer) apply(answer->facts, batch);
    batch.replies.emplace_back(asked->token, std::move(answer));
    return;
  }
  NodeReport& report = std::get<NodeReport>(input);
  if (!observe(cluster_, state_, report, now)) return;  // an older one that was late
  apply(handle(state_, cluster_, policy_, report, now), batch);
  batch.reports.push_back(std::move(report));
}

bool Loop::pass_needed(Instant now) const {
  return state_.ledger_version + cluster_.version != planned_version_ ||
         (next_retry_ && *next_retry_ <= now);
}

void Loop::pass(Instant now, Batch& batch, LoopPort& port) {
  const auto seen = snapshot(state_, cluster_, policy_, now);
  auto plan = std::make_shared<schedule::Plan>(schedule::decide(seen, policy_, now));
  auto admission = admit(state_, cluster_, policy_, *plan, now);
  if (!admission.dropped.empty()) port.note("a plan was dropped: " + admission.dropped);
  next_retry_.reset();
  for (const schedule::WaitingJob& job : seen.waiting)
    if (job.not_before > now && (!next_retry_ || job.not_before < *next_retry_))
      next_retry_ = job.not_before;
  apply(std::move(admission.facts), batch);
  // Grants of this pass are in the plan already; only what comes later makes another one necessary.
  planned_version_ = state_.ledger_version + cluster_.version;
  batch.plan = std::move(plan);
}

std::string cannot_acknowledge(const Error& error) {
  return "nothing can be acknowledged: " + error.message +
         ". It goes on by itself once that is mended";
}

// Nothing of the batch is on disk: the state goes back to what is. Reports come again by
// themselves.
std::string Loop::roll_back(Batch& batch, const Error& error, LoopPort& port) {
  const std::string sentence = cannot_acknowledge(error);
  port.note(sentence);
  if (!planted(Planted::failed_sync_kept)) state_ = published_;
  port.publish([&] { published_cluster_ = cluster_; });
  planned_version_ = 0;
  for (auto& [token, answer] : batch.replies)
    port.reply(token, answer ? fail(ErrorKind::unavailable, sentence)
                             : tl::make_unexpected(answer.error()));
  return sentence;
}

void Loop::publish(const Batch& batch, LoopPort& port) {
  port.publish([&] {
    for (const Fact& fact : batch.facts) fold(published_, fact, policy_.fair_share_half_life);
    if (!batch.reports.empty() || published_cluster_.version != cluster_.version)
      published_cluster_ = cluster_;
    if (batch.plan) plan_ = batch.plan;
  });
}

void Loop::reply(Batch& batch, LoopPort& port) {
  for (auto& [token, answer] : batch.replies) port.reply(token, std::move(answer));
}

void Loop::act(const Batch& batch, Instant now, LoopPort& port) {
  std::set<NodeId> nodes;
  std::set<NodeId> heard;
  for (const NodeReport& report : batch.reports) heard.insert(report.node.id);
  for (const Fact& fact : batch.facts) {
    if (const auto* granted = std::get_if<Granted>(&fact)) nodes.insert(granted->grant.node);
    if (const auto* stop = std::get_if<StopRequested>(&fact))
      if (const auto it = state_.jobs.find(stop->attempt.job); it != state_.jobs.end())
        nodes.insert(it->second.attempt->grant.node);
  }
  nodes.insert(heard.begin(), heard.end());
  for (const NodeId& node : nodes) {
    const auto it = cluster_.nodes.find(node);
    if (it == cluster_.nodes.end()) continue;
    std::vector<Effect> effects;
    if (heard.count(node) != 0) renew_lease(it->second, now, effects);
    for (Effect& effect :
         reconcile(state_, it->second.report, places_, hand_over_from(cluster_.engine, now)))
      effects.push_back(std::move(effect));
    if (!effects.empty()) port.send(node, effects);
  }
}

// The node counts from when it made the report, which was before `now`.
void Loop::renew_lease(SeenReport& seen, Instant now, std::vector<Effect>& effects) const {
  if (!cluster_.engine.lease) return;
  seen.lease_ends = lease_end(*cluster_.engine.lease, now);
  effects.emplace_back(
      Renew{Basis{seen.report.node.boot_id, seen.report.life, seen.report.sequence}});
}

}  // namespace takt::control
