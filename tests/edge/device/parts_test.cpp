// Partitions, performance counters, processes, connections and error events of GPUs.
#include <cmath>

#include "edge/device/gpu_process_reader.h"
#include "edge/device/topology.h"
#include "edge/device/worker.h"
#include "probe_fixture.h"

namespace takt::device::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class MigTest : public ProbeTest {
 protected:
  void SetUp() override {
    give_gpus(1);
    change_gpu(0, [](FakeGpu& gpu) {
      gpu.mig = gpu.mig_pending = 1;
      gpu.instances = {
          {"MIG-a", 1, 0, 4, 4, 3, 3, 0, 40192, 100ull << 20},
          {"MIG-b", 9, 0, 0, 1, 1, 1, 0, 9728, 20ull << 20},
          {"MIG-c", 7, 1, 2, 2, 2, 1, 0, 19968, 0},
      };
    });
  }
};

TEST_F(MigTest, Instances_have_identity_place_size_profile_and_memory_of_their_own) {
  const Gpu gpu = read_gpu();
  EXPECT_THAT(gpu.mig.enabled, Holds(true));
  EXPECT_THAT(gpu.mig.pending, Holds(true));
  ASSERT_EQ(gpu.mig.instances.size(), 3u);
  const MigInstance& a = gpu.mig.instances[0];
  EXPECT_EQ(a.uuid, DeviceUuid("MIG-a"));
  EXPECT_EQ(a.profile, "3g.40gb");
  EXPECT_EQ(a.start, 4);
  EXPECT_EQ(a.size, 4);
  EXPECT_EQ(a.compute_slices, 3);
  EXPECT_EQ(a.gpu_instance, 1u);
  EXPECT_EQ(a.compute_instance, 0u);
  EXPECT_THAT(a.memory_total, Holds(mebibytes(40192)));
  EXPECT_THAT(a.memory_used, Holds(mebibytes(100)));
  EXPECT_EQ(gpu.mig.instances[1].profile, "1g.10gb");
  EXPECT_EQ(gpu.mig.instances[2].profile, "1c.2g.20gb") << "a part of its GPU instance";
}

TEST_F(MigTest, A_partitioned_gpu_has_no_utilisation_as_a_whole) {
  const Gpu gpu = read_gpu();
  EXPECT_THAT(gpu.utilization_percent, IsMissing(MissingKind::not_supported));
  EXPECT_THAT(gpu.memory_utilization_percent, IsMissing(MissingKind::not_supported));
}

TEST_F(MigTest, Without_the_right_to_see_placements_the_size_comes_from_the_profile) {
  change_gpu(0, [](FakeGpu& gpu) {
    gpu.errors["nvmlDeviceGetGpuInstanceById"] = NVML_ERROR_NO_PERMISSION;
  });
  const Gpu gpu = read_gpu();
  EXPECT_EQ(gpu.mig.instances.at(0).start, -1);
  EXPECT_EQ(gpu.mig.instances.at(0).size, 4);
  EXPECT_EQ(gpu.mig.instances.at(1).size, 1);
}

TEST_F(MigTest, Memory_of_an_instance_is_never_the_parents) {
  change_gpu(0, [](FakeGpu& gpu) { gpu.errors["nvmlDeviceGetMemoryInfo"] = NVML_ERROR_UNKNOWN; });
  EXPECT_THAT(read_gpu().mig.instances.at(0).memory_total, IsMissing(MissingKind::driver_error));
}

TEST_F(MigTest, Processes_belong_to_their_instance) {
  change_gpu(0, [](FakeGpu& gpu) {
    gpu.compute = {{50, 64ull << 20, 9, 0}, {51, 32ull << 20, 1, 0}};
  });
  const Gpu gpu = read_gpu();
  ASSERT_TRUE(gpu.processes.has_value());
  ASSERT_EQ(gpu.processes->size(), 2u);
  EXPECT_EQ(gpu.processes->at(0).mig_instance, DeviceUuid("MIG-b"));
  EXPECT_EQ(gpu.processes->at(1).mig_instance, DeviceUuid("MIG-a"));
  EXPECT_THAT(gpu.processes->at(0).sm_percent, IsMissing(MissingKind::not_supported));
}

