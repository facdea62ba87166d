#pragma once
// Real processes in a folder of their own. What a test leaves alive is ended with it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "edge/launch/launcher.h"
#include "edge/launch/record_folder.h"
#include "edge/launch/shim/processes.h"
#include "support/places.h"

namespace takt::launch {

// True as soon as `what` holds; false when it has not within the deadline.
inline bool eventually(const std::function<bool()>& what,
                       std::chrono::milliseconds deadline = std::chrono::seconds(20)) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!what()) {
    if (std::chrono::steady_clock::now() > end) return what();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

inline std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::size_t count_lines(const std::string& path) {
  const std::string text = read_text(path);
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

inline bool is_alive(std::int64_t pid) {
  shim::ProcessStat stat;
  return shim::read_stat(static_cast<pid_t>(pid), stat) && stat.state != 'Z' && stat.state != 'X';
}

// Runs `body` in a forked child (of another user, in another mount namespace, ...). What it returns
// comes back: "" is success.
inline std::string in_child(const std::function<std::string()>& body) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return "no pipe";
  const pid_t child = fork();
  if (child < 0) return "no fork";
  if (child == 0) {
    const std::string said = body();
    (void)!write(ends[1], said.data(), said.size());
    _exit(said.empty() ? 0 : 1);
  }
  close(ends[1]);
  std::string said;
  std::array<char, 1024> piece;
  for (ssize_t size = 0; (size = read(ends[0], piece.data(), piece.size())) > 0;) {
    said.append(piece.data(), static_cast<std::size_t>(size));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (said.empty() && status != 0) return "the child ended with status " + std::to_string(status);
  return said;
}

class LaunchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const chosen = std::getenv("TMPDIR");
    const std::string above = chosen != nullptr               ? chosen
                              : access("/dev/shm", W_OK) == 0 ? "/dev/shm"
                                                              : "/tmp";
    std::string pattern = above + "/takt-launch-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr) << pattern;
    chmod(pattern.c_str(), 0755);
    folder = pattern;
    options.records_dir = folder + "/records";
    options.shim_path = ::takt::testing::build_folder() + "/takt-shim";
    options.leftover_grace = milliseconds(500);
    open_launcher();
  }

  void TearDown() override {
    if (launcher) end_everything(*launcher);
    launcher.reset();
    std::error_code error;
    std::filesystem::remove_all(folder, error);
  }

  void open_launcher() {
    auto opened = Launcher::open(options);
    ASSERT_TRUE(opened) << opened.error().message;
    launcher = std::move(*opened);
  }

  static void end_everything(Launcher& of) {
    const auto all_gone = [&of] {
      bool gone = true;
      for (const auto& seen : of.scan()) {
        if (seen.phase == control::AttemptPhase::exited && seen.processes_gone) {
          gone = of.forget(seen.attempt).has_value() && gone;
        } else {
          (void)of.stop(seen.attempt, Duration{});
          gone = false;
        }
      }
      return gone;
    };
    EXPECT_TRUE(eventually(all_gone)) << "processes or records are left";
    EXPECT_TRUE(of.pids().empty());
  }

  static AttemptId attempt(std::uint64_t job, std::uint32_t number = 1) {
    return {JobId(job), number};
  }

  // A shell script as the current user, its output in `<folder>/<job>.<attempt>.out`.
  control::LaunchOrder order(std::uint64_t job, const std::string& script) const {
    control::LaunchOrder made;
    made.attempt = attempt(job);
    made.generation = 1;
    made.identity = {geteuid(), getegid(), {getegid()}, "me", folder};
    made.argv = {"/bin/sh", "-c", script};
    made.env = {{"PATH", "/usr/local/bin:/usr/bin:/bin", false}};
    made.workdir = folder;
    made.stdout_path = out(job);
    made.stderr_path = out(job);
    return made;
  }
  std::string out(std::uint64_t job) const { return folder + "/" + std::to_string(job) + ".out"; }

  static control::AttemptSeen find(Launcher& in, std::uint64_t job) {
    for (const auto& seen : in.scan()) {
      if (seen.attempt == attempt(job)) return seen;
    }
    return {};
  }
  control::AttemptSeen find(std::uint64_t job) { return find(*launcher, job); }

  static control::AttemptSeen wait_for_exit(Launcher& in, std::uint64_t job) {
    control::AttemptSeen seen;
    EXPECT_TRUE(eventually([&] {
      seen = find(in, job);
      return seen.phase == control::AttemptPhase::exited && seen.processes_gone;
    })) << "attempt of job "
        << job << " has not ended";
    return seen;
  }
  control::AttemptSeen wait_for_exit(std::uint64_t job) { return wait_for_exit(*launcher, job); }

  ExitStatus run(const control::LaunchOrder& what) {
    const auto started = launcher->start(what);
    EXPECT_TRUE(started) << started.error().message;
    return wait_for_exit(what.attempt.job.value).exit.value_or(ExitStatus{});
  }

  bool wait_for_text(const std::string& path, const std::string& text) {
    return eventually([&] { return read_text(path).find(text) != std::string::npos; });
  }

  std::string record(std::uint64_t job) const {
    return options.records_dir + "/" + to_string(attempt(job));
  }

  std::string folder;
  LauncherOptions options;
  std::unique_ptr<Launcher> launcher;
};

// The same without cgroups: the process tree alone.
class LaunchBothWays : public LaunchTest, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    options.use_cgroups = GetParam();
    LaunchTest::SetUp();
  }
};

inline std::string way_name(const ::testing::TestParamInfo<bool>& way) {
  return way.param ? "with_cgroups" : "by_process_tree";
}

}  // namespace takt::launch
