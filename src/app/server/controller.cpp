#include "app/server/controller.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "core/base/fault_point.h"
#include "core/schedule/decide.h"
#include "edge/codec/journal_json.h"

namespace takt::server {
namespace {

// How often the loop looks at the clock when nothing comes in: hard stops, retries, silent nodes.
constexpr auto kTick = std::chrono::milliseconds(500);
// More than a journal between two backups holds; as a round number it is seen in `takt ps`.
constexpr std::uint64_t kSkippedNumbers = 1'000'000;
constexpr auto kDiskPause = std::chrono::milliseconds(200);  // a full disk is not hammered

}  // namespace

Controller::Controller(store::JournalPort& journal, Measurements& measurements,
                       ControllerOptions options)
    : journal_(journal),
      measurements_(measurements),
      options_(std::move(options)),
      turns_(options_.policy, options_.places, options_.engine),
      snapshotter_(journal,
                   {options_.policy.fair_share_half_life, options_.snapshot_every, options_.note}) {
}

Controller::~Controller() { stop(); }

Result<void> Controller::recover() {
  auto recovered = snapshotter_.recover();
  if (!recovered) return tl::make_unexpected(recovered.error());
  turns_.begin(std::move(*recovered), options_.clock());
  if (auto ok = skip_forgotten_numbers(); !ok) return ok;
  if (journal_.last_sequence() != 0 || options_.identity.empty()) return {};
  return turns_.append({control::StateCreated{options_.identity, options_.clock()}}, *this);
}

// Jobs and attempts may exist that the journal does not know: a lost batch, or what came after a
// backup. None of their numbers is given a second time.
Result<void> Controller::skip_forgotten_numbers() {
  if (!journal_.may_have_forgotten()) return {};
  return turns_.append({control::CountersCarried{turns_.state().next_job + kSkippedNumbers,
                                                 turns_.state().next_generation + kSkippedNumbers}},
                       *this);
}

void Controller::start(SendEffects send) {
  send_ = std::move(send);
  loop_ = std::thread([this] { run(); });
  snapshotter_.start();
}

void Controller::stop() {
  {
    const std::lock_guard lock(inputs_mutex_);
    stopping_ = true;
  }
  inputs_changed_.notify_all();
  if (loop_.joinable()) loop_.join();
  snapshotter_.stop();
}

Result<control::Accepted> Controller::call(control::Command command) {
  std::future<Result<control::Accepted>> answer;
  {
    const std::lock_guard lock(inputs_mutex_);
    if (stopping_) return fail(ErrorKind::unavailable, "the server is stopping: try again");
    const std::uint64_t token = next_token_++;
    answer = awaited_[token].get_future();
    inputs_.push_back(control::Asked{token, std::move(command)});
  }
  inputs_changed_.notify_all();
  return answer.get();
}

Result<control::Accepted> Controller::submit(control::Submit command) {
  return call(std::move(command));
}

Result<control::Accepted> Controller::cancel(control::Cancel command) {
  return call(std::move(command));
}

Result<control::Accepted> Controller::cancel(control::CancelAll command) {
  return call(std::move(command));
}

Result<control::Accepted> Controller::hold(control::HoldJob command) {
  return call(std::move(command));
}

Result<control::Accepted> Controller::release(control::ReleaseJob command) {
  return call(std::move(command));
}

Result<control::Accepted> Controller::archive(control::Archive command) {
  return call(std::move(command));
}

void Controller::report(control::NodeReport report) {
  {
    const std::lock_guard lock(inputs_mutex_);
    if (stopping_) return;
    inputs_.push_back(std::move(report));
  }
  inputs_changed_.notify_all();
}

std::vector<control::Input> Controller::next_inputs() {
  std::unique_lock lock(inputs_mutex_);
  inputs_changed_.wait_for(lock, kTick, [&] { return stopping_ || !inputs_.empty(); });
  std::vector<control::Input> batch;
  while (!inputs_.empty() && batch.size() < options_.policy.limits.inputs_batch_max) {
    batch.push_back(std::move(inputs_.front()));
    inputs_.pop_front();
  }
  return batch;
}

void Controller::run() {
  while (true) {
    std::vector<control::Input> inputs = next_inputs();
    if (inputs.empty()) {
      const std::lock_guard lock(inputs_mutex_);
      if (stopping_) return;
    }
    std::optional<control::ClockReading> clocks;
    if (options_.clocks) clocks = options_.clocks();
    const control::Turn turn = turns_.turn(std::move(inputs), clocks, options_.clock(), *this);
    if (!turn.problem.empty()) {
      std::this_thread::sleep_for(kDiskPause);
      continue;
    }
    // Last, since nobody waits for these: neither telemetry's disk nor a long queue's views delay a
    // start.
    measurements_.take(turns_.state(), turn.reports, turn.facts);
    log_waits();
  }
}

Result<void> Controller::append(const std::vector<control::Fact>& facts) {
  std::vector<store::Record> records;
  records.reserve(facts.size());
  std::uint64_t sequence = journal_.last_sequence();
  for (const control::Fact& fact : facts) {
    auto encoded = codec::encode_fact(fact);
    records.push_back(
        {++sequence, encoded.version, std::move(encoded.kind), std::move(encoded.body)});
  }
  fault_point("controller.before-append");
  auto ok = journal_.append(records);
  fault_point("controller.after-append");
  if (ok) appended_ = facts.size();
  // Before anybody gets an answer that it explains, or that shows it is over.
  const std::unique_lock lock(published_mutex_);
  problem_ = ok ? "" : control::cannot_acknowledge(ok.error());
  return ok;
}

void Controller::publish(const std::function<void()>& change) {
  {
    const std::unique_lock lock(published_mutex_);
    change();
  }
  published_changed_.notify_all();
  if (appended_ == 0) return;
  snapshotter_.appended(journal_.last_sequence(), appended_, control::fingerprint(turns_.state()));
  appended_ = 0;
}

void Controller::reply(std::uint64_t token, Result<control::Accepted> answer) {
  fault_point("controller.before-reply");
  Reply reply;
  {
    const std::lock_guard lock(inputs_mutex_);
    const auto it = awaited_.find(token);
    if (it == awaited_.end()) return;
    reply = std::move(it->second);
    awaited_.erase(it);
  }
  reply.set_value(std::move(answer));
}

// There is one node: the engine knows its way.
void Controller::send(const NodeId&, const std::vector<control::Effect>& effects) {
  fault_point("controller.before-send");
  if (send_) send_(effects);
  fault_point("controller.after-send");
}

void Controller::note(const std::string& sentence) {
  if (options_.note) options_.note(sentence);
}

Result<Trial> Controller::try_out(const control::Submit& command) {
  // A copy, so that the loop does not wait for the scheduler.
  control::State state;
  control::Cluster cluster;
  read([&](const control::Sight& sight) {
    state = sight.state;
    cluster = sight.cluster;
  });
  const Instant now = options_.clock();
  const Policy& policy = options_.policy;
  auto accepted = handle(state, cluster, policy, control::Command(command), now);
  if (!accepted) return tl::make_unexpected(accepted.error());
  for (const control::Fact& fact : accepted->facts) fold(state, fact, policy.fair_share_half_life);
  const auto plan = schedule::decide(control::snapshot(state, cluster, policy, now), policy, now);
  const JobId first = accepted->jobs.front();
  Trial trial;
  trial.spec = state.jobs.at(first).spec();
  trial.count = static_cast<int>(accepted->jobs.size());
  trial.warnings = accepted->warnings;
  for (const schedule::Placement& p : plan.placements)
    if (p.job == first) {
      trial.would_start = true;
      trial.decision = p.decision;
    }
  if (const auto it = plan.waiting.find(first); it != plan.waiting.end()) {
    trial.waiting_for = it->second->blockers;
    trial.decision = it->second->decision;
  }
  return trial;
}

void Controller::read(const std::function<void(const control::Sight&)>& look) const {
  const std::shared_lock lock(published_mutex_);
  look(turns_.sight(options_.clock()));
}

bool Controller::wait(const std::function<bool(const control::Sight&)>& done, Duration at_most,
                      std::stop_token stop) const {
  std::shared_lock lock(published_mutex_);
  return published_changed_.wait_for(lock, stop, std::chrono::microseconds(at_most.us),
                                     [&] { return done(turns_.sight(options_.clock())); });
}

// Often enough to tell seconds apart; a long queue, whose views cost more, less often.
void Controller::log_waits() {
  const Instant now = options_.clock();
  const auto jobs = static_cast<std::int64_t>(turns_.state().waiting.size());
  const Duration pause = std::max(milliseconds(200), milliseconds(jobs));
  if (now - waits_logged_ < pause && now >= waits_logged_) return;
  waits_logged_ = now;
  std::vector<control::JobView> waiting;
  read([&](const control::Sight& sight) {
    for (const JobId id : sight.state.waiting)
      waiting.push_back(control::job_view(sight, sight.state.jobs.at(id)));
  });
  const std::lock_guard lock(waits_mutex_);
  waits_.look(waiting, now);
}

report::WaitLog Controller::waits() const {
  const std::lock_guard lock(waits_mutex_);
  return waits_;
}

std::string Controller::problem() const {
  {
    const std::shared_lock lock(published_mutex_);
    if (!problem_.empty()) return problem_;
  }
  return snapshotter_.problem();
}

}  // namespace takt::server
