// Shims that come late, or never: an attempt is started once or not at all, whoever waits for it.
#include <gmock/gmock.h>

#include "launch_fixture.h"

namespace takt::launch {
namespace {

using control::AttemptPhase;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SilentShim : public LaunchBothWays {
 protected:
  void SetUp() override {
    options.answer_wait = milliseconds(100);
    options.shim_patience = seconds(60);
    LaunchBothWays::SetUp();
    real_shim = options.shim_path;
  }
  void TearDown() override {
    come();
    EXPECT_TRUE(eventually([&] { return programs_on(1) == 0; })) << "a late shim is still there";
    LaunchBothWays::TearDown();
  }
  // From now on shims are on their way until come().
  void send_late_shims() {
    options.shim_path = folder + "/late-shim";
    std::ofstream(options.shim_path)
        << "#!/bin/sh\n( while [ ! -e " << folder << "/go ]; do sleep 0.01; done; exec "
        << real_shim << " \"$@\" ) &\n";
    chmod(options.shim_path.c_str(), 0755);
    reopen();
  }
  void reopen() {
    launcher.reset();
    open_launcher();
  }
  void come() { std::ofstream(folder + "/go") << "go"; }
  // Processes with the record folder of `job` in their command lines.
  std::size_t programs_on(std::uint64_t job) const {
    std::size_t found = 0;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
      const std::string line = read_text(entry.path().string() + "/cmdline");
      if (line.find(record(job)) != std::string::npos) ++found;
    }
    return found;
  }
  control::LaunchOrder counted(const std::string& rest = "exit 6") {
    return order(1, "echo run >> " + count() + "; " + rest);
  }
  std::string count() const { return folder + "/count"; }

