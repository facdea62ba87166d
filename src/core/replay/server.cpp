#include "core/replay/server.h"

namespace takt::replay {
namespace {

using control::Fact;

constexpr Duration kTick = milliseconds(500);
constexpr Duration kArchiveInterval = seconds(20);
constexpr std::size_t kSnapshotEvery = 150;  // facts
// Not for people: answers to these go nowhere.
constexpr std::uint64_t kOwnToken = 0;

}  // namespace

Server::Server(const Policy& policy, control::EngineInfo engine, Disk& disk, ServerPort& port,
               Random random)
    : policy_(policy),
      engine_(std::move(engine)),
      disk_(disk),
      port_(port),
      random_(random),
      away_(Instant{}) {}

bool Server::ask(std::uint64_t token, control::Command command) {
  if (!up()) return false;
  inputs_.push_back(control::Asked{token, std::move(command)});
  return true;
}

void Server::hear(control::NodeReport report) {
  if (up()) inputs_.push_back(std::move(report));
}

void Server::advance(Instant truth, HostClock& clock, const std::string& boot_id) {
  if (!up() && away_ && *away_ <= truth) recover(truth, clock);
  if (!up()) return;
  bool ticked = truth - last_turn_ < kTick;
  while (up() && (!inputs_.empty() || !ticked)) {
    ticked = true;
    take_turn(truth, clock, boot_id);
  }
}

void Server::recover(Instant truth, HostClock& clock) {
  disk_.crash();
  port_.synced();  // what a failed sync had left behind
  auto state = disk_.recover();
  if (!state) return port_.mistake("what is on disk cannot be read: " + state.error().message);
  const bool fresh = disk_.size() == 0;
  loop_ = std::make_unique<control::Loop>(policy_, control::Places{"/logs", "/socket"}, engine_);
  loop_->begin(std::move(*state), clock.wall(truth));
  away_.reset();
  dead_ = false;
  ++lives_;
  port_.recovered();
  if (fresh && !loop_->append({control::StateCreated{"cafe", clock.wall(truth)}}, *this))
    die(truth, seconds(1));
}

void Server::take_turn(Instant truth, HostClock& clock, const std::string& boot_id) {
  last_turn_ = truth;
  std::vector<control::Input> batch;
  const std::size_t most = 1 + random_.below(std::uint64_t{8});
  while (!inputs_.empty() && batch.size() < most) {
    batch.push_back(std::move(inputs_.front()));
    inputs_.pop_front();
  }
  const Instant now = clock.wall(truth);
  (void)loop_->turn(std::move(batch), control::ClockReading{now, clock.since_boot(truth), boot_id},
                    now, *this);
  if (!dead_ && dies(Moment::between_turns)) return die(truth, pause_);
  if (dead_) return die(truth, pause_);
  if (disk_.since_snapshot() >= kSnapshotEvery) disk_.keep_snapshot(facts_of(loop_->state()));
  archive(now, truth);
}

// As app/server/archive.cpp: first the archive, then the fact.
void Server::archive(Instant now, Instant truth) {
  if (truth - last_archive_ < kArchiveInterval) return;
  last_archive_ = truth;
  const auto due = control::due_for_archive(loop_->state(), policy_.finished, now, 100);
  if (due.empty()) return;
  for (const JobId id : due) disk_.archive[id] = *loop_->state().jobs.at(id).finished;
  inputs_.push_back(control::Asked{kOwnToken, control::Archive{due}});
}

void Server::die(Instant truth, Duration pause) {
  loop_.reset();
  inputs_.clear();
  dies_at_.reset();
  dead_ = false;
  away_ = truth + pause;
}

void Server::die_at(Moment moment, Duration pause) {
  dies_at_ = moment;
  pause_ = pause;
}

void Server::heal(Instant truth) {
  dies_at_.reset();
  if (!up()) away_ = truth;
}

bool Server::dies(Moment moment) {
  if (dies_at_ == moment) dead_ = true;
  return dead_;
}

Result<void> Server::append(const std::vector<Fact>& facts) {
  const auto killed = [] { return fail(ErrorKind::io, "the process was killed"); };
  if (dies(Moment::before_append)) return killed();
  auto ok = disk_.append(facts);
  port_.passes(disk_.last_sync());
  if (ok) port_.synced();
  if (dies(Moment::after_append)) return killed();
  return ok;
}

void Server::publish(const std::function<void()>& change) {
  if (dies(Moment::before_publish)) return;
  change();
  port_.published();
  (void)dies(Moment::after_publish);
}

void Server::reply(std::uint64_t token, Result<control::Accepted> answer) {
  if (dies(Moment::before_reply)) return;
  if (token != kOwnToken) port_.answered(token, answer);
  (void)dies(Moment::after_reply);
}

void Server::send(const NodeId& node, const std::vector<control::Effect>& effects) {
  if (dies(Moment::before_send)) return;
  port_.told(node, effects);
  (void)dies(Moment::after_send);
}

void Server::note(const std::string& sentence) {
  // A pass and what it is checked against come from one state: such a plan is a mistake.
  if (sentence.rfind("a plan was dropped", 0) == 0) port_.mistake(sentence);
}

}  // namespace takt::replay
