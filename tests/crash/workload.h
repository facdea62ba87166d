#pragma once
// Jobs of all kinds for one private takt, and what is known of them from outside of takt: which
// submissions and cancels were acknowledged, and what the jobs themselves wrote when they began and
// ended.
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "endtoend/harness.h"

namespace takt::crash {

// A line that a job wrote: at its start, or at its end.
struct Testimony {
  bool start = false;
  std::string tag;
  std::string attempt;               // "17.1"
  std::vector<std::string> devices;  // start: what it was given
  long memory_mib = 0;               // start: on each of them
  int code = 0;                      // end: what it is about to exit with
};

// One submission: one job, or an array.
struct Submission {
  std::string tag;
  std::size_t jobs = 1;
  int attempts_max = 1;
  std::unique_ptr<endtoend::Beside> client;  // until it has answered
  bool acknowledged = false;
};

class Workload {
 public:
  // Commands are run from `programs`/takt.
  Workload(std::filesystem::path folder, std::filesystem::path programs,
           std::map<std::string, std::string> environment, unsigned seed);

  // Submits a handful, each by a client of its own; without waiting for the answers.
  void submit_some();
  // One job that runs for longer; for cancels and killed shims.
  void submit_long();
  // As many jobs with as large an environment as the archive must not hold.
  void submit_bulky();
  // Asks for the end of a job; without waiting for the answer.
  void cancel(const std::string& job);
  // Waits for all answers. False: a client has none in time.
  bool collect_answers();
  // Waits until every job that is known is over.
  bool wait_until_over() const;

  endtoend::Outcome takt(const std::vector<std::string>& arguments) const;
  std::vector<Testimony> testimonies() const;

  const std::vector<Submission>& submissions() const { return submissions_; }
  std::size_t acknowledged_jobs() const;
  bool cancel_asked(const std::string& job) const { return cancel_asked_.count(job) != 0; }
  bool cancel_acknowledged(const std::string& job) const {
    return cancel_acknowledged_.count(job) != 0;
  }

 private:
  struct Kind {
    std::vector<std::string> flags;
    double seconds = 0;
    int code = 0;
    std::string manner = "plain";  // of job.sh
  };
  std::string next_tag() { return "t" + std::to_string(++tags_); }
  void run(const Kind& kind);
  void submit(const std::string& fields, double seconds, const std::string& manner,
              std::size_t jobs, int attempts_max);
  std::string write(const std::string& name, const std::string& text) const;
  double between(double from, double to);

  const std::filesystem::path folder_;
  const std::filesystem::path programs_;
  const std::map<std::string, std::string> environment_;
  std::mt19937 random_;
  int tags_ = 0;
  std::vector<Submission> submissions_;
  std::vector<std::pair<std::string, std::unique_ptr<endtoend::Beside>>> cancels_;
  std::set<std::string> cancel_asked_;
  std::set<std::string> cancel_acknowledged_;
};

}  // namespace takt::crash