  std::string real_shim;
};
INSTANTIATE_TEST_SUITE_P(, SilentShim, ::testing::Bool(), way_name);

TEST_P(SilentShim, An_attempt_whose_shim_is_late_is_starting_and_then_runs) {
  send_late_shims();
  ASSERT_TRUE(launcher->start(counted()));
  const auto seen = find(1);
  ASSERT_EQ(seen.attempt, attempt(1)) << "it is in the report";
  EXPECT_EQ(seen.phase, AttemptPhase::starting);
  EXPECT_EQ(seen.generation, 1u);
  EXPECT_FALSE(seen.processes_gone);
  EXPECT_FALSE(seen.exit);
  come();
  EXPECT_EQ(wait_for_exit(1).exit->code, 6);
}

TEST_P(SilentShim, Two_late_shims_of_one_attempt_start_it_once) {
  send_late_shims();
  ASSERT_TRUE(launcher->start(counted()));
  ASSERT_TRUE(launcher->start(counted()));
  EXPECT_EQ(programs_on(1), 2u);
  come();
  EXPECT_EQ(wait_for_exit(1).exit->code, 6);
  EXPECT_TRUE(eventually([&] { return programs_on(1) == 0; }));
  EXPECT_EQ(count_lines(count()), 1u);
}

TEST_P(SilentShim, One_that_never_comes_is_given_up_and_can_start_nothing_afterwards) {
  options.shim_patience = milliseconds(200);
  send_late_shims();
  ASSERT_TRUE(launcher->start(counted()));
  EXPECT_EQ(find(1).phase, AttemptPhase::starting);
  const auto seen = wait_for_exit(1);
  EXPECT_EQ(seen.exit->cause, ExitCause::start_failed);
  EXPECT_THAT(seen.exit->message, HasSubstr("takt-shim has not answered within 0.2 s"));
  come();
  EXPECT_TRUE(eventually([&] { return programs_on(1) == 0; }));
  EXPECT_EQ(find(1).exit->cause, ExitCause::start_failed);
  EXPECT_FALSE(std::filesystem::exists(count()));
}

TEST_P(SilentShim, A_stop_decides_an_attempt_that_is_starting) {
  send_late_shims();
  ASSERT_TRUE(launcher->start(counted()));
  ASSERT_TRUE(launcher->stop(attempt(1), seconds(1)));
  const auto seen = find(1);
  ASSERT_EQ(seen.phase, AttemptPhase::exited);
  EXPECT_EQ(seen.exit->message, "stopped before it was started");
  come();
  EXPECT_TRUE(eventually([&] { return programs_on(1) == 0; }));
  EXPECT_FALSE(std::filesystem::exists(count()));
}

TEST_P(SilentShim, One_that_has_the_lock_is_never_given_up) {
  options.shim_patience = Duration{};
  send_late_shims();
  ASSERT_EQ(mkdir(record(1).c_str(), 0700), 0);
  ASSERT_TRUE(write_spec(record(1), *format_spec(counted(), {}, {})));
  {
    const auto at_work = RecordLock::try_take(record(1));
    ASSERT_TRUE(at_work);
    ASSERT_TRUE(launcher->start(counted()));
    EXPECT_EQ(programs_on(1), 0u) << "no second shim is sent";
    EXPECT_EQ(find(1).phase, AttemptPhase::starting);
    ASSERT_TRUE(launcher->stop(attempt(1), Duration{}));
    EXPECT_EQ(find(1).phase, AttemptPhase::starting);
    EXPECT_THAT(launcher->notes(), Contains(HasSubstr("attempt 1.1: its takt-shim is at work")));
  }
  EXPECT_EQ(find(1).exit->cause, ExitCause::start_failed);
  EXPECT_THAT(launcher->notes(), ::testing::Not(Contains(HasSubstr("attempt 1.1"))));
}

TEST_P(SilentShim, A_launcher_killed_while_its_shim_is_on_its_way_loses_and_doubles_nothing) {
  send_late_shims();
  launcher.reset();
  const pid_t agent = fork();
  ASSERT_GE(agent, 0);
  if (agent == 0) {
    auto opened = Launcher::open(options);
    if (!opened) _exit(1);
    (void)(*opened)->start(counted("sleep 60"));
    for (;;) pause();
  }
  ASSERT_TRUE(eventually([&] { return programs_on(1) == 1; }));
  kill(agent, SIGKILL);
  waitpid(agent, nullptr, 0);
  options.shim_path = real_shim;
  open_launcher();
  EXPECT_THAT(launcher->scan(), IsEmpty()) << "so that the controller asks for the start again";
  EXPECT_TRUE(launcher->knows(attempt(1)));
  ASSERT_TRUE(launcher->start(counted("sleep 60")));
  ASSERT_TRUE(wait_for_text(count(), "run"));
  come();
  // The late one finds the lock taken and leaves.
  EXPECT_TRUE(eventually([&] { return programs_on(1) == 1; }));
  EXPECT_EQ(find(1).phase, AttemptPhase::running);
  ASSERT_TRUE(launcher->stop(attempt(1), seconds(60)));
  EXPECT_EQ(wait_for_exit(1).exit->signal, SIGTERM);
  EXPECT_EQ(count_lines(count()), 1u);
}

TEST_P(SilentShim, One_that_comes_after_its_attempt_was_forgotten_starts_nothing) {
  options.shim_patience = Duration{};
  send_late_shims();
  ASSERT_TRUE(launcher->start(counted()));
  wait_for_exit(1);
  ASSERT_TRUE(launcher->forget(attempt(1)));
  come();
  EXPECT_TRUE(eventually([&] { return programs_on(1) == 0; }));
  EXPECT_FALSE(std::filesystem::exists(record(1)));
  EXPECT_FALSE(std::filesystem::exists(count()));
}

TEST_P(SilentShim, A_program_that_never_forks_holds_nobody_up) {
  options.shim_path = folder + "/hanging-shim";
  std::ofstream(options.shim_path)
      << "#!/bin/sh\nwhile [ ! -e " << folder << "/go ]; do sleep 0.01; done\n";
  chmod(options.shim_path.c_str(), 0755);
  options.shim_patience = milliseconds(200);
  reopen();
  ASSERT_TRUE(launcher->start(counted()));
  EXPECT_EQ(find(1).phase, AttemptPhase::starting);
  EXPECT_EQ(wait_for_exit(1).exit->cause, ExitCause::start_failed);
  come();
  EXPECT_TRUE(eventually([&] {
    (void)launcher->scan();
    return waitpid(-1, nullptr, WNOHANG) == -1;
  })) << "no zombie is left behind";
}

}  // namespace
}  // namespace takt::launch
