#pragma once
// Takes finished jobs out of the live state and keeps them findable: they are saved and synced in
// archive.db, and only then the loop is told that they may leave. After the times and sizes of the
// policy they leave for good, with what they printed.
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "app/server/controller.h"
#include "edge/store/archive.h"

namespace takt::server {

class Archivist {
 public:
  struct Options {
    std::string logs;  // folder of log files
    Clock clock;
    Note note;
    // How often it looks; a sweep of the log files only every hundredth time.
    Duration pause = seconds(5);
  };
  // A job that is not in the live state any more: a state with only it in it, for views.
  struct Found {
    JobId id;
    control::State state;
    const control::Job& job() const { return state.jobs.at(id); }
  };
  struct Page {
    std::vector<Found> jobs;  // newest end first
    std::uint64_t more = 0;   // that fit too and are older
  };

  // `archive` may be null (it could not be opened): then finished jobs stay in the live state.
  Archivist(std::unique_ptr<store::Archive> archive, Controller& controller, Options options);
  ~Archivist();
  Archivist(const Archivist&) = delete;
  Archivist& operator=(const Archivist&) = delete;

  void start();
  void stop();

  // From any thread.
  Result<std::optional<Found>> find(JobId id) const;
  Result<Page> newest(const store::Archive::Wanted& wanted, std::size_t limit) const;

  // What the thread does each time; for tests. The number of jobs that left the live state.
  Result<std::size_t> archive_finished();
  Result<void> forget_old();
  void sweep_logs();

 private:
  void run();
  void complain_once(const std::string& sentence);
  Result<Found> found(const store::ArchivedJob& job) const;
  void remove_logs(const std::vector<store::Archive::Removed>& jobs) const;
  std::set<std::string> live_logs() const;

  std::unique_ptr<store::Archive> archive_;
  Controller& controller_;
  const Options options_;
  std::string complained_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace takt::server
