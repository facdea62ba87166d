#include <gtest/gtest.h>

#include "app/report/report.h"
#include "app/report/text.h"
#include "fixtures.h"

namespace takt::report {
namespace {

using namespace testing;  // NOLINT
using control::JobState;
using control::JobView;
using ::testing::Test;

std::vector<JobView> shop() {
  std::vector<JobView> jobs{running(3, "llama-sft"), failed(4, "vllm-server"),
                            waiting(5, "big-train")};
  jobs[0].expected_end = now + seconds(240);
  jobs[2].expected_start = now + seconds(270);
  for (std::uint64_t id = 12; id <= 51; ++id) jobs.push_back(task(id, 12));
  return jobs;
}

std::size_t widest(const std::string& text) {
  std::size_t most = 0, from = 0;
  while (from < text.size()) {
    const std::size_t to = text.find('\n', from);
    most = std::max(most, columns(text.substr(from, to - from)));
    from = to + 1;
  }
  return most;
}

TEST(JobsTable, Golden) {
  EXPECT_EQ(jobs_table(shop(), now, Screen{.width = 120}, 0),
            R"(ID     NAME         USER   TIER   STATE     TIME  DEVICES        ETA  WHY
3      llama-sft    alice  batch  running     1m  gpu0           ~4m
4      vllm-server  alice  batch  failed     50s  gpu0
    OOM: asked 12.0 GiB, peak 14.1 GiB: try --memory 16GiB
5      big-train    alice  batch  waiting  2m13s  asks 1 GPU  ~4m30s  needs 2 GPUs; 1 free of 4; gpu1 is held by job 17…
12…51  sweep ×40    alice  batch  waiting  2m13s  asks 1 GPU          needs 2 GPUs; 1 free of 4; gpu1 is held by job 17…
)");
}

TEST(JobsTable, SaysSoWhenThereIsNone) { EXPECT_EQ(jobs_table({}, now, {}, 0), "no jobs\n"); }

TEST(JobsTable, SaysHowManyAreNotShown) {
  const std::string text = jobs_table(shop(), now, {}, 3);
  EXPECT_NE(text.find("… 40 more\n"), std::string::npos);
  EXPECT_EQ(text.find("sweep"), std::string::npos);
}

TEST(JobsTable, FoldsFourWaitingTasksOfAGroupAndNotThree) {
  const auto tasks = [](int n) {
    std::vector<JobView> jobs;
    for (int i = 0; i < n; ++i) jobs.push_back(task(12 + i, 12));
    return jobs_table(jobs, now, {}, 0);
  };
  EXPECT_EQ(tasks(3).find("×"), std::string::npos);
  EXPECT_NE(tasks(4).find("12…15  sweep ×4"), std::string::npos);
}

TEST(JobsTable, DoesNotFoldTasksWithDifferentBlockersOrGroups) {
  std::vector<JobView> jobs;
  for (std::uint64_t id = 12; id < 20; ++id) jobs.push_back(task(id, 12));
  jobs[4].waiting_for[0].needed = "3 GPUs";
  std::string text = jobs_table(jobs, now, {}, 0);
  EXPECT_NE(text.find("12…15"), std::string::npos);
  EXPECT_NE(text.find("16 "), std::string::npos);
  EXPECT_EQ(text.find("17…"), std::string::npos);  // three are left
  for (JobView& j : jobs) j.group.reset();
  EXPECT_EQ(jobs_table(jobs, now, {}, 0).find("×"), std::string::npos);
}

TEST(JobsTable, CountsTheOtherBlockers) {
  std::vector<JobView> jobs{waiting(5, "big")};
  jobs[0].waiting_for.push_back(jobs[0].waiting_for[0]);
  EXPECT_NE(jobs_table(jobs, now, Screen{.width = 160}, 0).find("(+1 more)"), std::string::npos);
}

TEST(JobsTable, AFailedJobWithoutReasonShowsItsExit) {
  std::vector<JobView> jobs{failed(4, "x")};
  jobs[0].reason.clear();
  EXPECT_NE(jobs_table(jobs, now, {}, 0).find("exit code 1"), std::string::npos);
}

TEST(JobsTable, FitsEveryWidthFrom40) {
  for (int width : {40, 60, 80, 100, 200}) {
    const std::string text = jobs_table(shop(), now, Screen{.width = width}, 0);
    EXPECT_LE(widest(text), static_cast<std::size_t>(width)) << text;
    EXPECT_NE(text.find("waiting"), std::string::npos);
  }
}

TEST(JobsTable, TerminalEscapesInNamesNeverReachTheTerminal) {
  JobView evil = failed(4, "evil\x1b]0;owned\x07\nname");
  evil.user = "a\x1b[2J";
  evil.reason = "died\r\x1b[1A\x1b[31mfake line";
  evil.devices[0].label = "gpu0\x1b[5m";
  evil.command =
      "\xC2\x9B"
      "31m";
  evil.request = "1\x07";
  for (const std::string& text : {jobs_table({evil}, now, {}, 0), job_why(evil, now, {})}) {
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find('\x07'), std::string::npos);
    EXPECT_EQ(text.find('\r'), std::string::npos);
    EXPECT_EQ(text.find("\xC2\x9B"), std::string::npos);
  }
}

TEST(JobsTable, ColoursOnlyWhenAsked) {
  EXPECT_EQ(jobs_table(shop(), now, {}, 0).find('\x1b'), std::string::npos);
  const std::string coloured = jobs_table(shop(), now, Screen{.width = 100, .colour = true}, 0);
  EXPECT_NE(coloured.find("\x1b[31mfailed"), std::string::npos);
}

TEST(JobWhy, GoldenOfAWaitingJob) {
  JobView j = waiting(5, "big-train");
  j.waiting_for.push_back(
      {BlockerKind::foreign_process, "40 GiB on one device",
       "gpu1 has 30.0 of 48.0 GiB free (18.0 GiB held by pid 4242, bob, vllm: not "
       "started by takt)",
       "ask bob to end pid 4242"});
  j.expected_start = now + seconds(270);
  j.decision = {"2 whole GPUs on one node", "batch: behind job 3"};
  j.stdout_path = "/home/alice/out";
  EXPECT_EQ(job_why(j, now, Screen{.width = 72, .utc_offset = hours(1)}),
            R"(Job 5 big-train (alice, batch): waiting for 2m13s
  asks for  1 GPU
  command   python3 train.py
  output    /home/alice/out

Waits for
  1. gpus-busy
     needs      2 GPUs
     available  1 free of 4; gpu1 is held by job 17 (bob)
     what helps wait for job 17, or ask for one GPU
  2. foreign-process
     needs      40 GiB on one device
     available  gpu1 has 30.0 of 48.0 GiB free (18.0 GiB held by pid
                4242, bob, vllm: not started by takt)
     what helps ask bob to end pid 4242

Expected start: in 4m30s (about 23:17), an estimate from the expected
                ends of what runs

Decided by
  1. 2 whole GPUs on one node
  2. batch: behind job 3
)");
}

TEST(JobWhy, SaysWhyTheStartIsUnknown) {
  JobView j = waiting(5, "x");
  j.expected_start_unknown = "job 17 gave no time";
  EXPECT_NE(job_why(j, now, {}).find("Expected start: unknown: job 17 gave no time"),
            std::string::npos);
  j.expected_start_unknown.clear();
  EXPECT_NE(job_why(j, now, {}).find("Expected start: unknown: it has not been worked out yet"),
            std::string::npos);
}

TEST(JobWhy, AWaitingJobWithoutBlockersIsNotSilent) {
  const JobView j = job(5, "x", JobState::waiting);
  EXPECT_NE(job_why(j, now, {}).find("nothing that is known"), std::string::npos);
}

TEST(JobWhy, GoldenOfAFailedJob) {
  EXPECT_EQ(job_why(failed(4, "vllm-server"), now, {}),
            R"(Job 4 vllm-server (alice, batch): failed after 50s
  asks for  1 GPU
  command   python3 train.py
  exit      exit code 1
  reason    OOM: asked 12.0 GiB, peak 14.1 GiB: try --memory 16GiB
)");
}

TEST(JobWhy, ARunningJobShowsItsEstimatedEnd) {
  JobView j = running(3, "x");
  j.expected_end = now + seconds(60);
  const std::string text = job_why(j, now, {});
  EXPECT_NE(text.find("running for 1m on gpu0"), std::string::npos);
  EXPECT_NE(text.find("ends      in 1m (about 22:14), an estimate"), std::string::npos);
  EXPECT_EQ(text.find("Waits for"), std::string::npos);
}

TEST(JobWhy, ValuesOfTheEnvironmentAreNotShown) {
  JobView j = running(3, "x");
  j.environment_names = {"TOKEN"};
  EXPECT_EQ(job_why(j, now, {}).find("TOKEN="), std::string::npos);
}

}  // namespace
}  // namespace takt::report
