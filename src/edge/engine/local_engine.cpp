#include "edge/engine/local_engine.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

#include "core/base/fault_point.h"
#include "edge/codec/agent_json.h"
#include "edge/engine/frame_channel.h"

namespace takt::engine {
namespace {

using Clock = std::chrono::steady_clock;

std::chrono::microseconds chrono_of(Duration d) { return std::chrono::microseconds(d.us); }

// Between fork and exec only async-signal-safe calls: everything is prepared before.
[[noreturn]] void become_agent(char* const* argv, int fd) {
  ::fcntl(fd, F_SETFD, 0);
  // Its own group: Ctrl-C at the server's terminal is the server's business.
  ::setpgid(0, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::execv(argv[0], argv);
  ::_exit(127);
}

struct Child {
  pid_t pid = 0;
  int fd = -1;
};

Result<Child> spawn(const std::vector<std::string>& command) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return fail(ErrorKind::io,
                fmt::format("cannot make the agent's socket: {}", std::strerror(errno)));
  std::vector<std::string> words = command;
  for (std::string& word : words)
    if (word == "{fd}") word = std::to_string(pair[1]);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) become_agent(argv.data(), pair[1]);
  fault_point("engine.after-fork");
  ::close(pair[1]);
  if (pid < 0) {
    ::close(pair[0]);
    return fail(ErrorKind::io, fmt::format("cannot start the agent: {}", std::strerror(errno)));
  }
  return Child{pid, pair[0]};
}

// Ends the agent: closing the socket is its sign to leave; after two seconds it is killed. A call
// into a sick driver can keep it in the kernel even then, so waiting has a bound.
void end_child(pid_t pid) {
  for (int i = 0; i < 300; ++i) {
    if (::waitpid(pid, nullptr, WNOHANG) != 0) return;
    if (i == 200) ::kill(pid, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace

struct LocalEngine::Impl {
  LocalEngineOptions options;
  OnReport on_report;
  OnNote on_note;
  std::mutex mutex;  // guards channel
  std::unique_ptr<FrameChannel> channel;
  std::atomic<std::int64_t> pid{0};
  std::atomic<bool> stopping{false};
  int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::thread thread;
  // Of this agent; only the engine's thread and begin() before it look at them.
  bool greeted = false;
  bool mismatch = false;

  ~Impl() { ::close(wake); }

  Result<void> begin() {
    auto child = spawn(options.agent_command);
    if (!child) return tl::make_unexpected(child.error());
    const std::lock_guard lock(mutex);
    channel = std::make_unique<FrameChannel>(child->fd, codec::agent_frame_bytes_max);
    pid = child->pid;
    greeted = false;
    // One that is gone already is noticed by listen(), which starts another.
    (void)channel->write(codec::encode_hello(options.takt_version), seconds(2));
    return {};
  }

  // Reads reports until the agent is gone or silent; the sentence says which.
  std::string listen() {
    auto last = Clock::now();
    while (!stopping) {
      pollfd fds[2] = {{channel->fd(), POLLIN, 0}, {wake, POLLIN, 0}};
      const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(
          last + chrono_of(options.silent_max) - Clock::now());
      ::poll(fds, 2, static_cast<int>(std::clamp<std::int64_t>(patience.count() + 1, 1, 60'000)));
      if (stopping) break;
      // What has arrived is looked at before the clock: this thread may have been away itself.
      if ((fds[0].revents & (POLLIN | POLLHUP | POLLERR)) == 0 &&
          Clock::now() - last > chrono_of(options.silent_max))
        return fmt::format("the agent sent no report for {} s",
                           static_cast<double>(options.silent_max.us) / 1e6);
      if ((fds[0].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
      auto frames = channel->read_available();
      if (!frames) return frames.error().message;
      for (const std::string& frame : *frames) {
        if (!greeted) {
          const auto fits =
              codec::check_hello(frame, options.takt_version, "the node agent", "this server");
          mismatch = !fits && fits.error().kind == ErrorKind::conflict;
          if (!fits) return fits.error().message;
          greeted = true;
          last = Clock::now();
          continue;
        }
        auto report = codec::decode_report(frame);
        if (!report) return report.error().message;
        last = Clock::now();
        on_report(std::move(*report));
      }
    }
    return "";
  }

  void run() {
    while (true) {
      const std::string why = channel ? listen() : "";
      {
        const std::lock_guard lock(mutex);
        channel.reset();
      }
      if (pid != 0) end_child(static_cast<pid_t>(pid.exchange(0)));
      if (stopping) return;
      if (!why.empty()) on_note(fmt::format("starting the node agent again: {}", why));
      pollfd p{wake, POLLIN, 0};
      const Duration pause = mismatch ? options.mismatch_pause : options.restart_pause;
      mismatch = false;
      ::poll(&p, 1, static_cast<int>(pause.us / 1000));
      if (stopping) return;
      if (auto ok = begin(); !ok) on_note(ok.error().message);
    }
  }
};

LocalEngine::LocalEngine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<LocalEngine>> LocalEngine::start(LocalEngineOptions options,
                                                        OnReport on_report, OnNote on_note) {
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  impl->on_report = std::move(on_report);
  impl->on_note = std::move(on_note);
  const std::string& program = impl->options.agent_command.front();
  if (::access(program.c_str(), X_OK) != 0)
    return fail(ErrorKind::io,
                fmt::format("cannot start the node agent: {} is not a program that can "
                            "be executed: reinstall takt",
                            program));
  if (auto ok = impl->begin(); !ok) return tl::make_unexpected(ok.error());
  Impl* raw = impl.get();
  impl->thread = std::thread([raw] { raw->run(); });
  return std::unique_ptr<LocalEngine>(new LocalEngine(std::move(impl)));
}

LocalEngine::~LocalEngine() { stop(); }

void LocalEngine::send(const std::vector<control::Effect>& effects) {
  const std::lock_guard lock(impl_->mutex);
  if (!impl_->channel) return;
  for (const control::Effect& effect : effects)
    if (!impl_->channel->write(codec::encode_effect(effect), seconds(2))) return;
}

void LocalEngine::stop() {
  if (impl_->stopping.exchange(true)) return;
  const std::uint64_t one = 1;
  (void)!::write(impl_->wake, &one, sizeof one);
  impl_->thread.join();
}

std::int64_t LocalEngine::agent_pid() const { return impl_->pid; }

}  // namespace takt::engine
