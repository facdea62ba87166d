// Output files are bounded on disk: the beginning and the newest part stay.
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>

#include "edge/launch/shim/log_cap.h"
#include "launch_fixture.h"

namespace takt::launch {
namespace {

using control::AttemptPhase;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::int64_t most = 1 << 20;

struct stat status_of(const std::string& path) {
  struct stat status {};
  (void)stat(path.c_str(), &status);
  return status;
}
std::int64_t taken(const std::string& path) {
  return std::int64_t{status_of(path).st_blocks} * 512;
}
// The text without its holes.
std::string data_of(const std::string& path) {
  const std::string text = read_text(path);
  std::string data;
  std::copy_if(text.begin(), text.end(), std::back_inserter(data), [](char c) { return c != 0; });
  return data;
}

class LogFiles : public LaunchTest {
 protected:
  void SetUp() override {
    LaunchTest::SetUp();
    launcher.reset();
    options.logs_dir = folder;
    open_launcher();
    ASSERT_EQ(mkfifo((folder + "/fifo").c_str(), 0600), 0);
  }
  control::LaunchOrder order(std::uint64_t job, const std::string& script) const {
    control::LaunchOrder made = LaunchTest::order(job, script);
    made.log_max = Bytes{most};
    return made;
  }
  // Writes `bytes` x.
  static std::string written(std::int64_t bytes) {
    return "head -c " + std::to_string(bytes) + " /dev/zero | tr '\\0' x; ";
  }
  std::string wait_for_fifo() const { return "read x < " + folder + "/fifo; "; }
  void open_fifo() const { close(open((folder + "/fifo").c_str(), O_WRONLY | O_CLOEXEC)); }
};

TEST_F(LogFiles, Keep_their_beginning_and_their_newest_part) {
  const auto status = run(order(1, "echo first; " + written(20'000'000) + "echo; echo last"));
  EXPECT_EQ(status.code, 0) << "the job is not disturbed";
  EXPECT_EQ(status_of(out(1)).st_size, 20'000'000 + 12) << "offsets stay as they were";
  EXPECT_LE(taken(out(1)), most);
  const std::string data = data_of(out(1));
  EXPECT_GE(static_cast<std::int64_t>(data.size()), most / 8 + most * 3 / 8);
  EXPECT_THAT(data, StartsWith("first\nxxx"));
  EXPECT_THAT(data, EndsWith("xxx\nlast\n"));
}

TEST_F(LogFiles, That_are_not_too_large_stay_whole) {
  run(order(1, written(most)));
  EXPECT_EQ(data_of(out(1)), std::string(most, 'x'));
}

TEST_F(LogFiles, Are_bounded_while_the_job_writes_on_and_on) {
  auto what = order(1, "while :; do " + written(1'000'000) + "done");
  what.stderr_path = folder + "/1.err";
  what.argv[2] = "(while :; do " + written(1'000'000) + "done) >&2 & " + what.argv[2];
  ASSERT_TRUE(launcher->start(what));
  for (const std::string& path : {out(1), what.stderr_path}) {
    EXPECT_TRUE(eventually([&] { return status_of(path).st_size > 30 * most; }));
    EXPECT_TRUE(eventually([&] { return taken(path) <= most; }))
        << "it is cut while the job runs: " << path;
  }
  EXPECT_EQ(find(1).phase, AttemptPhase::running);
  ASSERT_TRUE(launcher->stop(attempt(1), Duration{}));
  wait_for_exit(1);
  for (const std::string& path : {out(1), what.stderr_path}) EXPECT_LE(taken(path), most) << path;
}

TEST_F(LogFiles, That_were_still_for_a_while_are_looked_after_when_they_grow_again) {
  ASSERT_TRUE(launcher->start(order(1, "echo up; " + wait_for_fifo() + written(5 * most) +
                                           "echo more; " + wait_for_fifo() + written(5 * most) +
                                           "echo again; exec sleep 60")));
  ASSERT_TRUE(wait_for_text(out(1), "up"));
  // The shim sleeps until somebody writes: nothing else wakes it.
  const auto known = read_job_record(record(1));
  const std::string switches = "/proc/" + std::to_string(known->shim_pid) + "/status";
  const auto count = [&] {
    const std::string text = read_text(switches);
    return text.substr(text.find("\nvoluntary_ctxt_switches"));
  };
  std::string before;
  EXPECT_TRUE(eventually([&] {
    before = count();
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    return count() == before;
  })) << "the shim never falls asleep";
  open_fifo();
  ASSERT_TRUE(wait_for_text(out(1), "more"));
  EXPECT_TRUE(eventually([&] { return taken(out(1)) <= most; }));
  open_fifo();
  ASSERT_TRUE(wait_for_text(out(1), "again"));
  EXPECT_TRUE(eventually([&] { return taken(out(1)) <= most; }));
}

TEST_F(LogFiles, Of_a_killed_shim_are_bounded_by_the_launcher) {
  ASSERT_TRUE(launcher->start(
      order(1, "echo up; " + wait_for_fifo() + written(5 * most) + "echo done; exec sleep 60")));
  ASSERT_TRUE(wait_for_text(out(1), "up"));
  const auto known = read_job_record(record(1));
  kill(static_cast<pid_t>(known->shim_pid), SIGKILL);
  ASSERT_TRUE(eventually([&] { return !is_alive(known->shim_pid); }));
  open_fifo();
  ASSERT_TRUE(wait_for_text(out(1), "done"));
  EXPECT_GT(taken(out(1)), most);
  EXPECT_EQ(find(1).phase, AttemptPhase::running);
  EXPECT_LE(taken(out(1)), most);
  EXPECT_THAT(data_of(out(1)), EndsWith("xdone\n"));
}

TEST_F(LogFiles, Of_the_user_are_left_alone) {
  launcher.reset();
  options.logs_dir = folder + "/logs";
  ASSERT_EQ(mkdir(options.logs_dir.c_str(), 0755), 0);
  open_launcher();
  run(order(1, written(3 * most)));
  EXPECT_EQ(data_of(out(1)).size(), 3u * most);
}

TEST_F(LogFiles, Are_appended_to_by_the_job_whatever_is_cut) {
  ASSERT_TRUE(launcher->start(order(1, "echo up; exec sleep 60")));
  ASSERT_TRUE(wait_for_text(out(1), "up"));
  const std::string pid = std::to_string(find(1).pid);
  for (const char* number : {"1", "2"}) {
    const std::string info = read_text("/proc/" + pid + "/fdinfo/" + number);
    const long flags = std::strtol(info.c_str() + info.find("flags:") + 6, nullptr, 8);
    EXPECT_NE(flags & O_APPEND, 0) << number << ": " << info;
  }
}

// ramfs makes no holes.
TEST_F(LogFiles, Without_holes_keep_their_beginning_and_a_line_that_says_so) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: mounts a ramfs in its own namespace";
  launcher.reset();
  EXPECT_EQ(
      in_child([&]() -> std::string {
        if (unshare(CLONE_NEWNS) != 0 || mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
          return "no mount namespace";
        const std::string logs = folder + "/logs";
        mkdir(logs.c_str(), 0755);
        if (mount("logs", logs.c_str(), "ramfs", 0, "mode=755") != 0) return "no ramfs";
        options.logs_dir = logs;
        auto opened = Launcher::open(options);
        if (!opened) return opened.error().message;
        auto what = order(1, "echo first; " + written(5 * most));
        what.stdout_path = what.stderr_path = logs + "/out";
        if (!(*opened)->start(what)) return "no start";
        if (wait_for_exit(**opened, 1).exit->code != 0) return "the job was disturbed";
        const std::string text = read_text(logs + "/out");
        if (text.size() > most) return "it is not bounded: " + std::to_string(text.size());
        if (text.rfind("first\nx", 0) != 0) return "the beginning is gone";
        const std::string line = "MiB dropped here: log_bytes_max is 1.0 MiB, and this file";
        return text.find(line) == std::string::npos ? "no line says so" : "";
      }),
      "");
}

}  // namespace
}  // namespace takt::launch
