// takt run: submits, streams the output, passes the exit code on.
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "app/cli/commands.h"
#include "app/cli/job_flags.h"
#include "app/cli/log_stream.h"
#include "app/cli/output.h"
#include "app/cli/patience.h"
#include "app/cli/session.h"
#include "app/cli/submission.h"
#include "edge/codec/api_json.h"

namespace takt::cli {
namespace {

Result<JobSpec> spec_of(const RunFlags& flags) {
  JobSpec spec;
  spec.argv = flags.command;
  for (const std::string& word : flags.command)
    spec.command_text += (spec.command_text.empty() ? "" : " ") + word;
  auto folder = current_folder();
  if (!folder) return tl::make_unexpected(folder.error());
  spec.workdir = *folder;
  if (auto ok = apply_flags(flags.job, spec); !ok) return tl::make_unexpected(ok.error());
  inherit_environment(spec);
  return spec;
}

void explain_waiting(const codec::JobBrief& job) {
  std::string text = fmt::format("job {} waits:", to_string(job.id));
  for (const Blocker& b : job.waiting_for)
    text += fmt::format("\n  needs {}; {}. {}", b.needed, b.available, b.action);
  tell(text);
}

int exit_code_of_job(const codec::JobBrief& job) {
  if (!job.reason.empty() && job.state != control::JobState::done)
    tell(
        fmt::format("job {} {}: {}", to_string(job.id), control::to_string(job.state), job.reason));
  if (job.state == control::JobState::done) return 0;
  if (job.exit_code && *job.exit_code != 0) return *job.exit_code;
  if (job.signal && *job.signal != 0) return 128 + *job.signal;
  return kExitFailed;
}

bool is_over(control::JobState state) {
  return state == control::JobState::done || state == control::JobState::failed ||
         state == control::JobState::cancelled;
}

// One attached job: threads follow it, the main thread listens to signals.
struct Attached {
  Attached(std::string id_in, Duration reconnect)
      : id(std::move(id_in)), patience(fmt::format("job {} goes on", id), reconnect) {
    patience.known();
  }
  ~Attached() { ::close(over); }

  // The first reason counts.
  void end(int with) {
    {
      const std::lock_guard lock(mutex);
      if (code) return;
      code = with;
    }
    patience.leave();
    const std::uint64_t one = 1;
    (void)!::write(over, &one, sizeof one);
  }
  void goes_on() const {
    tell(fmt::format("job {} goes on: `takt logs -f {}`, `takt cancel {}`", id, id, id));
  }
  // Following it has failed; the job has not.
  void fail(const Error& error) {
    if (patience.left()) return;
    const bool gone = error.kind == ErrorKind::not_found;
    if (!error.message.empty()) tell(error.message);
    if (!gone) goes_on();
    end(patience.gave_up() ? kExitNoServer : kExitFailed);
  }

