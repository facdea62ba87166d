#include "core/base/check.h"
#include "core/control/state.h"
#include "core/schedule/queue.h"

namespace takt::control {

JobState Job::state() const {
  if (finished) {
    switch (finished->outcome) {
      case Finished::Outcome::done: return JobState::done;
      case Finished::Outcome::failed: return JobState::failed;
      case Finished::Outcome::cancelled: break;
    }
    return JobState::cancelled;
  }
  if (waiting()) return JobState::waiting;
  if (attempt->stop) return JobState::stopping;
  return attempt->started ? JobState::running : JobState::starting;
}

namespace {

// Folds one fact. A fact about a job or attempt that is not there (it was forgotten, or the journal
// is from a newer life) changes nothing.
struct Folder {
  State& state;
  Duration half_life;

  Job* job(JobId id) {
    const auto it = state.jobs.find(id);
    return it == state.jobs.end() ? nullptr : &it->second;
  }
  Attempt* attempt(AttemptId id) {
    Job* j = job(id.job);
    return j != nullptr && j->attempt && j->attempt->id == id ? &*j->attempt : nullptr;
  }

  void finish(Job& j, Finished fact) {
    j.finished = std::move(fact);
    state.waiting.erase(j.id);
    state.finished.push_back(j.id);
    std::size_t looked_at = 0;
    while (state.finished.size() > kFinishedKept && looked_at++ < 100) {
      const JobId oldest = state.finished.front();
      state.finished.pop_front();
      if (state.holding.count(oldest) != 0)
        state.finished.push_back(oldest);  // its devices are not yet proven free
      else
        state.jobs.erase(oldest);
    }
  }

  // The spec is by far the largest part of a job (its environment), and equal in all tasks of an
  // array: 10,000 tasks hold it once.
  std::shared_ptr<const JobSpec> share_spec(const JobAccepted& f) {
    if (f.group)
      for (const JobId id : {*f.group, JobId(f.job.value - 1)})
        if (const Job* other = job(id);
            other != nullptr && other->accepted->group == f.group && other->spec() == f.spec)
          return other->shared_spec;
    return std::make_shared<const JobSpec>(f.spec);
  }
  static std::shared_ptr<const JobAccepted> without_spec(const JobAccepted& f) {
    auto accepted = std::make_shared<JobAccepted>();
    accepted->job = f.job;
    accepted->submitter = f.submitter;
    accepted->at = f.at;
    accepted->policy_revision = f.policy_revision;
    accepted->group = f.group;
    accepted->group_index = f.group_index;
    accepted->group_size = f.group_size;
    accepted->parameters = f.parameters;
    accepted->seed = f.seed;
    return accepted;
  }

  void operator()(const JobAccepted& f) {
    Job j;
    j.id = f.job;
    j.accepted = without_spec(f);
    j.shared_spec = share_spec(f);
    state.jobs[f.job] = std::move(j);
    state.waiting.insert(f.job);
    state.next_job = std::max(state.next_job, f.job.value + 1);
  }
  void operator()(const CancelRequested& f) {
    Job* j = job(f.job);
    if (j == nullptr) return;
    j->cancel_requested = true;
    j->cancelled_by = f.by;
  }
  void operator()(const JobCancelled& f) {
    Job* j = job(f.job);
    if (j == nullptr || j->finished) return;
    finish(*j,
           Finished{f.job, Finished::Outcome::cancelled, "cancelled by " + j->cancelled_by, f.at});
  }
  void operator()(const Granted& f) {
    state.next_generation = std::max(state.next_generation, f.generation + 1);
    Job* j = job(f.attempt.job);
    if (j == nullptr) return;
    j->attempts = f.attempt.number;
    j->attempt.emplace();
    j->attempt->id = f.attempt;
    j->attempt->generation = f.generation;
    j->attempt->grant = f.grant;
    j->attempt->granted = f.at;
    state.waiting.erase(j->id);
    state.holding.insert(j->id);
  }
  void operator()(const StopRequested& f) {
    if (Attempt* a = attempt(f.attempt)) a->stop = f;
  }
  void operator()(const Started& f) {
    Attempt* a = attempt(f.attempt);
    if (a == nullptr) return;
    a->started = f.at;
    a->pid = f.pid;
  }
  void operator()(const Exited& f) {
    Attempt* a = attempt(f.attempt);
    if (a == nullptr) return;
    a->exit = f.exit;
    a->ended = f.at;
  }
  void operator()(const Released& f) {
    Attempt* a = attempt(f.attempt);
    if (a == nullptr || a->released) return;
    a->released = true;
    Job& j = *job(f.attempt.job);
    state.holding.erase(j.id);
    charge(j, *a, f.at);
  }
  void operator()(const Requeued& f) {
    Job* j = job(f.job);
    if (j == nullptr || j->finished) return;
    j->not_before = f.not_before;
    state.waiting.insert(j->id);
  }
  void operator()(const Finished& f) {
    Job* j = job(f.job);
    if (j != nullptr && !j->finished) finish(*j, f);
  }
  void operator()(const UsageCarried& f) { state.usage[f.user] = {f.usage, f.at}; }
  void operator()(const CountersCarried& f) {
    state.next_job = std::max(state.next_job, f.next_job);
    state.next_generation = std::max(state.next_generation, f.next_generation);
  }

