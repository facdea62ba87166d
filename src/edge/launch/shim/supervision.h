#pragma once
// One attempt under supervision: from the stopped fork to the exit record.
#include <sys/types.h>

#include <cstdint>

#include "edge/launch/shim/job.h"
#include "edge/launch/shim/log_watch.h"
#include "edge/launch/shim/spec.h"

namespace takt::shim {

enum class Begin {
  started,   // the job runs, or its exec is still under way
  recorded,  // it does not, and the exit record says why
  failed,    // it does not, and that could not be recorded either
};

class Supervision {
 public:
  // `folder`: the record folder, whose lock is held.
  explicit Supervision(int folder) : folder_(folder) {}
  ~Supervision();
  Supervision(const Supervision&) = delete;
  Supervision& operator=(const Supervision&) = delete;

  // Reads the order, forks the job, records it and lets it go. `why` is set unless started.
  Begin begin(Sentence& why);
  // Returns when no process of the attempt is left and the exit record is written.
  void wait_for_end();

 private:
  enum class Phase { running, asked_to_end, killing };

  Begin refuse(const char* sentence, Sentence& why);
  bool open_logs(Sentence& why);
  bool await_cgroups(Sentence& why);
  int write_job_record(pid_t job) const;
  bool fork_job(int& release_fd, Sentence& why);
  void abandon_job(int release_fd);
  void await_exec();
  void read_report();
  void read_signals();
  void on_stop_request();
  void reap();
  void advance();
  int timeout_ms() const;
  void kill_again(std::int64_t now);
  int write_exit(bool processes_gone) const;
  bool stop_requested() const;

  const int folder_;
  Spec spec_;
  int log_fds_[2] = {-1, -1};  // of the job's stdout and stderr, until it is forked
  LogWatch logs_;
  Sentence failure_;  // what kept the program from being executed
  int signal_fd_ = -1;
  int report_fd_ = -1;
  pid_t job_ = 0;
  int status_ = 0;  // of waitpid, once ended_us_ is set
  std::int64_t ended_us_ = 0;
  bool job_ended_ = false;
  bool no_children_ = false;
  bool exit_written_ = false;
  Phase phase_ = Phase::running;
  std::int64_t kill_at_ = 0;  // monotonic, microseconds; in phase asked_to_end
  std::int64_t killing_since_ = 0;
};

}  // namespace takt::shim
