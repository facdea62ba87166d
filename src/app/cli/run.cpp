// takt run: submits, streams the output, passes the exit code on.
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "app/cli/commands.h"
#include "app/cli/job_flags.h"
#include "app/cli/log_stream.h"
#include "app/cli/session.h"
#include "edge/codec/api_json.h"

namespace takt::cli {
namespace {

Result<JobSpec> spec_of(const RunFlags& flags) {
  JobSpec spec;
  spec.argv = flags.command;
  for (const std::string& word : flags.command)
    spec.command_text += (spec.command_text.empty() ? "" : " ") + word;
  spec.workdir = current_folder();
  if (auto ok = apply_flags(flags.job, spec); !ok) return tl::make_unexpected(ok.error());
  inherit_environment(spec);
  return spec;
}

// SIGINT and SIGTERM as a readable descriptor; the streaming threads inherit the mask.
int signal_descriptor() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return ::signalfd(-1, &set, SFD_CLOEXEC);
}

enum class Wish { wait, detach, cancel };

// Ctrl-C asks. Without a terminal to ask, or on SIGTERM, the job is cancelled as a shell would end
// it.
Wish ask(int signals, const std::string& job) {
  signalfd_siginfo info{};
  (void)!::read(signals, &info, sizeof info);
  if (info.ssi_signo != SIGINT || ::isatty(STDIN_FILENO) == 0) return Wish::cancel;
  fmt::print(stderr, "\njob {} goes on. [d]etach, [c]ancel, or Enter to keep watching? ", job);
  std::fflush(stderr);
  pollfd fds[2] = {{STDIN_FILENO, POLLIN, 0}, {signals, POLLIN, 0}};
  ::poll(fds, 2, -1);
  if (fds[1].revents != 0) return Wish::cancel;  // a second Ctrl-C
  char line[64] = {};
  if (std::fgets(line, sizeof line, stdin) == nullptr) return Wish::detach;
  return line[0] == 'd' ? Wish::detach : line[0] == 'c' ? Wish::cancel : Wish::wait;
}

void explain_waiting(const codec::JobBrief& job) {
  if (job.state != control::JobState::waiting) return;
  tell(fmt::format("job {} waits:", to_string(job.id)));
  for (const Blocker& b : job.waiting_for)
    fmt::print(stderr, "  needs {}; {}. {}\n", b.needed, b.available, b.action);
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

Result<codec::JobBrief> look(Session& session, const std::string& id, const char* wait,
                             int timeout_ms) {
  auto response =
      session.get("/v1/jobs/" + id, {{"wait", wait}, {"timeout_ms", std::to_string(timeout_ms)}});
  if (!response) return tl::make_unexpected(response.error());
  return codec::read_job(response->body);
}

// Watches until the job has ended or the user leaves; -1: the job has ended.
int watch(Session& session, const std::string& id, int signals) {
  bool explained = false;
  while (true) {
    auto job = look(session, id, "ended", 500);
    if (!job) return complain(job.error());
    if (job->state == control::JobState::done || job->state == control::JobState::failed ||
        job->state == control::JobState::cancelled)
      return -1;
    if (!explained && job->state == control::JobState::waiting) {
      explain_waiting(*job);
      explained = true;
    }
    pollfd fd{signals, POLLIN, 0};
    if (::poll(&fd, 1, 0) <= 0) continue;
    const Wish wish = ask(signals, id);
    if (wish == Wish::detach) {
      tell(fmt::format("job {} goes on: `takt logs -f {}`, `takt cancel {}`", id, id, id));
      return kExitFine;
    }
    if (wish == Wish::cancel) (void)session.post("/v1/jobs/" + id + "/cancel", "");
  }
}

}  // namespace

int run(const RunFlags& flags) {
  auto spec = spec_of(flags);
  if (!spec) return complain(spec.error());
  Session session;
  auto reply =
      session.post("/v1/jobs", codec::submit_request_json({std::move(*spec), Tier::experimental}));
  if (!reply) return complain(reply.error());
  auto receipt = codec::read_submit_reply(reply->body);
  if (!receipt) return complain(receipt.error());
  warn(receipt->warnings);
  const std::string id = to_string(receipt->ids.front());
  if (flags.detach) {
    fmt::print("{}\n", id);
    return kExitFine;
  }
  const int signals = signal_descriptor();
  std::atomic<bool> leave{false};
  std::thread out([&] { (void)copy_log(id, "stdout", STDOUT_FILENO, true, leave); });
  std::thread err([&] { (void)copy_log(id, "stderr", STDERR_FILENO, true, leave); });
  const int left = watch(session, id, signals);
  if (left >= 0) leave = true;
  out.join();
  err.join();
  if (left >= 0) return left;
  auto job = look(session, id, "ended", 0);
  return job ? exit_code_of_job(*job) : complain(job.error());
}

}  // namespace takt::cli
