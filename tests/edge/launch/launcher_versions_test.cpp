// A shim outlives upgrades of takt: what an older one wrote is understood, what a newer one wrote
// is refused with a sentence.
#include <gmock/gmock.h>

#include "launch_fixture.h"

namespace takt::launch {
namespace {

using control::AttemptPhase;
using ::testing::HasSubstr;

// Speaks protocol 1 as docs/formats/shim.md has it, written down here and nowhere else: it must be
// understood for as long as such a shim may run.
class ShimOfVersion1 {
 public:
  ShimOfVersion1(const std::string& record, const std::string& boot_id) {
    pid_ = fork();
    if (pid_ == 0) run(record, boot_id);
  }
  ~ShimOfVersion1() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  // To be called until it is true: it is a zombie of ours until then.
  bool has_ended() const { return waitpid(pid_, nullptr, WNOHANG) != 0; }

 private:
  static void put(const std::string& record, const char* name, const std::string& text) {
    std::ofstream(record + "/" + name + ".part") << text;
    std::filesystem::rename(record + "/" + name + ".part", record + "/" + name);
  }
  [[noreturn]] static void run(const std::string& record, const std::string& boot_id) {
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, nullptr);
    const auto lock = RecordLock::try_take(record);
    if (!lock) _exit(1);
    const pid_t job = fork();
    if (job == 0) {
      sigprocmask(SIG_UNBLOCK, &term, nullptr);
      setsid();
      execl("/bin/sleep", "sleep", "60", nullptr);
      _exit(127);
    }
    put(record, "job",
        "takt-shim-job=1\nattempt=1.1\ngeneration=9\npid=" + std::to_string(job) +
            "\npid_start=" + std::to_string(shim::start_of(job)) + "\nboot_id=" + boot_id +
            "\nshim_pid=" + std::to_string(getpid()) + "\nshim_start=" +
            std::to_string(shim::start_of(getpid())) + "\nmembers=\nstarted_us=1700000000000000\n");
    int signal = 0;
    sigwait(&term, &signal);
    if (read_text(record + "/stop").rfind("takt-shim-stop=1\ngrace_us=", 0) != 0) _exit(2);
    kill(job, SIGTERM);
    int status = 0;
    waitpid(job, &status, 0);
    put(record, "exit",
        "takt-shim-exit=1\nattempt=1.1\ngeneration=9\ncause=signalled\nsignal=" +
            std::to_string(WTERMSIG(status)) +
            "\noom=0\ncpu_us=1234\nuser_us=1000\nsystem_us=234\nended_us=1700000001000000\n"
            "processes_gone=1\n");
    _exit(0);
  }
  pid_t pid_ = -1;
};

class ShimVersions : public LaunchTest {
 protected:
  void write(std::uint64_t job, const char* name, const std::string& text) {
    (void)mkdir(record(job).c_str(), 0700);
    std::ofstream(record(job) + "/" + name) << text;
  }
};

TEST_F(ShimVersions, A_shim_of_version_1_is_adopted_stopped_and_its_exit_read) {
  ASSERT_EQ(mkdir(record(1).c_str(), 0700), 0);
  const ShimOfVersion1 old(record(1), shim::read_boot_id().text);
  ASSERT_TRUE(eventually([&] { return find(1).phase == AttemptPhase::running; }));
  auto seen = find(1);
  EXPECT_EQ(seen.generation, 9u);
  EXPECT_TRUE(is_alive(seen.pid));
  EXPECT_EQ(seen.started->us, 1'700'000'000'000'000);
  EXPECT_TRUE(launcher->pids().contains(seen.pid));
  auto same = order(1, "exit 1");
  same.generation = 9;
  ASSERT_TRUE(launcher->start(same)) << "it is known";
  ASSERT_TRUE(launcher->stop(attempt(1), seconds(30)));
  ASSERT_TRUE(eventually([&] { return old.has_ended(); }));
  seen = wait_for_exit(1);
  EXPECT_EQ(seen.exit->cause, ExitCause::signalled);
  EXPECT_EQ(seen.exit->signal, SIGTERM);
  EXPECT_EQ(seen.exit->cpu_time, microseconds(1234));
  EXPECT_EQ(seen.ended->us, 1'700'000'001'000'000);
  EXPECT_TRUE(launcher->forget(attempt(1)));
}

TEST_F(ShimVersions, Records_of_a_version_that_is_not_known_are_told_with_a_sentence) {
  write(1, "job", "takt-shim-job=2\nattempt=1.1\ngeneration=1\npid=1\nshim_pid=1\n");
  write(2, "exit", "takt-shim-exit=2\nattempt=2.1\ngeneration=1\ncause=exited\ncode=0\n");
  EXPECT_THAT(find(1).exit->message, HasSubstr("its job record is of version '2'"));
  EXPECT_THAT(find(2).exit->message, HasSubstr("its exit record is of version '2'"));
  EXPECT_EQ(find(2).exit->cause, ExitCause::lost) << "never a guess";
}

TEST_F(ShimVersions, A_job_record_of_another_version_whose_shim_lives_still_runs) {
  write(1, "job", "takt-shim-job=2\n");
  {
    const auto shim_lives = RecordLock::try_take(record(1));
    ASSERT_TRUE(shim_lives);
    EXPECT_EQ(find(1).phase, AttemptPhase::running);
    EXPECT_FALSE(launcher->forget(attempt(1)));
  }
  EXPECT_EQ(find(1).exit->cause, ExitCause::lost);
}

TEST_F(ShimVersions, A_stop_request_of_another_version_is_replaced_by_one_that_is_understood) {
  ASSERT_TRUE(launcher->start(order(1, "echo up; sleep 60")));
  ASSERT_TRUE(wait_for_text(out(1), "up"));
  write(1, "stop", "takt-shim-stop=2\ngrace_us=1\ndeadline_us=0\n");
  ASSERT_TRUE(launcher->stop(attempt(1), seconds(30)));
  EXPECT_THAT(read_text(record(1) + "/stop"), HasSubstr("takt-shim-stop=1\ngrace_us=30000000\n"));
  EXPECT_EQ(wait_for_exit(1).exit->signal, SIGTERM);
}

TEST_F(ShimVersions, A_shim_says_which_protocol_it_speaks) {
  ASSERT_EQ(std::system((options.shim_path + " --version > " + folder + "/version").c_str()), 0);
  EXPECT_EQ(read_text(folder + "/version"), "takt-shim protocol 1\n");
}

}  // namespace
}  // namespace takt::launch
