#include "app/cli/submission.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

namespace takt::cli {
namespace {

using Clock = std::chrono::steady_clock;

// For how long an answer that was lost is asked for again: a server restarts in that time.
constexpr std::chrono::seconds kLostMax{60};
// For how long Ctrl-C waits for the answer.
constexpr std::chrono::seconds kInterruptedMax{10};

constexpr const char* kUnknown =
    "no answer came: the job may have been made; `takt ps --all` lists yours";

// 128 random bits: two submissions never share one.
std::string random_id() {
  std::random_device source;
  std::string id;
  for (int i = 0; i < 4; ++i) id += fmt::format("{:08x}", static_cast<std::uint32_t>(source()));
  return id;
}

// Asks until there is an answer, or no hope of one.
class Asking {
 public:
  Asking(std::string body, Query query) : body_(std::move(body)), query_(std::move(query)) {}

  Sent ask() {
    while (true) {
      Attempt attempt = session_.attempt("POST", "/v1/jobs", query_, body_, seconds(60));
      sent_ = sent_ || (attempt.sent && attempt.reached == Reached::no);
      if (attempt.reached == Reached::yes) return result(std::move(attempt.answer));
      const std::string sentence = attempt.answer ? "" : attempt.answer.error().message;
      const bool hope = sent_ || attempt.reached == Reached::later;
      const auto limit = sent_ ? kLostMax : std::chrono::seconds(kBusyMax.us / 1'000'000);
      if (!hope || Clock::now() - began_ >= limit) {
        tell(sentence);
        if (sent_) tell(kUnknown);
        return {kExitNoServer, "", 0};
      }
      if (sent_ && !std::exchange(told_, true))
        tell("the server went away before it answered: asking again (this makes no second job)");
      std::this_thread::sleep_for(pause_);
      pause_ = std::min(2 * pause_, std::chrono::milliseconds(2000));
    }
  }

 private:
  static Sent result(Result<http::Response> answer) {
    if (!answer) return {complain(answer.error()), "", 0};
    return {std::nullopt, std::move(answer->body), 0};
  }

  const std::string body_;
  const Query query_;
  Session session_;
  const Clock::time_point began_ = Clock::now();
  std::chrono::milliseconds pause_{100};
  bool sent_ = false;  // a try may have been carried out
  bool told_ = false;
};

// What the asking thread leaves to the one that listens to signals; it may outlive both.
struct Answer {
  const int there = ::eventfd(0, EFD_CLOEXEC);
  std::mutex mutex;
  Sent sent;
  ~Answer() { ::close(there); }
};

int milliseconds_until(Clock::time_point end) {
  return static_cast<int>(std::max<std::int64_t>(
      0, std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count()));
}

[[noreturn]] void give_up() {
  tell(kUnknown);
  std::_Exit(kExitNoServer);  // a thread still waits for the server
}

}  // namespace

int signal_descriptor() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return ::signalfd(-1, &set, SFD_CLOEXEC);
}

int read_signal(int signals) {
  signalfd_siginfo info{};
  if (::read(signals, &info, sizeof info) != sizeof info) return 0;
  return static_cast<int>(info.ssi_signo);
}

Sent send_submission(codec::SubmitRequest request, const Query& query, int signals) {
  request.request_id = random_id();
  const auto answer = std::make_shared<Answer>();
  std::thread asking([answer, body = codec::submit_request_json(request), query] {
    Sent sent = Asking(body, query).ask();
    {
      const std::lock_guard lock(answer->mutex);
      answer->sent = std::move(sent);
    }
    const std::uint64_t one = 1;
    (void)!::write(answer->there, &one, sizeof one);
  });
  int signal = 0;
  Clock::time_point end{};
  while (true) {
    pollfd fds[2] = {{answer->there, POLLIN, 0}, {signals, POLLIN, 0}};
    const int ready = ::poll(fds, 2, signal == 0 ? -1 : milliseconds_until(end));
    if (fds[0].revents != 0) break;
    if (ready == 0 && signal != 0) give_up();
    if (ready <= 0 || fds[1].revents == 0) continue;
    if (signal != 0) give_up();
    signal = read_signal(signals);
    end = Clock::now() + kInterruptedMax;
    tell("waiting for the server's answer, since the job may be made already; once more leaves");
  }
  asking.join();
  answer->sent.signal = signal;
  return std::move(answer->sent);
}

}  // namespace takt::cli
