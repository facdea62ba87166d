#pragma once
// Submissions by the id that the client chose for them, so that a client whose answer was lost can
// ask again without making a second job. The state knows the ids of its live jobs, over a restart
// too (Submission::request); this one remembers for an hour, whatever has become of the jobs, and
// what the body was.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/control/handle.h"

namespace takt::server {

class RecentRequests {
 public:
  struct Limits {
    std::size_t requests_max = 10'000;      // remembered; the oldest goes
    std::chrono::seconds age_max{60 * 60};  // clients stop asking long before
  };
  RecentRequests() : RecentRequests(Limits{}) {}
  explicit RecentRequests(Limits limits) : limits_(limits) {}

  using Submit = std::function<Result<control::Accepted>()>;
  // Submits at most once for each (uid, id): the same id at the same time waits for the first, and
  // later ones get the jobs that it made, with no facts. What was refused is forgotten, so that it
  // may be tried again. Errors: those of `submit`; conflict when the id was used for another body.
  Result<control::Accepted> once(std::uint32_t uid, const std::string& id, const std::string& body,
                                 const Submit& submit);

 private:
  using Key = std::pair<std::uint32_t, std::string>;
  struct Entry {
    std::size_t body = 0;  // a hash of it
    bool done = false;
    std::vector<JobId> jobs;
    std::vector<std::string> warnings;
    std::chrono::steady_clock::time_point at;
  };
  void forget_old();

  const Limits limits_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, Entry> entries_;
  std::deque<Key> order_;  // of those that are done, the oldest first
};

}  // namespace takt::server
