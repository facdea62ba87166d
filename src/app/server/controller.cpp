#include "app/server/controller.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "core/schedule/decide.h"
#include "edge/codec/journal_json.h"

namespace takt::server {
namespace {

// How often the loop looks at the clock when nothing comes in: hard stops, retries, silent nodes.
constexpr auto kTick = std::chrono::milliseconds(500);
// More than a journal between two backups holds; as a round number it is seen in `takt ps`.
constexpr std::uint64_t kSkippedNumbers = 1'000'000;

}  // namespace

Controller::Controller(store::JournalPort& journal, Measurements& measurements,
                       ControllerOptions options)
    : journal_(journal),
      measurements_(measurements),
      options_(std::move(options)),
      snapshotter_(journal,
                   {options_.policy.fair_share_half_life, options_.snapshot_every, options_.note}) {
}

Controller::~Controller() { stop(); }

Result<void> Controller::recover() {
  auto recovered = snapshotter_.recover();
  if (!recovered) return tl::make_unexpected(recovered.error());
  state_ = std::move(*recovered);
  if (auto ok = skip_forgotten_numbers(); !ok) return ok;
  cluster_.engine = options_.engine;
  cluster_.began = options_.clock();
  if (journal_.last_sequence() == 0 && !options_.identity.empty()) {
    Batch batch;
    apply({control::StateCreated{options_.identity, options_.clock()}}, batch);
    if (auto ok = journal(batch); !ok) return ok;
  }
  published_ = state_;
  published_sequence_ = journal_.last_sequence();
  return {};
}

// Jobs and attempts may exist that the journal does not know: a lost batch, or what came after a
// backup. None of their numbers is given a second time.
Result<void> Controller::skip_forgotten_numbers() {
  if (!journal_.may_have_forgotten()) return {};
  Batch batch;
  apply({control::CountersCarried{state_.next_job + kSkippedNumbers,
                                  state_.next_generation + kSkippedNumbers}},
        batch);
  return journal(batch);
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

Result<control::Accepted> Controller::call(What what) {
  auto command = std::make_unique<Command>();
  command->what = std::move(what);
  auto reply = command->reply.get_future();
  {
    const std::lock_guard lock(inputs_mutex_);
    if (stopping_) return fail(ErrorKind::unavailable, "the server is stopping: try again");
    inputs_.push_back(std::move(command));
  }
  inputs_changed_.notify_all();
  return reply.get();
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

std::vector<Controller::Input> Controller::next_inputs() {
  std::unique_lock lock(inputs_mutex_);
  inputs_changed_.wait_for(lock, kTick, [&] { return stopping_ || !inputs_.empty(); });
  std::vector<Input> batch;
  while (!inputs_.empty() && batch.size() < options_.policy.limits.inputs_batch_max) {
    batch.push_back(std::move(inputs_.front()));
    inputs_.pop_front();
  }
  return batch;
}

void Controller::run() {
  while (true) {
    std::vector<Input> inputs = next_inputs();
    if (inputs.empty()) {
      const std::lock_guard lock(inputs_mutex_);
      if (stopping_) return;
    }
    Batch batch;
    look_at_clock(batch);
    for (Input& input : inputs) handle_input(std::move(input), batch);
    const Instant now = options_.clock();
    observe_silence(cluster_, options_.policy, now);
    apply(control::tick(state_, cluster_, options_.policy, now), batch);
    if (pass_needed(now)) pass(batch);
    if (const auto ok = journal(batch); !ok) {
      roll_back(batch, ok.error());
      continue;
    }
    publish(batch);
    release(batch);
    act(batch);
    // Last, since nobody waits for these: neither telemetry's disk nor a long queue's views delay a
    // start.
    measurements_.take(state_, batch.reports, batch.facts);
    log_waits();
  }
}

void Controller::apply(std::vector<control::Fact> facts, Batch& batch) {
  for (control::Fact& fact : facts) {
    fold(state_, fact, options_.policy.fair_share_half_life);
    batch.facts.push_back(std::move(fact));
  }
}

void Controller::handle_input(Input input, Batch& batch) {
  if (auto* command = std::get_if<std::unique_ptr<Command>>(&input)) {
    handle_command(std::move(*command), batch);
    return;
  }
  const Instant now = options_.clock();
  control::NodeReport& report = std::get<control::NodeReport>(input);
  if (!observe(cluster_, state_, report, now)) return;  // an older one that was late
  apply(handle(state_, cluster_, options_.policy, report, now), batch);
  batch.reports.push_back(std::move(report));
}

void Controller::handle_command(std::unique_ptr<Command> command, Batch& batch) {
  const Instant now = options_.clock();
  auto result = handle(state_, cluster_, options_.policy, command->what, now);
  if (result) apply(result->facts, batch);
  batch.replies.emplace_back(std::move(command), std::move(result));
}

// Times of what is under way move with the clock, so that no limit strikes early or late.
void Controller::look_at_clock(Batch& batch) {
  if (!options_.clocks) return;
  const control::ClockReading reading = options_.clocks();
  observe_clock(cluster_, reading);
  const auto set = control::clock_set(state_, reading);
  if (!set) return;
  if (set->by.us != 0)
    options_.note(
        fmt::format("the host's clock was set by {} s: times of what is under way move with it",
                    set->by.us / 1'000'000));
  apply({*set}, batch);
}

bool Controller::pass_needed(Instant now) const {
  return state_.ledger_version + cluster_.version != planned_version_ ||
         (next_retry_ && *next_retry_ <= now);
}

void Controller::pass(Batch& batch) {
  const Instant now = options_.clock();
  const auto snapshot = control::snapshot(state_, cluster_, options_.policy, now);
  auto plan = std::make_shared<schedule::Plan>(schedule::decide(snapshot, options_.policy, now));
  auto admission = admit(state_, cluster_, options_.policy, *plan, now);
  if (!admission.dropped.empty()) options_.note("a plan was dropped: " + admission.dropped);
  next_retry_.reset();
  for (const schedule::WaitingJob& job : snapshot.waiting)
    if (job.not_before > now && (!next_retry_ || job.not_before < *next_retry_))
      next_retry_ = job.not_before;
  apply(std::move(admission.facts), batch);
  // Grants of this pass are in the plan already; only what comes later makes another one necessary.
  planned_version_ = state_.ledger_version + cluster_.version;
  batch.plan = std::move(plan);
}

Result<void> Controller::journal(const Batch& batch) {
  if (batch.facts.empty()) return {};
  std::vector<store::Record> records;
  records.reserve(batch.facts.size());
  std::uint64_t sequence = journal_.last_sequence();
  for (const control::Fact& fact : batch.facts) {
    auto encoded = codec::encode_fact(fact);
    records.push_back(
        {++sequence, encoded.version, std::move(encoded.kind), std::move(encoded.body)});
  }
  return journal_.append(records);
}

// Nothing of the batch is on disk: the state goes back to what is. Reports come again by
// themselves.
void Controller::roll_back(Batch& batch, const Error& error) {
  const std::string sentence = "nothing can be acknowledged: " + error.message +
                               ". It goes on by itself once that is mended";
  options_.note(sentence);
  {
    const std::unique_lock lock(published_mutex_);
    problem_ = sentence;
    state_ = published_;
    published_cluster_ = cluster_;
  }
  planned_version_ = 0;
  for (auto& [command, result] : batch.replies)
    command->reply.set_value(result ? fail(ErrorKind::unavailable, sentence)
                                    : tl::make_unexpected(result.error()));
  published_changed_.notify_all();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // a full disk is not hammered
}

void Controller::publish(Batch& batch) {
  {
    const std::unique_lock lock(published_mutex_);
    for (const control::Fact& fact : batch.facts)
      fold(published_, fact, options_.policy.fair_share_half_life);
    if (!batch.reports.empty() || published_cluster_.version != cluster_.version)
      published_cluster_ = cluster_;
    if (batch.plan) plan_ = batch.plan;
    if (!batch.facts.empty()) problem_.clear();
    published_sequence_ = journal_.last_sequence();
  }
  published_changed_.notify_all();
  if (!batch.facts.empty())
    snapshotter_.appended(published_sequence_, batch.facts.size(), control::fingerprint(state_));
}

void Controller::release(Batch& batch) {
  for (auto& [command, result] : batch.replies) command->reply.set_value(std::move(result));
}

void Controller::act(const Batch& batch) {
  if (!send_) return;
  std::set<NodeId> nodes;
  for (const control::NodeReport& report : batch.reports) nodes.insert(report.node.id);
  for (const control::Fact& fact : batch.facts) {
    const auto* granted = std::get_if<control::Granted>(&fact);
    if (granted != nullptr) nodes.insert(granted->grant.node);
    if (const auto* stop = std::get_if<control::StopRequested>(&fact))
      if (const auto it = state_.jobs.find(stop->attempt.job); it != state_.jobs.end())
        nodes.insert(it->second.attempt->grant.node);
  }
  for (const NodeId& node : nodes)
    if (const auto it = cluster_.nodes.find(node); it != cluster_.nodes.end()) {
      const auto effects = reconcile(state_, it->second.report, options_.places);
      if (!effects.empty()) send_(effects);
    }
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
  look(
      {published_, published_cluster_, *plan_, options_.policy, options_.places, options_.clock()});
}

bool Controller::wait(const std::function<bool(const control::Sight&)>& done, Duration at_most,
                      std::stop_token stop) const {
  std::shared_lock lock(published_mutex_);
  return published_changed_.wait_for(lock, stop, std::chrono::microseconds(at_most.us), [&] {
    return done({published_, published_cluster_, *plan_, options_.policy, options_.places,
                 options_.clock()});
  });
}

// Often enough to tell seconds apart; a long queue, whose views cost more, less often.
void Controller::log_waits() {
  const Instant now = options_.clock();
  const Duration pause = published_.waiting.size() > 1000 ? seconds(2) : milliseconds(200);
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
