#pragma once
// Waiting for a server that is away while a job goes on without it: what `run`, `logs -f` and `top`
// poll with. Shared by the threads of one command.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>

#include "app/cli/session.h"

namespace takt::cli {

class Patience {
 public:
  // goes_on: what people are told beside "the server is away", e.g. "job 17 goes on".
  // at_most: for so long a server that has answered before is waited for.
  Patience(std::string goes_on, Duration at_most);

  // A GET that is asked again until somebody answers, with pauses that grow to two seconds. An
  // absence is told once, and so is its end. Errors: those of the server; unavailable when the time
  // is up or somebody leaves. A server that was never there is not waited for.
  Result<http::Response> get(Session& session, const std::string& path, const Query& query);

  void known();  // the server has answered this command before
  void leave();  // ends all waits
  bool left() const;
  bool away() const;     // at present nobody answers
  bool gave_up() const;  // the time was up, or nobody was ever there

 private:
  void answered();
  // False: it is not worth another try.
  bool wait(Reached reached, const std::string& sentence,
            std::chrono::steady_clock::time_point since, std::chrono::milliseconds pause);

  const std::string goes_on_;
  const Duration at_most_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool known_ = false;
  bool away_ = false;
  bool busy_told_ = false;
  bool left_ = false;
  bool gave_up_ = false;
};

// "5m" of --reconnect.
Result<Duration> reconnect_time(const std::string& text);

}  // namespace takt::cli
