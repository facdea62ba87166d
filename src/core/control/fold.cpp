#include <algorithm>

#include "core/base/check.h"
#include "core/base/planted.h"
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

const Environment& State::environment_of(const Job& job) const {
  static const Environment none;
  const Submission& submission = *job.submission;
  if (submission.environment == 0) return submission.spec.env;
  const auto it = environments.find(submission.environment);
  return it == environments.end() ? none : *it->second.variables;
}

namespace {

std::string request_key(const Submission& s) { return s.submitter.user + "/" + s.request; }

// Folds one fact. A fact about a job or attempt that is not there (it was forgotten, or the journal
// is from a newer life) changes nothing.
struct Folder {
  State& state;
  Duration half_life;

  Job* job(JobId id) {
    const auto it = state.jobs.find(id);
    return it == state.jobs.end() ? nullptr : &it->second;
  }
  // Changes a job that is there, and keeps the sum of fingerprints right.
  template <class Change>
  void change(JobId id, Change&& how) {
    Job* j = job(id);
    if (j == nullptr) return;
    state.jobs_print -= fingerprint_of(*j);
    how(*j);
    state.jobs_print += fingerprint_of(*j);
  }
  // The same for its present attempt.
  template <class Change>
  void change(AttemptId id, Change&& how) {
    change(id.job, [&](Job& j) {
      if (j.attempt && j.attempt->id == id) how(j, *j.attempt);
    });
  }

  void set_waiting(const Job& j, bool waits) {
    std::size_t& count = state.waiting_of[j.submitter().user];
    if (waits)
      count += state.waiting.insert(j.id).second;
    else
      count -= state.waiting.erase(j.id);
    if (count == 0) state.waiting_of.erase(j.submitter().user);
  }

  void finish(Job& j, Finished fact) {
    state.finished.insert({fact.at, j.id});
    j.finished = std::move(fact);
    set_waiting(j, false);
  }