  const std::string id;
  Patience patience;
  const int over = ::eventfd(0, EFD_CLOEXEC);
  std::mutex mutex;
  std::optional<int> code;
};

Result<codec::JobBrief> look(Session& session, Attached& job, const char* wait, int timeout_ms) {
  auto response = job.patience.get(session, "/v1/jobs/" + job.id,
                                   {{"wait", wait}, {"timeout_ms", std::to_string(timeout_ms)}});
  if (!response) return tl::make_unexpected(response.error());
  return codec::read_job(response->body);
}

void stream(Attached& job, const char* name, int fd) {
  if (auto ok = copy_log(job.id, name, fd, true, job.patience); !ok) job.fail(ok.error());
}

// Until the job has ended, the user leaves or following it fails.
void follow(Attached& job) {
  std::thread out([&] { stream(job, "stdout", STDOUT_FILENO); });
  std::thread err([&] { stream(job, "stderr", STDERR_FILENO); });
  Session session;
  auto seen = look(session, job, "started", 500);
  if (seen && seen->state == control::JobState::waiting) explain_waiting(*seen);
  session.disconnect();  // two connections are enough for as long as it runs
  out.join();
  err.join();
  while (!job.patience.left()) {
    seen = look(session, job, "ended", 1000);
    if (!seen) return job.fail(seen.error());
    if (is_over(seen->state)) return job.end(exit_code_of_job(*seen));
  }
}

enum class Wish { wait, detach, cancel };

// Ctrl-C asks. Without a terminal to ask, or on SIGTERM, the job is cancelled as a shell would end
// it.
Wish ask(int signal, int signals, const Attached& job) {
  if (signal != SIGINT || ::isatty(STDIN_FILENO) == 0) return Wish::cancel;
  (void)write_all(
      STDERR_FILENO,
      fmt::format("\njob {} goes on. [d]etach, [c]ancel, or Enter to keep watching? ", job.id));
  pollfd fds[3] = {{STDIN_FILENO, POLLIN, 0}, {signals, POLLIN, 0}, {job.over, POLLIN, 0}};
  ::poll(fds, 3, -1);
  if (fds[2].revents != 0) return Wish::wait;    // there is nothing left to decide
  if (fds[1].revents != 0) return Wish::cancel;  // a second Ctrl-C
  char line[64] = {};
  if (std::fgets(line, sizeof line, stdin) == nullptr) return Wish::detach;
  return line[0] == 'd' ? Wish::detach : line[0] == 'c' ? Wish::cancel : Wish::wait;
}

// What a signal comes to; a code when the command is to be left.
std::optional<int> heed(int signal, int signals, const Attached& job) {
  if (job.patience.away()) {
    tell(fmt::format("the server is away and job {} was not cancelled", job.id));
    job.goes_on();
    return kExitNoServer;
  }
  switch (ask(signal, signals, job)) {
    case Wish::wait: return std::nullopt;
    case Wish::detach: job.goes_on(); return kExitFine;
    case Wish::cancel: break;
  }
  Session session;
  const Attempt cancelled =
      session.attempt("POST", "/v1/jobs/" + job.id + "/cancel", {}, "", seconds(10));
  if (cancelled.answer || cancelled.answer.error().kind == ErrorKind::conflict) return std::nullopt;
  tell(fmt::format("job {} could not be cancelled: {}", job.id, cancelled.answer.error().message));
  job.goes_on();
  return cancelled.reached == Reached::yes ? kExitFailed : kExitNoServer;
}

int attend(const std::string& id, int signal, int signals, Duration reconnect) {
  Attached job(id, reconnect);
  std::thread following([&] { follow(job); });
  while (true) {
    if (signal != 0)
      if (const auto code = heed(signal, signals, job)) std::_Exit(*code);  // threads still follow
    pollfd fds[2] = {{job.over, POLLIN, 0}, {signals, POLLIN, 0}};
    ::poll(fds, 2, -1);
    if (fds[0].revents != 0) break;
    signal = fds[1].revents != 0 ? read_signal(signals) : 0;
  }
  // A thread may still wait for a server that hangs, or for the reader of its pipe.
  if (job.patience.gave_up()) std::_Exit(*job.code);
  following.join();
  return *job.code;
}

}  // namespace

int run(const RunFlags& flags) {
  const auto reconnect = reconnect_time(flags.reconnect);
  if (!reconnect) return complain(reconnect.error());
  auto spec = spec_of(flags);
  if (!spec) return complain(spec.error());
  const int signals = signal_descriptor();
  const Sent sent = send_submission({std::move(*spec), Tier::experimental}, {}, signals);
  if (sent.code) return *sent.code;
  auto receipt = codec::read_submit_reply(sent.answer);
  if (!receipt) return complain(receipt.error());
  warn(receipt->warnings);
  const std::string id = to_string(receipt->ids.front());
  if (!flags.detach) return attend(id, sent.signal, signals, *reconnect);
  if (sent.signal != 0) tell(fmt::format("job {} was made: `takt cancel {}` ends it", id, id));
  return put(id + "\n", sent.signal == 0 ? kExitFine : 128 + sent.signal);
}

}  // namespace takt::cli