TEST_F(MigTest, Performance_counters_need_a_driver_that_keeps_instances_apart) {
  change_gpu(0, [](FakeGpu& gpu) { gpu.gpm = true; });
  nvml_->with([](FakeNvml& n) { n.driver_version = "535.104.05"; });
  EXPECT_THAT(read_gpu().sm_active_ratio, IsMissing(MissingKind::not_supported));
}

// --- performance counters ---

class GpmTest : public ProbeTest {
 protected:
  void SetUp() override {
    give_gpus(1);
    change_gpu(0, [](FakeGpu& gpu) {
      gpu.gpm = true;
      gpu.gpm_values = {{NVML_GPM_METRIC_SM_UTIL, 60.0},
                        {NVML_GPM_METRIC_ANY_TENSOR_UTIL, 25.0},
                        {NVML_GPM_METRIC_DRAM_BW_UTIL, 40.0},
                        {NVML_GPM_METRIC_PCIE_TX_PER_SEC, 2.0},
                        {NVML_GPM_METRIC_PCIE_RX_PER_SEC, 500.0}};
    });
  }
  // Reads until the two samples are far enough apart.
  Gpu read_with_counters() {
    Gpu gpu = read_gpu();
    eventually([&] {
      gpu = read_gpu();
      return gpu.sm_active_ratio || gpu.sm_active_ratio.error().kind != MissingKind::no_sample_yet;
    });
    return gpu;
  }
};

TEST_F(GpmTest, The_first_reading_has_no_counters_and_later_ones_do) {
  EXPECT_THAT(read_gpu().sm_active_ratio, IsMissing(MissingKind::no_sample_yet));
  const Gpu gpu = read_with_counters();
  EXPECT_THAT(gpu.sm_active_ratio, Holds(0.6));
  EXPECT_THAT(gpu.tensor_active_ratio, Holds(0.25));
  EXPECT_THAT(gpu.dram_active_ratio, Holds(0.4));
}

TEST_F(GpmTest, Pcie_rates_are_mebibytes_and_directions_are_not_mixed_up) {
  const Gpu gpu = read_with_counters();
  EXPECT_THAT(gpu.pcie_tx_bytes_per_second, Holds(2 * 1024 * 1024));
  EXPECT_THAT(gpu.pcie_rx_bytes_per_second, Holds(500 * 1024 * 1024));
}

TEST_F(GpmTest, Values_above_their_range_are_not_used_and_one_missing_metric_costs_only_itself) {
  change_gpu(0, [](FakeGpu& gpu) {
    gpu.gpm_values[NVML_GPM_METRIC_SM_UTIL] = 130.0;
    gpu.gpm_values[NVML_GPM_METRIC_ANY_TENSOR_UTIL] = 100.0001;
    gpu.gpm_values.erase(NVML_GPM_METRIC_DRAM_BW_UTIL);
  });
  const Gpu gpu = read_with_counters();
  EXPECT_THAT(gpu.sm_active_ratio, IsMissing(MissingKind::out_of_range));
  EXPECT_THAT(gpu.tensor_active_ratio, Holds(1.0));
  EXPECT_THAT(gpu.dram_active_ratio, IsMissing(MissingKind::not_supported));
}

TEST_F(GpmTest, A_metric_that_is_not_a_number_is_missing) {
  change_gpu(0, [](FakeGpu& gpu) { gpu.gpm_values[NVML_GPM_METRIC_DRAM_BW_UTIL] = std::nan(""); });
  const Gpu gpu = read_with_counters();
  EXPECT_THAT(gpu.sm_active_ratio, Holds(0.6));
  EXPECT_THAT(gpu.dram_active_ratio, IsMissing(MissingKind::no_sample_yet));
}

