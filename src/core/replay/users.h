#pragma once
// People: they submit, cancel, hold and release, ask again when no answer comes, and remember what
// they were told. Workloads say who wants what.
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/control/handle.h"
#include "core/replay/server.h"

namespace takt::replay {

// What people were told, which must hold from then on.
struct Promises {
  // Client's request, by user -> the jobs that it made.
  std::map<std::string, std::vector<JobId>> submitted;
  std::set<JobId> jobs;
  std::set<JobId> asked_to_cancel;        // whether or not an answer came
  std::set<std::uint32_t> cancelled_all;  // users who asked for that
};

class Users {
 public:
  Users(Server& server, Random random) : server_(server), random_(random) {}

  void submit(JobSpec spec, const control::Identity& who);
  void cancel(JobId job, const control::Identity& who);
  void cancel_all(const control::Identity& who);
  void hold(JobId job, const control::Identity& who);
  void release(JobId job, const control::Identity& who);
  // One of those that somebody knows of; none: there are none.
  std::optional<JobId> a_job(Random& random) const;
  std::size_t known() const { return promises_.jobs.size(); }

  // Asks again what was not answered.
  void advance(Instant truth);
  // What the answer made people certain of; the token's command. Null: nobody waits for it.
  const control::Command* answered(std::uint64_t token, const Result<control::Accepted>& answer);
  const Promises& promises() const { return promises_; }
  bool waits() const { return !open_.empty(); }

 private:
  struct Open {
    control::Command command;
    Instant asked;
    bool under_way = false;
  };
  void ask(control::Command command);
  void ask(std::uint64_t token, Open& open);

  Server& server_;
  Random random_;
  Instant truth_;
  Promises promises_;
  std::map<std::uint64_t, Open> open_;
  std::optional<Open> done_;  // the last answered
  std::uint64_t next_token_ = 1;
};

control::Identity user(int number);  // 0 ... 2; root is number -1

}  // namespace takt::replay
