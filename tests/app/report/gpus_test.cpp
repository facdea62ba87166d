#include <gtest/gtest.h>

#include "app/report/report.h"
#include "app/report/text.h"
#include "fixtures.h"

namespace takt::report {
namespace {

using namespace testing;  // NOLINT

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Gpu with_mig() {
  Gpu g = gpu(1);
  g.mig.enabled = true;
  g.utilization_percent = missing(MissingKind::not_supported);
  g.power_watts = missing(MissingKind::timed_out);
  MigInstance i;
  i.uuid = DeviceUuid("MIG-12");
  i.profile = "1g.10gb";
  i.start = 4;
  i.memory_total = gibibytes(10);
  i.memory_used = gibibytes(3);
  g.mig.instances = {i};
  GpuProcess p = process(99, AttemptId{JobId(9), 1});
  p.mig_instance = i.uuid;
  g.processes->push_back(p);
  return g;
}

TEST(GpusTable, Golden) {
  Gpu g0 = gpu(0);
  g0.processes =
      std::vector<GpuProcess>{process(4242, std::nullopt), process(4243, AttemptId{JobId(3), 1})};
  g0.throttle_reasons = std::vector<std::string>{"gpu_idle", "sw_power_cap"};
  control::NodeView n = node({g0, with_mig()});
  n.node.emulated = true;
  n.node.notes = {"cgroups are read-only: host memory is not limited"};
  EXPECT_EQ(gpus_table({n}, now, Screen{.width = 100}),
            R"(n1: 2 GPUs, EMULATED, 64 CPUs, 512.0 GiB of memory, driver 550.54.15
  note: cgroups are read-only: host memory is not limited
GPU  MODEL                        MEMORY                UTIL   TEMP         POWER  STATE
  0  NVIDIA H100 80GB HBM3        12.0 GiB of 80.0 GiB  56 %  61 °C  312 of 700 W  throttled
     clocks held down by sw_power_cap
     · pid 4242, bob, python3, 12.0 GiB, for 2h5m: not started by takt
     · pid 4243, bob, python3, 12.0 GiB, for 2h5m: job 3.1
  1  NVIDIA H100 80GB HBM3 (MIG)  12.0 GiB of 80.0 GiB   n/a  61 °C           n/a  ok
     utilisation n/a (not supported by this device or driver); power n/a (the device did not answer
     in time)
     └ 1g.10gb at slice 4, 3.0 GiB of 10.0 GiB, MIG-12
        · pid 99, bob, python3, 12.0 GiB, for 2h5m: job 9.1
)");
}

TEST(GpusTable, MissingIsNeverZeroAndNamesItsReason) {
  Gpu g;
  g.model = "NVIDIA A100";
  const std::string text = gpus_table({node({g})}, now, Screen{.width = 200});
  EXPECT_EQ(text.find(" 0 %"), std::string::npos);
  EXPECT_EQ(text.find("0 W"), std::string::npos);
  EXPECT_TRUE(has(text, "n/a of n/a"));
  EXPECT_TRUE(has(text,
                  "memory used, memory total, utilisation, temperature, power, throttling, "
                  "processes n/a (no sample"))
      << text;
}

TEST(GpusTable, ALostGpuSaysWhatToDo) {
  Gpu g = gpu(2);
  g.health = GpuHealth::lost;
  g.health_reason = "fell off the bus: reboot";
  g.xids = {{62, ago(300)}, {79, ago(120)}};
  const std::string text = gpus_table({node({g})}, now, {});
  EXPECT_TRUE(has(text, "lost"));
  EXPECT_TRUE(has(text, "fell off the bus: reboot"));
  EXPECT_TRUE(has(text, "XID 79 2m ago, 2 in all"));
}

TEST(GpusTable, IdleClocksAreNotThrottling) {
  Gpu g = gpu(0);
  g.throttle_reasons = std::vector<std::string>{"gpu_idle"};
  const std::string text = gpus_table({node({g})}, now, {});
  EXPECT_TRUE(has(text, "  ok\n"));
  EXPECT_FALSE(has(text, "throttled"));
}

TEST(GpusTable, AProcessesUnknownsAreSaid) {
  Gpu g = gpu(0);
  GpuProcess p;
  p.pid = 7;
  p.user = missing(MissingKind::not_permitted);
  g.processes->push_back(p);
  EXPECT_TRUE(has(gpus_table({node({g})}, now, Screen{.width = 200}),
                  "pid 7, user n/a (not permitted), program n/a (not found), memory n/a (not "
                  "supported by this device or driver), age n/a (not found): not started by takt"));
}

TEST(GpusTable, AProcessOnAnUnlistedInstanceIsNotLost) {
  Gpu g = with_mig();
  g.mig.instances.clear();
  const std::string text = gpus_table({node({g})}, now, {});
  EXPECT_TRUE(has(text, "pid 99"));
  EXPECT_TRUE(has(text, "on MIG-12"));
  EXPECT_TRUE(has(text, "MIG is on and there is no instance on it"));
}

TEST(GpusTable, ADriverProblemAndAnUnreachableNodeAreSentences) {
  control::NodeView n = node({});
  n.node.driver_problem = "no NVIDIA driver: install one";
  n.reachable = false;
  n.seen = ago(200);
  const std::string text = gpus_table({n}, now, {});
  EXPECT_TRUE(has(text, "no NVIDIA driver: install one"));
  EXPECT_TRUE(has(text, "not reachable: the last report is 3m20s old"));
  EXPECT_TRUE(has(gpus_table({node({})}, now, {}), "no NVIDIA GPU here"));
  EXPECT_TRUE(has(gpus_table({}, now, {}), "no node has reported yet"));
}

TEST(GpusTable, ProcessNamesCannotDriveTheTerminal) {
  Gpu g = gpu(0);
  GpuProcess p = process(7, std::nullopt);
  p.name = "python\x1b[2J";
  g.model = "H100\x1b]0;x\x07";
  g.health = GpuHealth::failing;
  g.health_reason = "bad\x1b[1A";
  g.processes->push_back(p);
  control::NodeView n = node({g});
  n.node.notes = {"note\x1b[5m"};
  n.node.id = NodeId("n\x1b[1m");
  for (const std::string& text : {gpus_table({n}, now, {}), live_screen({}, {n}, {}, now, {}, 0)})
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(LiveScreen, Golden) {
  control::NodeView n = node({gpu(0), with_mig()});
  n.node.emulated = true;
  control::Counts counts;
  counts.waiting = 41;
  counts.running = 1;
  counts.done = 1;
  counts.failed = 1;
  std::vector<control::JobView> jobs{waiting(5, "big-train"), failed(4, "old"),
                                     running(3, "llama-sft")};
  EXPECT_EQ(live_screen(jobs, {n}, counts, now, Screen{.width = 100}, 24),
            R"(takt  22:13  EMULATED GPUs
gpu0 util ███████░░░░░  56 %  ██░░░░░░░░░░ 12.0 GiB of 80.0 GiB   job 3
gpu1 util ............   n/a  ██░░░░░░░░░░ 12.0 GiB of 80.0 GiB   free

██░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  2 of 44 over: 1 running, 41 waiting, 1 failed

ID  NAME       USER   TIER   STATE     TIME  DEVICES     WHY
3   llama-sft  alice  batch  running     1m  gpu0
5   big-train  alice  batch  waiting  2m13s  asks 1 GPU  needs 2 GPUs; 1 free of 4; gpu1 is held by…
)");
}

TEST(LiveScreen, FitsItsRowsAndColumns) {
  std::vector<control::JobView> jobs;
  for (std::uint64_t id = 1; id < 60; ++id) jobs.push_back(waiting(id, "job"));
  std::vector<Gpu> gpus;
  for (unsigned i = 0; i < 16; ++i) gpus.push_back(gpu(i));
  control::Counts counts;
  counts.waiting = 59;
  for (std::size_t rows : {6u, 12u, 24u, 50u})
    for (int width : {40, 80, 140}) {
      const std::string text =
          live_screen(jobs, {node(gpus)}, counts, now, Screen{.width = width}, rows);
      std::size_t lines = 0;
      std::size_t from = 0;
      while (from < text.size()) {
        const std::size_t to = text.find('\n', from);
        EXPECT_LE(columns(text.substr(from, to - from)), static_cast<std::size_t>(width));
        ++lines;
        from = to + 1;
      }
      EXPECT_LE(lines, std::max<std::size_t>(rows, 8)) << text;
    }
}

TEST(LiveScreen, AnEmptyHouseSaysSo) {
  const std::string text = live_screen({}, {}, {}, now, {}, 24);
  EXPECT_TRUE(has(text, "no GPU has been reported"));
  EXPECT_TRUE(has(text, "nothing runs and nothing waits"));
}

TEST(LiveScreen, GpuBusyComesFromGpmWhereItIs) {
  Gpu g = gpu(0);
  g.sm_active_ratio = 0.25;
  EXPECT_TRUE(has(live_screen({}, {node({g})}, {}, now, {}, 24), "SM   ███"));
}

}  // namespace
}  // namespace takt::report