TEST_F(GpmTest, Without_the_right_to_sample_the_older_pcie_call_is_used) {
  change_gpu(0, [](FakeGpu& gpu) { gpu.errors["nvmlGpmSampleGet"] = NVML_ERROR_NO_PERMISSION; });
  const Gpu gpu = read_gpu();
  EXPECT_THAT(gpu.sm_active_ratio, IsMissing(MissingKind::not_permitted));
  EXPECT_THAT(gpu.pcie_rx_bytes_per_second, Holds(250'000'000));
}

// --- processes ---

class GpuProcessTest : public ProbeTest {
 protected:
  void SetUp() override { give_gpus(1); }
  std::vector<GpuProcess> processes() {
    const Gpu gpu = read_gpu();
    EXPECT_TRUE(gpu.processes.has_value()) << to_string(gpu.processes.error());
    return gpu.processes.value_or(std::vector<GpuProcess>{});
  }
};

TEST_F(GpuProcessTest, Compute_and_graphics_lists_are_merged_and_described_by_the_host) {
  processes_->add({10, 1, 1000, 5, Instant{42}, "python3"});
  processes_->add({11, 1, 77, 5, Instant{43}, "Xorg"});
  change_gpu(0, [](FakeGpu& gpu) {
    gpu.compute = {{10, 900ull << 20}};
    gpu.graphics = {{11, 30ull << 20}, {10, 900ull << 20}};
  });
  const auto found = processes();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].kind, ProcessKind::both);
  EXPECT_THAT(found[0].memory, Holds(mebibytes(900))) << "not counted twice";
  EXPECT_THAT(found[0].name, Holds(std::string("python3")));
  EXPECT_THAT(found[0].user, Holds(std::string("ann")));
  EXPECT_THAT(found[0].started, Holds(Instant{42}));
  EXPECT_TRUE(found[0].foreign());
  EXPECT_EQ(found[1].kind, ProcessKind::graphics);
  EXPECT_THAT(found[1].user, Holds(std::string("77")));
}

TEST_F(GpuProcessTest, A_process_that_the_host_does_not_know_is_still_listed) {
  change_gpu(0, [](FakeGpu& gpu) { gpu.compute = {{10, 900ull << 20}}; });
  const Node node = read();
  const GpuProcess& process = node.gpus.at(0).processes->at(0);
  EXPECT_THAT(process.name, IsMissing(MissingKind::not_found));
  EXPECT_THAT(process.user, IsMissing(MissingKind::not_found));
  EXPECT_THAT(node.notes, Contains(HasSubstr("PID namespace")));
}

TEST_F(GpuProcessTest, A_host_that_hangs_on_a_process_costs_only_names) {
  change_gpu(0, [](FakeGpu& gpu) { gpu.compute = {{10, 900ull << 20}}; });
  processes_->set_hanging(true);
  const Gpu gpu = probe(milliseconds(400)).read(kNow).gpus.at(0);
  EXPECT_EQ(gpu.health, GpuHealth::ok);
  EXPECT_EQ(gpu.processes->at(0).pid, 10);
  EXPECT_THAT(gpu.processes->at(0).name, IsMissing(MissingKind::timed_out));
}

TEST_F(GpuProcessTest,
       Memory_that_the_driver_does_not_tell_is_missing_and_too_much_is_out_of_range) {
  change_gpu(0, [](FakeGpu& gpu) { gpu.compute = {{10}, {11, 1ull << 62}}; });
  const auto found = processes();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0].memory, IsMissing(MissingKind::not_supported));
  EXPECT_THAT(found[1].memory, IsMissing(MissingKind::out_of_range));
}

