#include <gtest/gtest.h>

#include "app/report/report.h"
#include "fixtures.h"

namespace takt::report {
namespace {

using namespace testing;  // NOLINT

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

WorkloadSummary not_attributable() {
  WorkloadSummary w = workload();
  w.workload = "notebook";
  w.category = Category::unknown;
  w.evidence = {"shared, not attributable: no utilisation per process"};
  w.attributable = false;
  w.quantiles.clear();
  w.advice.clear();
  w.memory_peak = missing(MissingKind::not_permitted);
  w.notes = {"no size advice: its memory peak is not known (not permitted)"};
  return w;
}

TEST(WorkloadsTable, Golden) {
  EXPECT_EQ(
      workloads_table({workload(), not_attributable()}, Screen{.width = 100}),
      R"(WORKLOAD   DECLARED  MEASURED LIKE  RUNS       WAITED mean/max  MEMORY peak       BUSY p50/p95
llama-sft  training  training       3, 1 open  5s / 2m13s       11.2 of 80.0 GiB  85 % / 99 %
    measured: busy by NVML GPM SM active, 60 samples, coverage 96 %; memory of its processes, 60
              samples, coverage 96 %
    provisional: steadily busy: p75 86 %, idle in 0 % of 60 samples
    could be smaller: memory 80.0 GiB (whole GPU) → --memory 15GiB (low confidence)
      peak 11.2 GiB in 3 of 3 attempts, 60 samples, coverage 96 %, margin 25 %; undo: ask for a
      whole GPU again: -g 1
notebook   training  unknown        3, 1 open  5s / 2m13s       n/a of 80.0 GiB   n/a
    measured: busy n/a (shared, not attributable); memory n/a (not permitted)
    unknown: shared, not attributable: no utilisation per process
    note: no size advice: its memory peak is not known (not permitted)
)");
}

TEST(WorkloadsTable, AnUnmeasuredBusyNamesTheCommonestReason) {
  WorkloadSummary w = workload();
  w.quantiles.clear();
  w.missing_samples = {{"busy: timed out", 3}, {"busy: not supported", 9}, {"no report", 2}};
  const std::string text = workloads_table({w}, Screen{.width = 200});
  EXPECT_TRUE(has(text, "busy n/a (not supported)"));
  EXPECT_TRUE(has(text, "2 reports missed"));
  EXPECT_FALSE(has(text, "0 % / 0 %"));
}

TEST(WorkloadsTable, SaysWhenMemoryIsTheDevices) {
  WorkloadSummary w = workload();
  w.memory_of_device = true;
  EXPECT_TRUE(has(workloads_table({w}, {}), "memory of the device"));
}

TEST(WorkloadsTable, AWorkloadWithoutGpuHasNoGpuNumbers) {
  WorkloadSummary w;
  w.workload = "prepare";
  w.attempts = 1;
  const std::string text = workloads_table({w}, {});
  EXPECT_TRUE(has(text, "no GPU"));
  EXPECT_FALSE(has(text, "measured:"));
}

TEST(WorkloadsTable, NothingMeasuredIsSaid) {
  EXPECT_EQ(workloads_table({}, {}), "nothing has been measured yet\n");
}

TEST(WorkloadsTable, NamesCannotDriveTheTerminal) {
  WorkloadSummary w = workload();
  w.workload = "x\x1b[2J";
  w.evidence = {"\x1b[1A"};
  w.advice[0].to = "\x1b[5m";
  EXPECT_EQ(workloads_table({w}, {}).find('\x1b'), std::string::npos);
  EXPECT_EQ(day_summary({}, {w}, {}, now, {}).find('\x1b'), std::string::npos);
}

TEST(DaySummary, Golden) {
  std::vector<control::JobView> jobs{waiting(5, "big-train")};
  for (std::uint64_t id = 12; id <= 14; ++id) jobs.push_back(task(id, 12));
  WaitLog log;
  log.look(jobs, ago(100));
  log.look(jobs, ago(20));
  jobs[0].state = control::JobState::done;
  jobs[0].started = ago(20);
  jobs[0].ended = ago(5);
  jobs[0].waiting_for.clear();
  jobs.push_back(failed(4, "vllm-server"));
  jobs.back().started = jobs.back().submitted;
  control::NodeView n = node({gpu(0)});
  n.node.emulated = true;
  EXPECT_EQ(day_summary(jobs, {workload()}, {n}, now, Screen{.width = 110}, log),
            R"(1 GPU on 1 node, EMULATED: the numbers are those of stand-in programs
5 jobs: 1 done, 1 failed, 3 still waiting or running
  job 4 vllm-server: OOM: asked 12.0 GiB, peak 14.1 GiB: try --memory 16GiB

Who waited, and why
WORKLOAD     TIER   JOBS   MEAN         LONGEST  WAITED MOSTLY FOR
big-train    batch     1  1m53s           1m53s
    gpus-busy: needs 2 GPUs; 1 free of 4; gpu1 is held by job 17 (bob)
sweep        batch     3  2m13s  2m13s (job 12)
    gpus-busy: needs 2 GPUs; 1 free of 4; gpu1 is held by job 17 (bob)
vllm-server  batch     1     0s              0s

What was measured
WORKLOAD   DECLARED  MEASURED LIKE  RUNS       WAITED mean/max  MEMORY peak       BUSY p50/p95
llama-sft  training  training       3, 1 open  5s / 2m13s       11.2 of 80.0 GiB  85 % / 99 %
    measured: busy by NVML GPM SM active, 60 samples, coverage 96 %; memory of its processes, 60 samples,
              coverage 96 %
    provisional: steadily busy: p75 86 %, idle in 0 % of 60 samples

What could be smaller
  llama-sft: memory 80.0 GiB (whole GPU) → --memory 15GiB
      low confidence: peak 11.2 GiB in 3 of 3 attempts, 60 samples, coverage 96 %, margin 25 %
)");
}

TEST(DaySummary, DoesNotInventWhyAJobWaitedThatNobodyWatched) {
  control::JobView j = running(3, "x");
  EXPECT_TRUE(has(day_summary({j}, {}, {}, now, {}), "n/a (nobody looked while it waited)"));
}

TEST(DaySummary, SaysSoWhenNothingCouldBeSmaller) {
  WorkloadSummary w = workload();
  w.advice.clear();
  EXPECT_TRUE(
      has(day_summary({}, {w}, {}, now, {}), "nothing that the measurements would bear out"));
}

TEST(WaitLog, BooksTheTimeSinceTheLastLookToTheBlockersOfThatLook) {
  WaitLog log;
  std::vector<control::JobView> jobs{waiting(5, "x")};
  log.look(jobs, ago(100));
  jobs[0].waiting_for[0].kind = BlockerKind::draining;
  log.look(jobs, ago(60));
  jobs[0].state = control::JobState::running;
  log.look(jobs, ago(50));
  log.look(jobs, ago(10));
  const WaitLog::Wait& wait = log.waits().at(JobId(5));
  EXPECT_EQ(wait.times.at(BlockerKind::gpus_busy), seconds(40));
  EXPECT_EQ(wait.times.at(BlockerKind::draining), seconds(10));
}

TEST(WaitLog, AClockThatGoesBackBooksNothing) {
  WaitLog log;
  const std::vector<control::JobView> jobs{waiting(5, "x")};
  log.look(jobs, ago(10));
  log.look(jobs, ago(100));
  EXPECT_EQ(log.waits().at(JobId(5)).times.at(BlockerKind::gpus_busy), Duration{});
  log.look({}, ago(5));
  EXPECT_EQ(log.waits().at(JobId(5)).times.at(BlockerKind::gpus_busy), seconds(5));
}

}  // namespace
}  // namespace takt::report