  void charge(const Job& j, const Attempt& a, Instant now) {
    std::int64_t milli = 0;
    for (const DeviceGrant& d : a.grant.devices)
      milli += d.kind == DeviceKind::whole_gpu ? 1000 : std::min(1000, d.compute_percent * 10);
    // A share or MIG instance without a compute part counts as half a GPU: the journal does not
    // know the card's size, and the order of magnitude is what fair share needs.
    if (!a.grant.devices.empty() && a.grant.devices[0].kind != DeviceKind::whole_gpu &&
        a.grant.devices[0].compute_percent == 100)
      milli = 500 * static_cast<std::int64_t>(a.grant.devices.size());
    if (milli == 0) return;
    Usage& u = state.usage[j.submitter().user];
    const std::int64_t seconds = std::max<std::int64_t>(0, (now - a.granted).us / 1'000'000);
    u.amount = schedule::decayed(u.amount, now - u.at, half_life) + milli * seconds;
    u.at = std::max(u.at, now);
  }
};

}  // namespace

void fold(State& state, const Fact& fact, Duration fair_share_half_life) {
  std::visit(Folder{state, fair_share_half_life}, fact);
  ++state.ledger_version;
}

namespace {

void attempt_facts(const Job& job, std::vector<Fact>& facts) {
  const Attempt& a = *job.attempt;
  facts.push_back(Granted{a.id, a.generation, a.grant, a.granted});
  if (a.started) facts.push_back(Started{a.id, a.pid, *a.started});
  if (a.stop) facts.push_back(*a.stop);
  if (a.exit) facts.push_back(Exited{a.id, *a.exit, *a.ended});
  if (a.released)
    facts.push_back(Released{a.id, a.granted});  // charges nothing: no time has passed
}

}  // namespace

std::vector<Fact> facts_of(const State& state) {
  std::vector<Fact> facts;
  for (const auto& [id, job] : state.jobs) {
    JobAccepted accepted = *job.accepted;
    accepted.spec = job.spec();
    facts.push_back(std::move(accepted));
    if (job.cancel_requested) facts.push_back(CancelRequested{id, job.cancelled_by, {}});
    if (!job.attempt) continue;
    attempt_facts(job, facts);
    if (!job.finished && state.waiting.count(id) != 0)
      facts.push_back(Requeued{id, RetryCause::failed, {}, job.not_before});
  }
  // In the order in which they finished, since the oldest leave first.
  for (const JobId id : state.finished) {
    const auto it = state.jobs.find(id);
    if (it != state.jobs.end()) facts.push_back(*it->second.finished);
  }
  for (const auto& [user, usage] : state.usage)
    facts.push_back(UsageCarried{user, usage.amount, usage.at});
  facts.push_back(CountersCarried{state.next_job, state.next_generation});
  return facts;
}

}  // namespace takt::control