// Case C1 19: the same list in the layout of drivers 535.43 to 535.86.
TEST_F(GpuProcessTest, The_longer_entries_of_some_535_drivers_give_the_same_list) {
  for (const std::size_t count : {1u, 2u, 3u, 64u, 65u, 300u}) {
    change_gpu(0, [&](FakeGpu& gpu) {
      gpu.compute.clear();
      for (unsigned i = 0; i < count; ++i) gpu.compute.push_back({1000 + i, (1ull + i) << 20});
    });
    for (const bool longer : {false, true}) {
      nvml_->with([&](FakeNvml& n) { n.long_process_entries = longer; });
      const auto found = processes();
      ASSERT_EQ(found.size(), count) << "long entries: " << longer;
      for (std::size_t i = 0; i < count; ++i) {
        EXPECT_EQ(found[i].pid, static_cast<std::int64_t>(1000 + i));
        EXPECT_THAT(found[i].memory, Holds(mebibytes(static_cast<std::int64_t>(1 + i))));
      }
    }
  }
}

TEST_F(GpuProcessTest, A_list_of_impossible_pids_is_no_list) {
  change_gpu(0, [](FakeGpu& gpu) { gpu.compute = {{0, 5}, {0xFFFFFFFFu, 5}}; });
  EXPECT_THAT(read_gpu().processes, IsMissing(MissingKind::out_of_range));
}

TEST_F(GpuProcessTest, A_card_without_graphics_has_its_compute_processes) {
  change_gpu(0, [](FakeGpu& gpu) {
    gpu.compute = {{10, 1 << 20}};
    gpu.errors["nvmlDeviceGetGraphicsRunningProcesses_v3"] = NVML_ERROR_NOT_SUPPORTED;
  });
  EXPECT_EQ(processes().size(), 1u);
}

TEST_F(GpuProcessTest, When_graphics_processes_cannot_be_seen_the_list_is_not_called_complete) {
  change_gpu(0, [](FakeGpu& gpu) {
    gpu.compute = {{10, 1 << 20}};
    gpu.errors["nvmlDeviceGetGraphicsRunningProcesses_v3"] = NVML_ERROR_NO_PERMISSION;
  });
  EXPECT_THAT(read_gpu().processes, IsMissing(MissingKind::not_permitted));
}

