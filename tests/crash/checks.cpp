#include "crash/checks.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace takt::crash {
namespace {

using nlohmann::json;
using Kind = Violation::Kind;

// What one attempt wrote.
struct Life {
  std::string tag;
  int starts = 0;
  int ends = 0;
  int code = -1;
};

std::map<std::string, Life> lives_of(const std::vector<Testimony>& testimonies) {
  std::map<std::string, Life> lives;
  for (const Testimony& one : testimonies) {
    Life& life = lives[one.attempt];
    life.tag = one.tag;
    ++(one.start ? life.starts : life.ends);
    if (!one.start) life.code = one.code;
  }
  return lives;
}

std::string job_of(const std::string& attempt) { return attempt.substr(0, attempt.find('.')); }
int number_of(const std::string& attempt) {
  return std::stoi(attempt.substr(attempt.find('.') + 1));
}

class Check {
 public:
  explicit Check(const Evidence& evidence)
      : evidence_(evidence), before_(lives_of(evidence.before)), after_(lives_of(evidence.after)) {}

  Violations run() {
    for (const json& job : evidence_.jobs) {
      by_tag_[job["name"].get<std::string>()].push_back(&job);
      by_id_[std::to_string(job["id"].get<long>())] = &job;
    }
    for (const Submission& submission : evidence_.workload.submissions()) accepted(submission);
    for (const auto& [attempt, life] : before_) ran(attempt, life);
    for (const auto& [id, job] : by_id_) came_to(id, *job);
    for (Violation& violation : check_grants(evidence_.after))
      found_.push_back(std::move(violation));
    return std::move(found_);
  }

 private:
  template <class... Args>
  void say(Kind kind, fmt::format_string<Args...> text, Args&&... args) {
    found_.push_back({kind, fmt::format(text, std::forward<Args>(args)...)});
  }

  // All of a submission, once; or nothing of it, if nobody was told of it.
  void accepted(const Submission& submission) {
    if (submission.client != nullptr) return;  // no answer yet
    attempts_max_[submission.tag] = submission.attempts_max;
    const std::size_t there = by_tag_[submission.tag].size();
    if (there > submission.jobs)
      say(Kind::twice, "submission {} was accepted twice: {} jobs", submission.tag, there);
    if (evidence_.may_be_forgotten) return;
    if (submission.acknowledged && there < submission.jobs)
      say(Kind::lost, "submission {} was acknowledged with {} jobs, {} are there", submission.tag,
          submission.jobs, there);
    if (!submission.acknowledged && there != 0 && there < submission.jobs)
      say(Kind::lost, "submission {} was accepted by half: {} jobs of {}", submission.tag, there,
          submission.jobs);
  }

  void ran(const std::string& attempt, const Life& life) {
    if (life.starts > 1) say(Kind::twice, "attempt {} was started {} times", attempt, life.starts);
    const auto job = by_id_.find(job_of(attempt));
    if (job == by_id_.end()) {
      if (!evidence_.may_be_forgotten)
        say(Kind::lost, "attempt {} ran, and its job is not there", attempt);
      return;
    }
    if ((*job->second)["name"] != life.tag)
      say(Kind::twice, "job {} is {}, and ran as {}: a number was given twice", job->first,
          (*job->second)["name"].get<std::string>(), life.tag);
    if (number_of(attempt) > (*job->second)["attempts"].get<int>())
      say(Kind::twice, "attempt {} ran, takt knows {}", attempt,
          (*job->second)["attempts"].get<int>());
  }

  void came_to(const std::string& id, const json& job) {
    const std::string state = job["state"];
    const int attempts = job["attempts"].get<int>();
    const std::string tag = job["name"];
    if (attempts > attempts_max_[tag] && attempts_max_[tag] > 0)
      say(Kind::twice, "job {} ({}) has {} attempts", id, tag, attempts);
    const bool over = state == "done" || state == "failed" || state == "cancelled";
    if (!over) {
      if (evidence_.all_over) say(Kind::outcome, "job {} is {} for ever", id, state);
      return;
    }
    const bool cancelled = evidence_.workload.cancel_asked(id);
    for (int number = 1; number <= attempts; ++number) {
      const auto life = after_.find(fmt::format("{}.{}", id, number));
      if (life != after_.end() && life->second.starts > life->second.ends && !cancelled)
        say(Kind::killed, "attempt {} ran and did not come to its end", life->first);
    }
    if (state == "cancelled" || evidence_.workload.cancel_acknowledged(id)) {
      if (state != "cancelled") say(Kind::outcome, "job {} was cancelled and is {}", id, state);
      if (!cancelled) say(Kind::outcome, "job {} is cancelled, and nobody asked for it", id);
      return;
    }
    outcome(id, job, fmt::format("{}.{}", id, attempts));
  }

  void outcome(const std::string& id, const json& job, const std::string& attempt) {
    const std::string state = job["state"];
    const auto life = after_.find(attempt);
    const bool ended = life != after_.end() && life->second.ends > 0;
    const std::string shown = job["exit_code"].is_number()
                                  ? std::to_string(job["exit_code"].get<int>())
                                  : std::string("none");
    const std::string reason = job["reason"];
    if (ended && shown == std::to_string(life->second.code) &&
        state == (life->second.code == 0 ? "done" : "failed")) {
      if (life->second.code == 99)
        say(Kind::granted, "attempt {} did not get the memory of its GPU", attempt);
      return;
    }
    // Whose shim was killed has no outcome, and says so.
    if (evidence_.shims_killed.count(attempt) != 0 && state == "failed" && shown == "none" &&
        reason.find("takt-shim") != std::string::npos)
      return;
    say(Kind::outcome, "job {} is {}, exit code {} ('{}'); its attempt {} {}", id, state, shown,
        reason, attempt,
        ended ? fmt::format("exited with {}", life->second.code)
              : std::string(life == after_.end() ? "never began" : "did not end"));
  }

  const Evidence& evidence_;
  const std::map<std::string, Life> before_;
  const std::map<std::string, Life> after_;
  std::map<std::string, std::vector<const json*>> by_tag_;
  std::map<std::string, const json*> by_id_;
  std::map<std::string, int> attempts_max_;
  Violations found_;
};

}  // namespace

Violations check(const Evidence& evidence) { return Check(evidence).run(); }

Violations check_grants(const std::vector<Testimony>& testimonies) {
  Violations found;
  std::set<std::string> ended;
  long gpu_memory_mib = 0;
  for (const Testimony& one : testimonies) {
    if (!one.start) ended.insert(one.attempt);
    gpu_memory_mib = std::max(gpu_memory_mib, one.memory_mib);
  }
  std::map<std::string, std::map<std::string, long>> on_device;  // device -> attempt -> MiB
  for (const Testimony& one : testimonies) {
    if (!one.start) {
      for (auto& [device, attempts] : on_device) attempts.erase(one.attempt);
      continue;
    }
    // One that was ended before it could say so: how long it was there is not known.
    if (ended.count(one.attempt) == 0) continue;
    for (const std::string& device : one.devices) {
      auto& attempts = on_device[device];
      attempts[one.attempt] = one.memory_mib;
      long sum = 0;
      std::string who;
      for (const auto& [attempt, memory] : attempts) {
        sum += memory;
        who += (who.empty() ? "" : ", ") + attempt;
      }
      if (sum > gpu_memory_mib)
        found.push_back({Kind::granted, fmt::format("{} was given to {} at one time: {} MiB of {}",
                                                    device, who, sum, gpu_memory_mib)});
    }
  }
  return found;
}

}  // namespace takt::crash