  void operator()(const JobAccepted& f) {
    const std::uint64_t print = fingerprint_of(*f.submission);
    for (int i = 0; i < f.count; ++i) {
      const JobId id(f.job.value + static_cast<std::uint64_t>(i));
      if (state.jobs.count(id) != 0) continue;
      Job j;
      j.id = id;
      j.submission = f.submission;
      j.submission_print = print;
      j.group_index = f.group_index + i;
      if (!f.parameters.empty()) j.parameters = f.parameters[static_cast<std::size_t>(i)];
      if (const auto e = state.environments.find(f.submission->environment);
          e != state.environments.end())
        ++e->second.jobs;
      if (!f.submission->request.empty()) state.requests.emplace(request_key(*f.submission), id);
      state.jobs_print += fingerprint_of(j);
      set_waiting(j, true);
      state.jobs.emplace_hint(state.jobs.end(), id, std::move(j));
      state.next_job = std::max(state.next_job, id.value + 1);
    }
  }
  void operator()(const CancelRequested& f) {
    change(f.job, [&](Job& j) {
      j.cancel_requested = true;
      j.cancelled_by = f.by;
    });
  }
  void operator()(const JobCancelled& f) {
    change(f.job, [&](Job& j) {
      if (j.finished) return;
      finish(j,
             Finished{f.job, Finished::Outcome::cancelled, "cancelled by " + j.cancelled_by, f.at});
    });
  }
  void operator()(const Granted& f) {
    state.next_generation = std::max(state.next_generation, f.generation + 1);
    change(f.attempt.job, [&](Job& j) {
      j.attempts = f.attempt.number;
      Attempt& a = j.attempt.emplace();
      a.id = f.attempt;
      a.generation = f.generation;
      a.grant = f.grant;
      a.boot_id = f.boot_id;
      a.granted = f.at;
      set_waiting(j, false);
      state.holding.insert(j.id);
    });
  }
  void operator()(const Placed& f) {
    change(f.attempt, [&](Job&, Attempt& a) { a.grant = f.grant; });
  }
  void operator()(const StopRequested& f) {
    change(f.attempt, [&](Job&, Attempt& a) { a.stop = f; });
  }
  void operator()(const Started& f) {
    change(f.attempt, [&](Job&, Attempt& a) {
      a.started = f.at;
      a.pid = f.pid;
    });
  }
  void operator()(const Exited& f) {
    change(f.attempt, [&](Job&, Attempt& a) {
      a.exit = f.exit;
      a.ended = f.at;
    });
  }
  void operator()(const KillFailed& f) {
    change(f.attempt.job, [&](Job& j) {
      ++j.kill_failures;
      if (j.attempt && j.attempt->id == f.attempt) j.attempt->kill_failed = f.detail;
    });
  }
  void operator()(const Released& f) {
    change(f.attempt, [&](Job& j, Attempt& a) {
      if (a.released) return;
      a.released = true;
      state.holding.erase(j.id);
      charge(j, a, f.at);
    });
  }
  void operator()(const Requeued& f) {
    change(f.job, [&](Job& j) {
      if (j.finished) return;
      j.not_before = f.not_before;
      if (!planted(Planted::requeue_forgotten)) set_waiting(j, true);
    });
  }
  void operator()(const Finished& f) {
    change(f.job, [&](Job& j) {
      if (!j.finished) finish(j, f);
    });
  }
  void operator()(const JobHeld& f) {
    change(f.job, [&](Job& j) { j.hold = Hold{f.by, f.reason}; });
  }
  void operator()(const HoldLifted& f) {
    change(f.job, [&](Job& j) { j.hold = {}; });
  }
  void operator()(const Archived& f) {
    for (const JobId id : f.jobs) {
      const Job* j = job(id);
      if (j == nullptr || !j->finished || j->holding()) continue;
      state.jobs_print -= fingerprint_of(*j);
      state.finished.erase({j->finished->at, id});
      leave_environment(j->submission->environment);
      if (const auto r = state.requests.find(request_key(*j->submission));
          r != state.requests.end() && r->second == id)
        state.requests.erase(r);
      state.jobs.erase(id);
    }
  }
  void operator()(const UsageCarried& f) { set_usage(f.user, {f.usage, f.at}); }
  void operator()(const CountersCarried& f) {
    state.next_job = std::max(state.next_job, f.next_job);
    state.next_generation = std::max(state.next_generation, f.next_generation);
    state.next_environment = std::max(state.next_environment, f.next_environment);
  }
  void operator()(const StateCreated& f) { state.identity = f.identity; }
  void operator()(const EnvironmentKept& f) {
    KeptEnvironment& kept = state.environments[f.number];
    kept = {f.variables, fingerprint_of(*f.variables), 0};
    state.environment_prints[kept.print] = f.number;
    state.next_environment = std::max(state.next_environment, f.number + 1);
  }
  void operator()(const ClockSet& f) {
    state.clock = {f.boot_id, f.offset};
    if (f.by.us == 0) return;
    for (const JobId id : state.holding)
      change(id, [&](Job& j) {
        Attempt& a = *j.attempt;
        a.granted = a.granted + f.by;
        if (a.started) a.started = *a.started + f.by;
        if (a.ended) a.ended = *a.ended + f.by;
      });
    for (const JobId id : state.waiting)
      change(id, [&](Job& j) {
        if (j.attempt) j.not_before = j.not_before + f.by;
      });
    for (auto& [user, usage] : std::map(state.usage)) {
      Usage moved = usage;
      moved.at = moved.at + f.by;
      set_usage(user, moved);
    }
  }

  void leave_environment(EnvironmentNumber number) {
    const auto it = state.environments.find(number);
    if (it == state.environments.end() || --it->second.jobs != 0) return;
    const auto print = state.environment_prints.find(it->second.print);
    if (print != state.environment_prints.end() && print->second == number)
      state.environment_prints.erase(print);
    state.environments.erase(it);
  }