TEST_F(GpuProcessTest, Use_is_the_mean_of_new_samples_and_nobody_active_is_zero) {
  const auto at = static_cast<unsigned long long>(kNow.us);
  change_gpu(0, [&](FakeGpu& gpu) {
    gpu.compute = {{10, 1 << 20}, {11, 1 << 20}, {12, 1 << 20}};
    gpu.samples = {{10, at - 500'000, 40, 0, 0, 0},
                   {10, at - 300'000, 61, 0, 0, 0},
                   {12, at - 300'000, 4'000'000'000u, 0, 0, 0},
                   {11, at - 9'000'000, 99, 0, 0, 0}};  // older than a second
  });
  auto found = processes();
  EXPECT_THAT(found.at(0).sm_percent, Holds(51));
  EXPECT_THAT(found.at(1).sm_percent, Holds(0));
  EXPECT_THAT(found.at(2).sm_percent, IsMissing(MissingKind::out_of_range));
  found = processes();  // the driver has nothing new: "not found"
  EXPECT_THAT(found.at(0).sm_percent, Holds(0));
}

TEST_F(GpuProcessTest, Without_support_for_use_of_processes_it_is_missing) {
  change_gpu(0, [](FakeGpu& gpu) {
    gpu.compute = {{10, 1 << 20}};
    gpu.errors["nvmlDeviceGetProcessUtilization"] = NVML_ERROR_NOT_SUPPORTED;
  });
  EXPECT_THAT(processes().at(0).sm_percent, IsMissing(MissingKind::not_supported));
}

TEST(ProcessListTest, A_buffer_in_no_known_layout_is_out_of_range) {
  std::vector<std::byte> buffer(64 * 32, std::byte{0});
  EXPECT_THAT(parse_process_list(buffer, 2), IsMissing(MissingKind::out_of_range));
  EXPECT_THAT(*parse_process_list(buffer, 0), IsEmpty());
}

// --- connections ---

class TopologyTest : public ProbeTest {};

TEST_F(TopologyTest, Ancestors_become_kinds_of_links_from_near_to_far) {
  give_gpus(4);
  nvml_->with([](FakeNvml& n) {
    n.ancestors = {{{0, 1}, NVML_TOPOLOGY_SINGLE},
                   {{0, 2}, NVML_TOPOLOGY_MULTIPLE},
                   {{0, 3}, NVML_TOPOLOGY_HOSTBRIDGE},
                   {{1, 2}, NVML_TOPOLOGY_NODE},
                   {{1, 3}, NVML_TOPOLOGY_SYSTEM}};
  });
  const auto links = read().links;
  ASSERT_EQ(links.size(), 6u);
  const LinkKind expected[] = {LinkKind::pix,  LinkKind::pxb, LinkKind::phb,
                               LinkKind::node, LinkKind::sys, LinkKind::unknown};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(links[i].kind, expected[i]) << i;
  EXPECT_EQ(links[0].a, DeviceUuid("GPU-0"));
  EXPECT_EQ(links[0].b, DeviceUuid("GPU-1"));
}

TEST_F(TopologyTest, Links_between_two_gpus_and_over_switches_are_counted) {
  give_gpus(4);
  change_gpu(0, [](FakeGpu& gpu) { gpu.nvlink_buses = {0x11, 0x11, 0x80, 0x80, 0x81}; });
  change_gpu(1, [](FakeGpu& gpu) { gpu.nvlink_buses = {0x10, 0x10}; });
  change_gpu(2, [](FakeGpu& gpu) { gpu.nvlink_buses = {0x80, 0x81, 0x81}; });
  nvml_->with([](FakeNvml& n) { n.ancestors = {{{0, 3}, NVML_TOPOLOGY_SYSTEM}}; });
  const auto links = read().links;
  EXPECT_EQ(links[0].kind, LinkKind::nvlink);
  EXPECT_EQ(links[0].nvlinks, 2);
  EXPECT_EQ(links[1].kind, LinkKind::nvlink);
  EXPECT_EQ(links[1].nvlinks, 2) << "one over each switch";
  EXPECT_EQ(links[2].kind, LinkKind::sys);
  EXPECT_EQ(links[2].nvlinks, 0);
}

TEST_F(TopologyTest, Two_gpus_with_links_to_a_third_are_not_linked_with_each_other) {
  const std::vector<LinkedGpu> gpus = {{DeviceUuid("a"), "A", {"C"}, nullptr},
                                       {DeviceUuid("b"), "B", {"C"}, nullptr},
                                       {DeviceUuid("c"), "C", {"A", "B"}, nullptr}};
  EXPECT_EQ(nvlinks_between(gpus[0], gpus[1], gpus), 0);
  EXPECT_EQ(nvlinks_between(gpus[0], gpus[2], gpus), 1);
}

TEST_F(TopologyTest, A_question_about_connections_that_hangs_delays_one_read_only) {
  give_gpus(2);
  hang(0, "nvmlDeviceGetTopologyCommonAncestor");
  const Node node = probe(milliseconds(300)).read(kNow);
  EXPECT_EQ(node.gpus.at(0).health, GpuHealth::ok);
  EXPECT_EQ(node.links.at(0).kind, LinkKind::unknown);
  const auto start = std::chrono::steady_clock::now();
  read();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(250));
  nvml_->with([](FakeNvml& n) { n.ancestors[{0, 1}] = NVML_TOPOLOGY_NODE; });
  release(0, "nvmlDeviceGetTopologyCommonAncestor");
  EXPECT_TRUE(eventually([&] { return read().links.at(0).kind == LinkKind::node; }));
}

// --- error events ---

class XidTest : public ProbeTest {
 protected:
  void SetUp() override { give_gpus(2); }
  void raise(unsigned gpu, unsigned long long code) {
    nvml_->with([&](FakeNvml& n) {
      n.events.push_back({fake_handle(gpu), nvmlEventTypeXidCriticalError, code, 0, 0});
    });
  }
};

TEST_F(XidTest, A_programs_fault_is_shown_and_the_gpu_stays_in_use) {
  read();
  raise(1, 31);
  ASSERT_TRUE(eventually([&] { return !read_gpu(1).xids.empty(); }));
  const Node node = read();
  EXPECT_EQ(node.gpus[1].xids.at(0).code, 31u);
  EXPECT_GT(node.gpus[1].xids.at(0).at.us, 1'600'000'000'000'000);
  EXPECT_EQ(node.gpus[1].health, GpuHealth::ok);
  EXPECT_THAT(node.gpus[0].xids, IsEmpty());
}

TEST_F(XidTest, An_error_that_asks_for_a_reset_takes_the_gpu_out) {
  read();
  raise(0, 48);
  ASSERT_TRUE(eventually([&] { return !read_gpu(0).xids.empty(); }));
  const Gpu gpu = read_gpu(0);
  EXPECT_EQ(gpu.health, GpuHealth::failing);
  EXPECT_THAT(gpu.health_reason, HasSubstr("XID 48"));
  EXPECT_EQ(read_gpu(1).health, GpuHealth::ok);
}

TEST_F(XidTest, Unknown_codes_are_kept_and_only_the_last_sixteen) {
  read();
  for (unsigned long long code = 9001; code <= 9020; ++code) raise(0, code);
  ASSERT_TRUE(eventually([&] {
    const auto xids = read_gpu(0).xids;
    return !xids.empty() && xids.back().code == 9020;
  }));
  const auto xids = read_gpu(0).xids;
  EXPECT_EQ(xids.size(), 16u);
  EXPECT_EQ(xids.front().code, 9005u);
}

TEST_F(XidTest, Events_go_on_after_the_wait_failed) {
  nvml_->with([](FakeNvml& n) { n.errors["nvmlEventSetWait_v2"] = NVML_ERROR_GPU_IS_LOST; });
  read();
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(nvml_->mutex);
    return nvml_->calls["nvmlEventSetWait_v2"] > 0;
  }));
  nvml_->with([](FakeNvml& n) { n.errors.clear(); });
  raise(0, 13);
  EXPECT_TRUE(eventually([&] { return !read_gpu(0).xids.empty(); }));
}

