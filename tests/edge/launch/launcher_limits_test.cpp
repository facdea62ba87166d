// What needs a cgroup: memory limits, and that no cgroup is left.
#include <gmock/gmock.h>

#include "edge/launch/cgroup_tree.h"
#include "launch_fixture.h"

namespace takt::launch {
namespace {

using ::testing::HasSubstr;

class LauncherLimits : public LaunchTest {
 protected:
  void SetUp() override {
    if (!CgroupTree::open({})->limits_memory()) {
      GTEST_SKIP() << "needs a writable memory cgroup";
    }
    LaunchTest::SetUp();
  }
};

TEST_F(LauncherLimits, A_job_beyond_its_memory_is_killed_and_told_so) {
  auto what = order(1, "exec tail -c 300000000 /dev/zero");
  what.grant.memory = mebibytes(32);
  const ExitStatus exit = run(what);
  EXPECT_EQ(exit.cause, ExitCause::signalled);
  EXPECT_EQ(exit.signal, SIGKILL);
  EXPECT_TRUE(exit.oom);
  ASSERT_TRUE(exit.memory_peak);
  EXPECT_LE(exit.memory_peak->value, mebibytes(32).value);
  EXPECT_GT(exit.memory_peak->value, mebibytes(16).value);
}

TEST_F(LauncherLimits, An_oom_kill_of_a_child_is_told_beside_the_jobs_own_exit_code) {
  auto what = order(1, "head -c 300000000 /dev/zero | tail -c 300000000 | wc -c; exit 6");
  what.grant.memory = mebibytes(32);
  const ExitStatus exit = run(what);
  EXPECT_TRUE(exit.oom);
  // Where the kernel kills the cgroup as a whole (v2) there is no exit code.
  EXPECT_TRUE(exit.code == 6 || exit.signal == SIGKILL);
}

TEST_F(LauncherLimits, A_job_within_its_memory_is_left_alone) {
  auto what = order(1, "exit 2");
  what.grant.memory = mebibytes(64);
  const ExitStatus exit = run(what);
  EXPECT_EQ(exit.code, 2);
  EXPECT_FALSE(exit.oom);
}

TEST_F(LauncherLimits, Without_a_limit_the_peak_is_still_counted) {
  const ExitStatus exit = run(order(1, "head -c 40000000 /dev/zero | tail -c 40000000 | wc -c"));
  EXPECT_EQ(exit.code, 0);
  ASSERT_TRUE(exit.memory_peak);
  EXPECT_GT(exit.memory_peak->value, 30'000'000);
}

TEST_F(LauncherLimits, A_limit_that_the_kernel_refuses_is_a_failed_start) {
  auto what = order(1, "echo run >> " + folder + "/count");
  what.grant.memory = Bytes{1};
  const ExitStatus exit = run(what);
  // One byte is a limit that can be set; then nothing at all can run in it.
  EXPECT_NE(exit.cause, ExitCause::exited);
}

TEST_F(LauncherLimits, The_shim_removes_the_cgroups_by_itself) {
  ASSERT_TRUE(launcher->start(order(1, "sleep 0.1")));
  const auto known = read_job_record(record(1));
  ASSERT_TRUE(known);
  ASSERT_FALSE(known->cgroups.empty());
  for (const auto& cgroup : known->cgroups) EXPECT_THAT(cgroup, HasSubstr("/takt/1.1"));
  wait_for_exit(1);
  EXPECT_TRUE(eventually([&] {
    for (const auto& cgroup : known->cgroups) {
      if (std::filesystem::exists(cgroup)) return false;
    }
    return true;
  }));
}

TEST_F(LauncherLimits, Two_agents_on_one_host_do_not_share_the_cgroup_of_an_equal_id) {
  ASSERT_TRUE(launcher->start(order(1, "echo up; sleep 60")));
  ASSERT_TRUE(wait_for_text(out(1), "up"));
  LauncherOptions others = options;
  others.records_dir = folder + "/others";
  auto other = Launcher::open(others);
  ASSERT_TRUE(other);
  ASSERT_TRUE((*other)->start(order(1, "exit 3")));
  EXPECT_EQ(wait_for_exit(**other, 1).exit->code, 3);
  EXPECT_EQ(find(1).phase, control::AttemptPhase::running);
  EXPECT_TRUE(is_alive(find(1).pid));
  end_everything(**other);
}

TEST_F(LauncherLimits, What_leaves_the_process_tree_is_still_killed_in_its_cgroup) {
  // A process that root puts into the cgroup is no descendant of the shim.
  if (geteuid() != 0) GTEST_SKIP() << "needs root: moves a process into the cgroup";
  ASSERT_TRUE(launcher->start(order(1, "echo up; sleep 60")));
  ASSERT_TRUE(wait_for_text(out(1), "up"));
  const pid_t stranger = fork();
  if (stranger == 0) {
    for (;;) pause();
  }
  std::ofstream(read_job_record(record(1))->members + "/cgroup.procs") << stranger;
  EXPECT_TRUE(eventually([&] { return launcher->pids().contains(stranger); }));
  ASSERT_TRUE(launcher->stop(attempt(1), milliseconds(100)));
  EXPECT_TRUE(eventually([&] { return waitpid(stranger, nullptr, WNOHANG) == stranger; }));
  wait_for_exit(1);
}

}  // namespace
}  // namespace takt::launch