  void set_usage(const std::string& user, const Usage& usage) {
    const auto it = state.usage.find(user);
    if (it != state.usage.end()) state.usage_print -= fingerprint_of(user, it->second);
    state.usage[user] = usage;
    state.usage_print += fingerprint_of(user, usage);
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
    const std::string& user = j.submitter().user;
    Usage u = state.usage[user];
    if (u == Usage{}) state.usage.erase(user);
    const std::int64_t seconds = std::max<std::int64_t>(0, (now - a.granted).us / 1'000'000);
    u.amount = schedule::decayed(u.amount, now - u.at, half_life) + milli * seconds;
    u.at = std::max(u.at, now);
    set_usage(user, u);
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
  facts.push_back(Granted{a.id, a.generation, a.grant, a.granted, a.boot_id});
  if (a.started) facts.push_back(Started{a.id, a.pid, *a.started});
  if (a.stop) facts.push_back(*a.stop);
  if (a.exit) facts.push_back(Exited{a.id, *a.exit, *a.ended});
  // Those of earlier attempts are counted, no more.
  const std::uint32_t earlier = job.kill_failures - (a.kill_failed.empty() ? 0 : 1);
  for (std::uint32_t i = 0; i < earlier; ++i) facts.push_back(KillFailed{{job.id, 0}, "", {}});
  if (!a.kill_failed.empty()) facts.push_back(KillFailed{a.id, a.kill_failed, {}});
  if (a.released)
    facts.push_back(Released{a.id, a.granted});  // charges nothing: no time has passed
}

// Everything of a job behind its acceptance.
void life_facts(const State& state, const Job& job, std::vector<Fact>& facts) {
  if (job.cancel_requested) facts.push_back(CancelRequested{job.id, job.cancelled_by, {}});
  if (job.attempt) {
    attempt_facts(job, facts);
    if (!job.finished && state.waiting.count(job.id) != 0)
      facts.push_back(Requeued{job.id, RetryCause::failed, {}, job.not_before});
  }
  if (job.hold) facts.push_back(JobHeld{job.id, job.hold->by, job.hold->reason, {}});
  if (job.finished) facts.push_back(*job.finished);
}

JobAccepted acceptance(const Job& first) {
  JobAccepted accepted;
  accepted.job = first.id;
  accepted.count = 0;
  accepted.group_index = first.group_index;
  accepted.submission = first.submission;
  return accepted;
}

// Neighbours of one submission go into one fact.
bool continues(const JobAccepted& run, const Job& job) {
  return run.submission == job.submission &&
         job.id.value == run.job.value + static_cast<std::uint64_t>(run.count) &&
         job.group_index == run.group_index + run.count &&
         (run.parameters.empty() == job.parameters.empty());
}

void add_to(JobAccepted& run, const Job& job) {
  ++run.count;
  if (!job.parameters.empty()) run.parameters.push_back(job.parameters);
}

}  // namespace

std::vector<Fact> facts_of(const State& state) {
  std::vector<Fact> facts;
  facts.push_back(StateCreated{state.identity, {}});
  facts.push_back(ClockSet{{}, state.clock.boot_id, state.clock.offset});
  for (const auto& [number, kept] : state.environments)
    facts.push_back(EnvironmentKept{number, kept.variables});
  std::optional<JobAccepted> run;
  for (const auto& [id, job] : state.jobs) {
    if (run && !continues(*run, job)) {
      facts.push_back(std::move(*run));
      run.reset();
    }
    if (!run) run = acceptance(job);
    add_to(*run, job);
  }
  if (run) facts.push_back(std::move(*run));
  for (const auto& [id, job] : state.jobs) life_facts(state, job, facts);
  for (const auto& [user, usage] : state.usage)
    facts.push_back(UsageCarried{user, usage.amount, usage.at});
  if (planted(Planted::snapshot_one_fact_short)) facts.pop_back();
  if (planted(Planted::counters_not_kept)) return facts;
  facts.push_back(CountersCarried{state.next_job, state.next_generation, state.next_environment});
  return facts;
}

std::vector<Fact> facts_of(const State& state, const Job& job) {
  std::vector<Fact> facts;
  const EnvironmentNumber number = job.submission->environment;
  if (const auto it = state.environments.find(number); it != state.environments.end())
    facts.push_back(EnvironmentKept{number, it->second.variables});
  JobAccepted accepted = acceptance(job);
  add_to(accepted, job);
  facts.push_back(std::move(accepted));
  life_facts(state, job, facts);
  return facts;
}

}  // namespace takt::control