TEST_F(XidTest, A_gpu_without_events_is_noted) {
  change_gpu(
      0, [](FakeGpu& gpu) { gpu.errors["nvmlDeviceRegisterEvents"] = NVML_ERROR_NOT_SUPPORTED; });
  EXPECT_THAT(read().notes, Contains(HasSubstr("GPU 0: XID errors are not seen")));
}

// --- the thread for calls that may hang ---

TEST(WorkerTest, Takes_no_second_task_while_one_hangs_and_can_be_left_behind) {
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false, ended = false;
  };
  const auto gate = std::make_shared<Gate>();
  {
    Worker worker;
    ASSERT_TRUE(worker.post([gate] {
      std::unique_lock lock(gate->mutex);
      gate->changed.wait(lock, [&] { return gate->open; });
      gate->ended = true;
    }));
    EXPECT_FALSE(worker.post([] {}));
  }
  const std::lock_guard lock(gate->mutex);
  EXPECT_FALSE(gate->ended);
  gate->open = true;
  gate->changed.notify_all();
}

TEST(WorkerTest, Ends_the_running_task_and_what_it_owned_before_it_ends_itself) {
  const auto owned = std::make_shared<int>(0);
  {
    Worker worker;
    worker.set_patience(seconds(10));
    worker.post([owned] { ++*owned; });
  }
  EXPECT_EQ(*owned, 1);
  EXPECT_EQ(owned.use_count(), 1);
}

}  // namespace
}  // namespace takt::device::testing
