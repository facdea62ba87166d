// Whose rights a job has.
#include <gmock/gmock.h>
#include <grp.h>

#include "launch_fixture.h"

namespace takt::launch {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t nobody = 65534;

class AsRoot : public LaunchTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: starts jobs of another user";
    LaunchTest::SetUp();
  }
  control::LaunchOrder order_of_nobody(std::uint64_t job, const std::string& script) {
    auto made = order(job, script);
    made.identity = {nobody, nobody, {nobody, 4242, 4343}, "nobody", folder};
    const std::string own = folder + "/own";
    mkdir(own.c_str(), 0700);
    if (chown(own.c_str(), nobody, nobody) != 0) ADD_FAILURE() << "chown";
    made.workdir = own;
    made.stdout_path = made.stderr_path = own + "/" + std::to_string(job) + ".out";
    return made;
  }
};

TEST_F(AsRoot, A_job_has_uid_gid_and_groups_of_its_user_and_no_capability) {
  const auto what =
      order_of_nobody(1, "id -u; id -g; id -G; grep -E 'CapEff|CapPrm' /proc/self/status; pwd");
  EXPECT_EQ(run(what).code, 0);
  EXPECT_EQ(
      read_text(what.stdout_path),
      "65534\n65534\n65534 4242 4343\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n" +
          what.workdir + "\n");
  struct stat status {};
  ASSERT_EQ(stat(what.stdout_path.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, nobody);
  EXPECT_EQ(status.st_gid, nobody);
}

TEST_F(AsRoot, Without_groups_a_job_has_its_main_group_only) {
  auto what = order_of_nobody(1, "id -G");
  what.identity.groups.clear();
  run(what);
  EXPECT_EQ(read_text(what.stdout_path), "65534\n");
}

TEST_F(AsRoot, A_folder_that_the_user_may_not_enter_is_named) {
  auto what = order_of_nobody(1, "exit 0");
  what.workdir = folder + "/closed";
  mkdir(what.workdir.c_str(), 0700);
  const ExitStatus exit = run(what);
  EXPECT_EQ(exit.cause, ExitCause::start_failed);
  EXPECT_EQ(exit.message,
            "workdir " + what.workdir +
                ": user nobody (uid 65534) may not enter it: change its permissions or "
                "choose another");
}

TEST_F(AsRoot, A_program_that_the_user_may_not_reach_is_named) {
  auto what = order_of_nobody(1, "");
  mkdir((folder + "/closed").c_str(), 0700);
  what.argv = {folder + "/closed/program"};
  const ExitStatus exit = run(what);
  EXPECT_EQ(exit.cause, ExitCause::start_failed);
  EXPECT_THAT(exit.message, HasSubstr("user nobody (uid 65534) may not enter its folder"));
}

TEST_F(AsRoot, An_output_file_where_the_user_may_not_write_is_refused_and_not_made) {
  auto what = order_of_nobody(1, "exit 0");
  what.stdout_path = folder + "/records/../root-owned";
  const ExitStatus exit = run(what);
  EXPECT_EQ(exit.cause, ExitCause::start_failed);
  EXPECT_THAT(exit.message, HasSubstr("the job's user may not write there"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/root-owned"));
}

TEST_F(AsRoot, A_link_planted_by_another_user_is_not_followed) {
  auto what = order_of_nobody(1, "exit 0");
  const std::string shared = folder + "/shared";
  mkdir(shared.c_str(), 0700);
  chmod(shared.c_str(), 0777);  // without the sticky bit, the kernel protects nobody
  ASSERT_EQ(symlink((what.workdir + "/victim").c_str(), (shared + "/1.out").c_str()), 0);
  ASSERT_EQ(lchown((shared + "/1.out").c_str(), 1000, 1000), 0);
  what.stdout_path = what.stderr_path = shared + "/1.out";
  const ExitStatus exit = run(what);
  EXPECT_EQ(exit.cause, ExitCause::start_failed);
  EXPECT_THAT(exit.message, HasSubstr("a symbolic link of another user (uid 1000)"));
  EXPECT_FALSE(std::filesystem::exists(what.workdir + "/victim"));
}

TEST_F(AsRoot, A_link_of_the_user_itself_is_followed) {
  auto what = order_of_nobody(1, "echo x");
  ASSERT_EQ(symlink("real", (what.workdir + "/1.out").c_str()), 0);
  ASSERT_EQ(lchown((what.workdir + "/1.out").c_str(), nobody, nobody), 0);
  run(what);
  EXPECT_EQ(read_text(what.workdir + "/real"), "x\n");
}

TEST_F(AsRoot, A_file_in_the_servers_logs_folder_is_handed_to_the_user) {
  options.logs_dir = folder + "/logs";
  mkdir(options.logs_dir.c_str(), 0755);
  open_launcher();
  auto what = order_of_nobody(1, "echo x; id -u");
  what.stdout_path = what.stderr_path = options.logs_dir + "/1.log";
  EXPECT_EQ(run(what).code, 0);
  EXPECT_EQ(read_text(what.stdout_path), "x\n65534\n");
  struct stat status {};
  ASSERT_EQ(stat(what.stdout_path.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, nobody);
}

TEST_F(AsRoot, The_records_of_a_job_are_closed_to_its_user) {
  auto what = order_of_nobody(1, "cat " + record(1) + "/spec; echo $?");
  run(what);
  EXPECT_THAT(read_text(what.stdout_path), HasSubstr("1\n"));
  EXPECT_THAT(read_text(what.stdout_path), HasSubstr("denied"));
}

TEST_F(AsRoot, A_user_cannot_stop_the_shim) {
  auto what = order_of_nobody(1, "kill -9 $PPID || echo refused; exit 3");
  EXPECT_EQ(run(what).code, 3);
  EXPECT_THAT(read_text(what.stdout_path), HasSubstr("refused"));
}

// The same code as an ordinary user: root forks one; an ordinary user is one.
class AsOrdinaryUser : public LaunchTest {
 protected:
  std::string as_user(const std::function<std::string(Launcher&)>& body) {
    end_everything(*launcher);
    launcher.reset();
    const std::string home = folder + "/home";
    mkdir(home.c_str(), 0700);
    std::filesystem::copy_file(options.shim_path, folder + "/takt-shim");
    const bool root = geteuid() == 0;
    if (root && chown(home.c_str(), nobody, nobody) != 0) return "chown";
    return in_child([&, root]() -> std::string {
      if (root && (setgroups(0, nullptr) != 0 || setgid(nobody) != 0 || setuid(nobody) != 0)) {
        return "no other user";
      }
      folder = home;
      options.shim_path = home + "/../takt-shim";
      options.records_dir = home + "/records";
      auto opened = Launcher::open(options);
      if (!opened) return opened.error().message;
      std::string said = body(**opened);
      end_everything(**opened);
      return said;
    });
  }
};

TEST_F(AsOrdinaryUser, Jobs_run_are_stopped_and_leave_nothing) {
  EXPECT_EQ(as_user([&](Launcher& own) -> std::string {
              if (!own.start(order(1, "(setsid sleep 60 &) ; id -u; exit 4"))) return "no start";
              const auto seen = wait_for_exit(own, 1);
              if (!seen.exit || seen.exit->code != 4) return "another exit code";
              if (read_text(out(1)) != std::to_string(geteuid()) + "\n") return "another user";
              if (!own.start(order(2, "echo up; exec sleep 60"))) return "no second start";
              if (!wait_for_text(out(2), "up")) return "it does not run";
              if (!own.stop(attempt(2), seconds(60))) return "no stop";
              return wait_for_exit(own, 2).exit->signal == SIGTERM ? "" : "another end";
            }),
            "");
}

TEST_F(AsOrdinaryUser, Jobs_of_another_user_are_a_failed_start_with_a_sentence) {
  EXPECT_EQ(as_user([&](Launcher& own) -> std::string {
              auto what = order(1, "exit 0");
              what.identity.uid = geteuid() + 1;
              what.identity.user = "alice";
              if (!own.start(what)) return "no record";
              const auto seen = wait_for_exit(own, 1);
              if (seen.exit->cause != ExitCause::start_failed) return "another cause";
              const bool clear = seen.exit->message.find("user alice (uid ") != std::string::npos &&
                                 seen.exit->message.find("run it as root") != std::string::npos;
              return clear ? "" : seen.exit->message;
            }),
            "");
}

TEST_F(AsOrdinaryUser, The_notes_say_what_it_cannot_do) {
  EXPECT_EQ(as_user([&](Launcher& own) -> std::string {
              const auto notes = own.notes();
              if (notes.empty()) return "no notes";
              return notes.back().find("the agent is not root") != std::string::npos ? ""
                                                                                     : notes.back();
            }),
            "");
}

TEST_F(AsOrdinaryUser, A_killed_shim_is_noticed_by_the_process_tree) {
  EXPECT_EQ(as_user([&](Launcher& own) -> std::string {
              if (!own.start(order(1, "echo up; sleep 60"))) return "no start";
              if (!wait_for_text(out(1), "up")) return "it does not run";
              const auto known = read_job_record(record(1));
              if (!known || kill(static_cast<pid_t>(known->shim_pid), SIGKILL) != 0)
                return "no kill";
              if (!eventually([&] { return !is_alive(known->shim_pid); })) return "the shim lives";
              if (find(own, 1).phase != control::AttemptPhase::running) return "not running";
              if (!own.stop(attempt(1), milliseconds(50))) return "no stop";
              return wait_for_exit(own, 1).exit->cause == ExitCause::lost ? "" : "another cause";
            }),
            "");
}

}  // namespace
}  // namespace takt::launch
