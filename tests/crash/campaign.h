#pragma once
// Many rounds with one takt and one state folder: in each, jobs are submitted, something is killed,
// what was killed comes back, and all is looked at. At the end nothing may be left.
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>

#include "crash/board.h"
#include "crash/checks.h"
#include "crash/leftovers.h"
#include "crash/table.h"
#include "crash/workload.h"

namespace takt::crash {

struct Round {
  std::optional<std::size_t> point;  // none: at a random moment
  int at_time = 1;                   // of reaching the point
  // Killed at a random moment; or right after the process that reached the point.
  bool controller = false;
  bool agent = false;
  bool shims = false;
};
std::string describe(const Round& round);

class Campaign {
 public:
  explicit Campaign(unsigned seed);
  ~Campaign();
  Campaign(const Campaign&) = delete;
  Campaign& operator=(const Campaign&) = delete;

  void run(const Round& round);
  // Waits for all jobs, stops the server, and looks at what is left.
  void finish();
  // The server does not come back: there is no use in going on.
  bool broken() const { return broken_; }

 private:
  static std::filesystem::path make_folder();
  std::map<std::string, std::string> environment() const;
  void start_server();
  bool server_ended() const;
  bool bring_up();
  void kill_server();
  void kill_together(const Round& round);
  void at_point(const Round& round);
  void at_random_moment(const Round& round);
  bool wait_for(std::size_t point, std::chrono::milliseconds limit);
  void provoke(std::size_t point);
  void restart_for(std::size_t point);
  std::string some_running_job() const;
  void look(bool all_over);
  void tell(const Violations& violations);
  void pause_up_to(int milliseconds);

  const std::filesystem::path folder_;
  const std::filesystem::path programs_;
  std::mt19937 random_;
  FaultBoard board_;
  Workload workload_;
  Leftovers leftovers_;
  std::unique_ptr<endtoend::Beside> server_;
  bool end_expected_ = true;
  std::optional<std::size_t> armed_;
  bool broken_ = false;
  bool trims_ = false;  // the server runs with an archive that forgets
  std::string policy_ = "finished: {live_max: 12}\n";
  std::set<std::string> shims_killed_;  // their attempts
  std::set<std::string> told_;
  int rounds_ = 0;
  std::string now_;  // the round
  TableLine* line_ = nullptr;
};

}  // namespace takt::crash
