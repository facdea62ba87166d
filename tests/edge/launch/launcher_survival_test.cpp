// Crashes of the launcher and of the shim, reboots, records that are damaged.
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>

#include "launch_fixture.h"

namespace takt::launch {
namespace {

using control::AttemptPhase;
using ::testing::HasSubstr;

class LauncherSurvival : public LaunchBothWays {
 protected:
  // Starts an attempt from another process, which is killed while the job runs.
  void start_and_kill_the_launcher(const control::LaunchOrder& what) {
    launcher.reset();
    const pid_t agent = fork();
    ASSERT_GE(agent, 0);
    if (agent == 0) {
      auto opened = Launcher::open(options);
      if (!opened || !(*opened)->start(what)) _exit(1);
      for (;;) pause();
    }
    EXPECT_TRUE(
        eventually([&] { return read_job_record(record(what.attempt.job.value)).has_value(); }));
    kill(agent, SIGKILL);
    waitpid(agent, nullptr, 0);
  }
  void kill_the_shim(std::uint64_t job) {
    const auto known = read_job_record(record(job));
    ASSERT_TRUE(known);
    ASSERT_EQ(kill(static_cast<pid_t>(known->shim_pid), SIGKILL), 0);
    ASSERT_TRUE(eventually([&] { return !is_alive(known->shim_pid); }));
  }
  void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
};
INSTANTIATE_TEST_SUITE_P(, LauncherSurvival, ::testing::Bool(), way_name);

TEST_P(LauncherSurvival, A_job_outlives_its_killed_launcher_and_the_next_one_learns_its_exit_code) {
  ASSERT_EQ(mkfifo((folder + "/fifo").c_str(), 0600), 0);
  start_and_kill_the_launcher(order(1, "echo up; read x < " + folder + "/fifo; exit 42"));
  ASSERT_TRUE(wait_for_text(out(1), "up"));
  // It ends while nobody looks.
  const int fifo = open((folder + "/fifo").c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fifo, 0);
  close(fifo);
  ASSERT_TRUE(eventually([&] { return read_exit_record(record(1)).has_value(); }));
  open_launcher();
  const auto seen = find(1);
  ASSERT_EQ(seen.phase, AttemptPhase::exited);
  EXPECT_EQ(seen.exit->cause, ExitCause::exited);
  EXPECT_EQ(seen.exit->code, 42);
  EXPECT_TRUE(seen.processes_gone);
}

TEST_P(LauncherSurvival, A_second_launcher_adopts_what_runs_and_can_stop_it) {
  const auto what = order(1, "echo run >> " + folder + "/count; exec sleep 60");
  start_and_kill_the_launcher(what);
  open_launcher();
  ASSERT_TRUE(wait_for_text(folder + "/count", "run"));
  const auto seen = find(1);
  EXPECT_EQ(seen.phase, AttemptPhase::running);
  EXPECT_TRUE(is_alive(seen.pid));
  EXPECT_TRUE(launcher->pids().contains(seen.pid));
  ASSERT_TRUE(launcher->start(what));
  ASSERT_TRUE(launcher->stop(attempt(1), seconds(60)));
  EXPECT_EQ(wait_for_exit(1).exit->signal, SIGTERM);
  EXPECT_EQ(count_lines(folder + "/count"), 1u);
}

TEST_P(LauncherSurvival, A_killed_shim_leaves_its_job_running_until_it_ends_and_then_lost) {
  ASSERT_EQ(mkfifo((folder + "/fifo").c_str(), 0600), 0);
  const auto what =
      order(1, "echo run >> " + folder + "/count; read x < " + folder + "/fifo; exit 5");
  ASSERT_TRUE(launcher->start(what));
  ASSERT_TRUE(wait_for_text(folder + "/count", "run"));
  launcher->scan();
  kill_the_shim(1);
  pollfd wait{launcher->event_fd(), POLLIN, 0};
  EXPECT_EQ(poll(&wait, 1, 10'000), 1) << "the end of a shim is news";
  auto seen = find(1);
  EXPECT_EQ(seen.phase, AttemptPhase::running);
  EXPECT_FALSE(seen.processes_gone);
  EXPECT_TRUE(launcher->pids().contains(seen.pid));
  ASSERT_TRUE(launcher->start(what)) << "never a second time";
  EXPECT_FALSE(launcher->forget(attempt(1)));
  const int fifo = open((folder + "/fifo").c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fifo, 0);
  close(fifo);
  EXPECT_EQ(poll(&wait, 1, 20'000), 1) << "the end of an orphan is news";
  seen = wait_for_exit(1);
  ASSERT_TRUE(seen.exit);
  EXPECT_EQ(seen.exit->cause, ExitCause::lost);
  EXPECT_THAT(seen.exit->message, HasSubstr("takt-shim was killed"));
  ASSERT_TRUE(launcher->start(what));
  EXPECT_EQ(find(1).ended, seen.ended) << "the outcome stays as it was first told";
  EXPECT_EQ(count_lines(folder + "/count"), 1u);
}

TEST_P(LauncherSurvival, What_a_killed_shim_left_ends_with_a_stop) {
  ASSERT_TRUE(launcher->start(order(1,
                                    "trap '' TERM; (trap '' TERM; while :; do sleep 0.05; done) & "
                                    "echo up; while :; do sleep 0.05; done")));
  ASSERT_TRUE(wait_for_text(out(1), "up"));
  kill_the_shim(1);
  ASSERT_TRUE(launcher->stop(attempt(1), milliseconds(100)));
  const auto seen = wait_for_exit(1);
  EXPECT_EQ(seen.exit->cause, ExitCause::lost);
  EXPECT_TRUE(launcher->pids().empty());
}

TEST_P(LauncherSurvival, What_outlives_both_its_shim_and_its_main_process_gets_TERM_and_then_KILL) {
  ASSERT_EQ(mkfifo((folder + "/fifo").c_str(), 0600), 0);
  ASSERT_TRUE(launcher->start(
      order(1,
            "(trap '' TERM; while :; do sleep 0.05; done) & "
            "(trap 'echo asked; exit' TERM; echo up; while :; do sleep 0.05; done) & "
            "read x < " +
                folder + "/fifo; exit 5")));
  ASSERT_TRUE(wait_for_text(out(1), "up"));
  kill_the_shim(1);
  EXPECT_EQ(find(1).phase, AttemptPhase::running);
  EXPECT_EQ(read_text(out(1)), "up\n") << "while the main process runs nobody is asked to end";
  const int fifo = open((folder + "/fifo").c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fifo, 0);
  close(fifo);
  const auto seen = wait_for_exit(1);
  EXPECT_EQ(seen.exit->cause, ExitCause::lost);
  EXPECT_THAT(seen.exit->message, HasSubstr("takt-shim was killed"));
  EXPECT_THAT(read_text(out(1)), HasSubstr("asked\n")) << "TERM came first";
  EXPECT_TRUE(launcher->pids().empty());
}

// A cgroup of the first version's freezer keeps even KILL waiting, as a driver that hangs does.
class Unkillable : public LaunchTest {
 protected:
  void SetUp() override {
    if (mkdir(freezer.c_str(), 0755) != 0) {
      GTEST_SKIP() << "needs the freezer of cgroup v1, writable: " << freezer;
    }
    options.kill_patience = milliseconds(300);
    LaunchTest::SetUp();
  }
  void TearDown() override {
    if (launcher) {
      std::ofstream(freezer + "/freezer.state") << "THAWED";
      LaunchTest::TearDown();
    }
    EXPECT_TRUE(eventually([&] { return rmdir(freezer.c_str()) == 0 || errno == ENOENT; }));
  }
  void freeze(std::int64_t pid) {
    std::ofstream(freezer + "/cgroup.procs") << pid;
    std::ofstream(freezer + "/freezer.state") << "FROZEN";
  }
  void thaw() { std::ofstream(freezer + "/freezer.state") << "THAWED"; }
  control::AttemptSeen wait_for_an_outcome() {
    control::AttemptSeen seen;
    EXPECT_TRUE(eventually([&] {
      seen = find(1);
      return seen.phase == AttemptPhase::exited;
    }));
    return seen;
  }
  const std::string freezer = "/sys/fs/cgroup/freezer/takt-test-" + std::to_string(getpid());
};

TEST_F(Unkillable, A_main_process_is_told_as_exited_and_not_as_gone) {
  ASSERT_TRUE(launcher->start(order(1, "echo up; exec sleep 60")));
  ASSERT_TRUE(wait_for_text(out(1), "up"));
  const std::int64_t pid = find(1).pid;
  freeze(pid);
  ASSERT_TRUE(launcher->stop(attempt(1), Duration{}));
  const auto seen = wait_for_an_outcome();
  EXPECT_FALSE(seen.processes_gone);
  EXPECT_EQ(seen.exit->signal, SIGKILL);
  EXPECT_TRUE(launcher->pids().contains(pid));
  EXPECT_FALSE(launcher->forget(attempt(1)));
  thaw();
  EXPECT_TRUE(wait_for_exit(1).processes_gone);
  EXPECT_FALSE(is_alive(pid));
}

TEST_F(Unkillable, What_a_killed_shim_leaves_is_running_until_it_can_be_killed) {
  ASSERT_TRUE(launcher->start(order(1, "echo up; exec sleep 60")));
  ASSERT_TRUE(wait_for_text(out(1), "up"));
  const auto known = read_job_record(record(1));
  ASSERT_TRUE(known);
  freeze(known->pid);
  ASSERT_TRUE(launcher->stop(attempt(1), Duration{}));
  EXPECT_FALSE(wait_for_an_outcome().processes_gone);
  kill(static_cast<pid_t>(known->shim_pid), SIGKILL);
  ASSERT_TRUE(eventually([&] { return !is_alive(known->shim_pid); }));
  EXPECT_FALSE(find(1).processes_gone) << "the launcher looks for itself";
  EXPECT_FALSE(launcher->forget(attempt(1)));
  thaw();
  EXPECT_TRUE(wait_for_exit(1).processes_gone);
}

TEST_P(LauncherSurvival, An_order_whose_shim_never_began_is_started_by_the_next_start) {
  const auto what = order(1, "echo run >> " + folder + "/count; exit 6");
  ASSERT_EQ(mkdir(record(1).c_str(), 0700), 0);
  write(record(1) + "/spec.new", "half");
  EXPECT_TRUE(launcher->scan().empty());
  EXPECT_TRUE(launcher->pids().empty());
  EXPECT_EQ(run(what).code, 6);
  EXPECT_EQ(count_lines(folder + "/count"), 1u);
}

// An agent that was killed right after it had made cgroups has not written down where they are.
TEST_P(LauncherSurvival, Cgroups_of_an_agent_that_was_killed_before_its_order_do_not_stay) {
  ASSERT_TRUE(launcher->start(order(1, "sleep 60")));
  ASSERT_TRUE(eventually([&] { return read_job_record(record(1)).has_value(); }));
  const auto cgroups_of_1 = read_job_record(record(1))->cgroups;
  std::vector<std::string> left;
  for (std::string cgroup : cgroups_of_1) {
    const std::size_t name = cgroup.rfind('/') + 1;
    left.push_back(cgroup.replace(name, 1, "2"));
  }
  ASSERT_EQ(mkdir(record(2).c_str(), 0700), 0);
  for (const std::string& cgroup : left) ASSERT_EQ(mkdir(cgroup.c_str(), 0755), 0) << cgroup;
  ASSERT_TRUE(launcher->start(order(2, "exit 6")));
  EXPECT_EQ(wait_for_exit(2).exit->code, 6);
  EXPECT_EQ(read_job_record(record(2))->cgroups, left) << "made anew under the same names";
  for (const std::string& cgroup : left) ASSERT_EQ(mkdir((cgroup + "-2").c_str(), 0755), 0);
  ASSERT_TRUE(launcher->forget(attempt(2)));
  for (const std::string& cgroup : left) {
    EXPECT_FALSE(std::filesystem::exists(cgroup));
    EXPECT_FALSE(std::filesystem::exists(cgroup + "-2"));
  }
}

TEST_P(LauncherSurvival, A_second_shim_on_a_record_starts_nothing) {
  ASSERT_TRUE(launcher->start(order(1, "echo run >> " + folder + "/count; sleep 60")));
  ASSERT_TRUE(wait_for_text(folder + "/count", "run"));
  const std::string again = options.shim_path + " " + record(1) + " 3>" + folder + "/answer";
  ASSERT_EQ(std::system(again.c_str()), 0);
  ASSERT_TRUE(wait_for_text(folder + "/answer", "busy"));
  ASSERT_TRUE(launcher->stop(attempt(1), seconds(0)));
  wait_for_exit(1);
  // The first shim keeps the lock for the moment that its cgroups take.
  EXPECT_TRUE(eventually([&] {
    return std::system(again.c_str()) == 0 &&
           eventually([&] { return !read_text(folder + "/answer").empty(); }) &&
           read_text(folder + "/answer") == "known";
  }));
  EXPECT_EQ(count_lines(folder + "/count"), 1u);
}

TEST_P(LauncherSurvival, After_a_reboot_what_ran_is_lost) {
  ASSERT_TRUE(launcher->start(order(1, "echo up; sleep 60")));
  ASSERT_TRUE(wait_for_text(out(1), "up"));
  // The record of a run before the reboot: its pids mean others now.
  std::string text = read_text(record(1) + "/job");
  const std::size_t boot = text.find("boot_id=") + 8;
  text.replace(boot, 8, "00000000");
  text.replace(text.find("attempt=1.1"), 11, "attempt=2.1");
  ASSERT_EQ(mkdir(record(2).c_str(), 0700), 0);
  write(record(2) + "/job", text);
  const auto seen = find(2);
  EXPECT_EQ(seen.phase, AttemptPhase::exited);
  EXPECT_EQ(seen.exit->cause, ExitCause::lost);
  EXPECT_THAT(seen.exit->message, HasSubstr("the host restarted"));
  EXPECT_TRUE(seen.processes_gone);
  for (const auto& [pid, owner] : launcher->pids()) EXPECT_EQ(owner, attempt(1)) << pid;
  ASSERT_TRUE(launcher->stop(attempt(2), seconds(0)));
  EXPECT_EQ(find(1).phase, AttemptPhase::running) << "nobody else's process was touched";
}

TEST_P(LauncherSurvival, A_number_that_another_process_got_is_not_the_job) {
  ASSERT_TRUE(launcher->start(order(1, "echo up; sleep 60")));
  ASSERT_TRUE(wait_for_text(out(1), "up"));
  // A record of pids that live, but began at another time.
  std::string text = read_text(record(1) + "/job");
  for (const char* name : {"pid_start=", "shim_start="}) {
    text.insert(text.find(name) + std::string(name).size(), "9");
  }
  for (std::size_t at; (at = text.find("cgroup=")) != std::string::npos;) {
    text.erase(at, text.find('\n', at) - at + 1);
  }
  const std::size_t members = text.find("members=") + 8;
  text.erase(members, text.find('\n', members) - members);
  ASSERT_EQ(mkdir(record(2).c_str(), 0700), 0);
  write(record(2) + "/job", text);
  ASSERT_TRUE(launcher->stop(attempt(2), seconds(0)));
  EXPECT_EQ(find(2).exit->cause, ExitCause::lost);
  EXPECT_EQ(find(1).phase, AttemptPhase::running);
}

TEST_P(LauncherSurvival, Damaged_records_are_lost_and_say_so) {
  ASSERT_EQ(mkdir(record(1).c_str(), 0700), 0);
  write(record(1) + "/job", "nonsense");
  ASSERT_EQ(mkdir(record(2).c_str(), 0700), 0);
  write(record(2) + "/exit", "takt-shim-exit=99\ncause=exited\n");
  EXPECT_THAT(find(1).exit->message, HasSubstr("job record is damaged"));
  EXPECT_EQ(find(1).exit->cause, ExitCause::lost);
  EXPECT_THAT(find(2).exit->message, HasSubstr("its exit record is of version '99'"));
  EXPECT_EQ(find(2).exit->cause, ExitCause::lost);
  const auto what = order(1, "echo run >> " + folder + "/count");
  (void)launcher->start(what);
  EXPECT_FALSE(std::filesystem::exists(folder + "/count"));
}

TEST_P(LauncherSurvival, An_order_of_another_version_is_refused_by_the_shim) {
  const auto what = order(1, "echo run >> " + folder + "/count");
  ASSERT_EQ(mkdir(record(1).c_str(), 0700), 0);
  std::string text = *format_spec(what, {}, {});
  text.replace(text.find("=1"), 2, "=9");
  ASSERT_TRUE(write_spec(record(1), text));
  ASSERT_EQ(std::system((options.shim_path + " " + record(1) + " 3>/dev/null").c_str()), 0);
  const auto seen = wait_for_exit(1);
  EXPECT_EQ(seen.exit->cause, ExitCause::start_failed);
  EXPECT_THAT(seen.exit->message, HasSubstr("of the same release"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/count"));
}

TEST_P(LauncherSurvival, Half_an_order_is_refused_by_the_shim) {
  const auto what = order(1, "echo run >> " + folder + "/count");
  const std::string text = *format_spec(what, {}, {});
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{5}, text.size() / 2, text.size() - 1}) {
    const auto job = static_cast<std::uint64_t>(size + 10);
    ASSERT_EQ(mkdir(record(job).c_str(), 0700), 0);
    ASSERT_TRUE(write_spec(record(job), text.substr(0, size)));
    ASSERT_EQ(std::system((options.shim_path + " " + record(job) + " 3>/dev/null").c_str()), 0);
    EXPECT_EQ(wait_for_exit(job).exit->cause, ExitCause::start_failed) << size;
  }
  EXPECT_FALSE(std::filesystem::exists(folder + "/count"));
}

TEST_P(LauncherSurvival, Removals_that_were_interrupted_are_finished) {
  ASSERT_EQ(mkdir((record(1) + ".gone").c_str(), 0700), 0);
  write(record(1) + ".gone/exit", "x");
  EXPECT_TRUE(launcher->scan().empty());
  launcher.reset();
  open_launcher();
  EXPECT_FALSE(std::filesystem::exists(record(1) + ".gone"));
}

TEST_P(LauncherSurvival, The_shim_is_no_child_and_in_no_group_of_the_launcher) {
  ASSERT_TRUE(launcher->start(order(1, "sleep 60")));
  const auto known = read_job_record(record(1));
  ASSERT_TRUE(known);
  shim::ProcessStat stat;
  ASSERT_TRUE(shim::read_stat(static_cast<pid_t>(known->shim_pid), stat));
  EXPECT_NE(stat.parent, getpid());
  EXPECT_EQ(stat.session, stat.pid);
  EXPECT_EQ(stat.start, known->shim_start);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "no zombie is left behind";
}

// The records folder without room, or read-only: in a mount namespace of its own, which goes with
// it.
class RecordsWithoutRoom : public LaunchTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: mounts a small tmpfs in its own namespace";
    LaunchTest::SetUp();
    launcher.reset();
  }
  std::string mount_records(const std::string& size) const {
    if (unshare(CLONE_NEWNS) != 0 || mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      return "no mount namespace";
    }
    if (mount("small", options.records_dir.c_str(), "tmpfs", 0, (size + ",mode=700").c_str()) !=
        0) {
      return "no tmpfs";
    }
    return "";
  }
};

TEST_F(RecordsWithoutRoom, A_full_folder_is_a_sentence_and_nothing_runs) {
  EXPECT_EQ(in_child([&]() -> std::string {
              if (auto problem = mount_records("size=64k"); !problem.empty()) return problem;
              auto opened = Launcher::open(options);
              if (!opened) return opened.error().message;
              std::ofstream(options.records_dir + "/filler") << std::string(64 << 10, 'x');
              const auto started = (*opened)->start(order(1, "echo run >> " + folder + "/count"));
              if (started) return "the start succeeded";
              if (started.error().message.find("make room") == std::string::npos) {
                return started.error().message;
              }
              if (!(*opened)->scan().empty()) return "something is on record";
              // With room the same start works.
              std::filesystem::remove(options.records_dir + "/filler");
              if (!(*opened)->start(order(1, "exit 8"))) return "no start with room";
              return wait_for_exit(**opened, 1).exit->code == 8 ? "" : "another exit code";
            }),
            "");
  EXPECT_FALSE(std::filesystem::exists(folder + "/count"));
}

TEST_F(RecordsWithoutRoom, A_folder_that_fills_up_while_the_job_runs_loses_no_exit_status) {
  EXPECT_EQ(in_child([&]() -> std::string {
              if (auto problem = mount_records("size=64k"); !problem.empty()) return problem;
              auto opened = Launcher::open(options);
              if (!opened) return opened.error().message;
              mkfifo((folder + "/fifo").c_str(), 0600);
              const auto started =
                  (*opened)->start(order(1, "read x < " + folder + "/fifo; exit 17"));
              if (!started) return started.error().message;
              std::ofstream(options.records_dir + "/filler") << std::string(1 << 20, 'x');
              close(open((folder + "/fifo").c_str(), O_WRONLY | O_CLOEXEC));
              return wait_for_exit(**opened, 1).exit->code == 17 ? "" : "the exit code is lost";
            }),
            "");
}

TEST_F(RecordsWithoutRoom, A_readonly_folder_is_a_sentence) {
  EXPECT_EQ(
      in_child([&]() -> std::string {
        if (auto problem = mount_records("size=64k"); !problem.empty()) return problem;
        auto writable = Launcher::open(options);
        if (!writable) return writable.error().message;
        if (mount("", options.records_dir.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0) {
          return "no remount";
        }
        const auto opened = Launcher::open(options);
        if (opened) return "opened on a read-only folder";
        if (opened.error().message.find("mount it writable") == std::string::npos) {
          return opened.error().message;
        }
        const auto started = (*writable)->start(order(1, "exit 0"));
        if (started) return "started on a read-only folder";
        return started.error().message.find("mount it writable") != std::string::npos
                   ? ""
                   : started.error().message;
      }),
      "");
}

}  // namespace
}  // namespace takt::launch
