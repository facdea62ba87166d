// The agent as the controller sees it: frames in, reports out, real processes, a driver whose
// answers the test chooses.
#include "app/agent/agent.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <sys/socket.h>

#include <thread>

#include "edge/codec/agent_json.h"
#include "edge/device/fake_nvml.h"
#include "edge/engine/frame_channel.h"
#include "edge/launch/launch_fixture.h"

namespace takt::agent {
namespace {

using control::AttemptPhase;
using control::AttemptSeen;
using control::NodeReport;
using device::testing::FakeGpu;
using device::testing::FakeNvml;
using ::testing::HasSubstr;

class AgentTest : public launch::LaunchTest {
 protected:
  void SetUp() override {
    LaunchTest::SetUp();
    launcher.reset();  // the agent has its own
    driver_ = dlopen(FAKE_NVML, RTLD_NOW);
    ASSERT_NE(driver_, nullptr) << dlerror();
    nvml_ = reinterpret_cast<decltype(&::fake_nvml)>(dlsym(driver_, "fake_nvml"))();
    nvml_->reset();
    nvml_->with([](FakeNvml& n) {
      n.gpus.assign(2, FakeGpu{});
      for (unsigned i = 0; i < 2; ++i) {
        n.gpus[i].uuid = "GPU-" + std::to_string(i);
        n.gpus[i].minor = i;
        n.gpus[i].bus = 0x10 + i;
      }
    });
    start_agent();
  }
  void TearDown() override {
    std::ofstream(folder + "/go") << "go";  // for shims that wait
    end_agent();
    open_launcher();
    LaunchTest::TearDown();
    dlclose(driver_);
  }

  void start_agent(const std::string& hello = codec::encode_hello("0.1.0")) {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    channel_ = std::make_unique<engine::FrameChannel>(pair[0], codec::agent_frame_bytes_max);
    AgentOptions agent;
    agent.channel_fd = pair[1];
    agent.version = "0.1.0";
    agent.launcher = options;
    agent.probe.nvml_path = FAKE_NVML;
    agent.probe.node_name = "box";
    agent.sample_interval = milliseconds(50);
    thread_ = std::thread([this, agent] { code_ = run_agent(agent); });
    ASSERT_TRUE(channel_->write(hello, seconds(5)));
  }
  void end_agent() {
    channel_.reset();
    if (thread_.joinable()) thread_.join();
  }

  void send(const control::Effect& effect) {
    ASSERT_TRUE(channel_->write(codec::encode_effect(effect), seconds(5)));
  }
  void start(const control::LaunchOrder& what) {
    ASSERT_TRUE(wait_for_reports(1));  // orders answer a report
    start(what, {report_.node.boot_id, report_.life, report_.sequence});
  }
  void start(const control::LaunchOrder& what, const control::Basis& basis) {
    send(control::Start{what, basis});
  }
  // Reads reports until one is as wanted: true, and it is `report_`.
  bool wait_for_report(const std::function<bool(const NodeReport&)>& wanted) {
    return launch::eventually([&] {
      auto frames = channel_->read_available();
      if (!frames) return false;
      for (const std::string& frame : *frames) {
        frames_.push_back(frame);
        auto report = codec::decode_report(frame);
        if (!report) continue;
        report_ = std::move(*report);
        ++reports_;
        if (wanted(report_)) return true;
      }
      return false;
    });
  }
  bool wait_for_reports(int count) {
    const int end = reports_ + count;
    return wait_for_report([&](const NodeReport&) { return reports_ >= end; });
  }
  static const AttemptSeen* of(const NodeReport& report, std::uint64_t job) {
    for (const AttemptSeen& seen : report.attempts)
      if (seen.attempt == attempt(job)) return &seen;
    return nullptr;
  }
  bool wait_for_phase(std::uint64_t job, AttemptPhase phase) {
    return wait_for_report([&](const NodeReport& report) {
      const AttemptSeen* const seen = of(report, job);
      return seen != nullptr && seen->phase == phase;
    });
  }
  bool wait_until_gone(std::uint64_t job) {
    return wait_for_report([&](const NodeReport& report) {
      const AttemptSeen* const seen = of(report, job);
      return seen != nullptr && seen->processes_gone;
    });
  }
  // A job on GPU 0 that runs.
  std::int64_t run_on_gpu_0() {
    auto what = order(1, "echo up; exec sleep 60");
    what.grant.devices.push_back(
        {DeviceKind::whole_gpu, DeviceUuid("GPU-0"), DeviceUuid("GPU-0"), gibibytes(1), 100});
    start(what);
    EXPECT_TRUE(wait_for_phase(1, AttemptPhase::running));
    EXPECT_TRUE(wait_for_text(out(1), "up"));
    return of(report_, 1)->pid;
  }
  void show_on_gpu_0(const std::vector<device::testing::FakeProcess>& processes) {
    nvml_->with([&](FakeNvml& n) { n.gpus[0].compute = processes; });
  }
  void stop_at_once(std::uint64_t job) { send(control::Stop{attempt(job), 1, Duration{}}); }

  void* driver_ = nullptr;
  FakeNvml* nvml_ = nullptr;
  std::unique_ptr<engine::FrameChannel> channel_;
  std::thread thread_;
  int code_ = -1;
  std::vector<std::string> frames_;
  NodeReport report_;
  int reports_ = 0;
};

TEST_F(AgentTest, SaysWhoItIsBeforeAnythingElse) {
  ASSERT_TRUE(wait_for_reports(1));
  EXPECT_EQ(frames_[0], codec::encode_hello("0.1.0"));
  EXPECT_EQ(report_.node.boot_id, shim::read_boot_id().text);
  EXPECT_EQ(report_.node.boot_id.size(), 36u);
}

TEST_F(AgentTest, LeavesAControllerOfAnotherReleaseAndTouchesNothing) {
  end_agent();
  start_agent(R"({"protocol":7,"type":"hello","takt":"9.0.0"})");
  thread_.join();
  EXPECT_EQ(code_, 1);
}

TEST_F(AgentTest, AnAttemptIsGoneOnlyWhenTheDriverShowsNoProcessOfItAnyMore) {
  const std::int64_t pid = run_on_gpu_0();
  show_on_gpu_0({{static_cast<unsigned>(pid), 1u << 20}});
  ASSERT_TRUE(wait_for_report([&](const NodeReport& report) {
    const auto& processes = report.node.gpus.at(0).processes;
    return processes && processes->size() == 1 && (*processes)[0].attempt == attempt(1);
  }));
  stop_at_once(1);
  ASSERT_TRUE(wait_for_phase(1, AttemptPhase::exited));
  EXPECT_FALSE(launch::is_alive(pid));
  // The kernel has let it go; the driver has not.
  const int before = reports_;
  ASSERT_TRUE(wait_for_report([&](const NodeReport& report) {
    EXPECT_FALSE(of(report, 1)->processes_gone) << "report " << reports_;
    EXPECT_EQ((*report.node.gpus.at(0).processes)[0].attempt, attempt(1));
    return reports_ >= before + 6;
  }));
  show_on_gpu_0({});
  EXPECT_TRUE(wait_until_gone(1));
}

TEST_F(AgentTest, ADeviceThatDoesNotAnswerProvesNothing) {
  run_on_gpu_0();
  nvml_->with([](FakeNvml& n) {
    n.gpus[0].errors["nvmlDeviceGetComputeRunningProcesses_v3"] = NVML_ERROR_UNKNOWN;
  });
  ASSERT_TRUE(
      wait_for_report([](const NodeReport& report) { return !report.node.gpus.at(0).processes; }));
  stop_at_once(1);
  ASSERT_TRUE(wait_for_phase(1, AttemptPhase::exited));
  const int before = reports_;
  ASSERT_TRUE(wait_for_report([&](const NodeReport& report) {
    EXPECT_FALSE(of(report, 1)->processes_gone) << "report " << reports_;
    return reports_ >= before + 6;
  }));
  nvml_->with([](FakeNvml& n) { n.gpus[0].errors.clear(); });
  EXPECT_TRUE(wait_until_gone(1));
}

TEST_F(AgentTest, ADeviceOfOthersThatDoesNotAnswerIsNoObstacle) {
  run_on_gpu_0();
  nvml_->with([](FakeNvml& n) {
    n.gpus[1].errors["nvmlDeviceGetComputeRunningProcesses_v3"] = NVML_ERROR_UNKNOWN;
  });
  stop_at_once(1);
  EXPECT_TRUE(wait_until_gone(1));
}

TEST_F(AgentTest, TheNextAgentAsksForTheSameProof) {
  const std::int64_t pid = run_on_gpu_0();
  show_on_gpu_0({{static_cast<unsigned>(pid), 1u << 20}});
  end_agent();
  start_agent();
  ASSERT_TRUE(wait_for_phase(1, AttemptPhase::running));
  nvml_->with([](FakeNvml& n) {
    n.gpus[0].errors["nvmlDeviceGetComputeRunningProcesses_v3"] = NVML_ERROR_UNKNOWN;
  });
  stop_at_once(1);
  ASSERT_TRUE(wait_for_phase(1, AttemptPhase::exited));
  const int before = reports_;
  ASSERT_TRUE(wait_for_report([&](const NodeReport& report) {
    EXPECT_FALSE(of(report, 1)->processes_gone);
    return reports_ >= before + 4;
  }));
  nvml_->with([](FakeNvml& n) { n.gpus[0].errors.clear(); });
  show_on_gpu_0({});
  EXPECT_TRUE(wait_until_gone(1));
}

TEST_F(AgentTest, AStartThatFailedIsProvenLikeEveryEnd) {
  auto what = order(1, "");
  what.argv = {"/nowhere/program"};
  start(what);
  EXPECT_TRUE(wait_until_gone(1));
  EXPECT_EQ(of(report_, 1)->exit->cause, ExitCause::start_failed);
}

TEST_F(AgentTest, AStopForAnAttemptThatNeverArrivedIsAnsweredAndALaterStartIgnored) {
  stop_at_once(1);
  ASSERT_TRUE(wait_until_gone(1));
  EXPECT_EQ(of(report_, 1)->exit->cause, ExitCause::lost);
  start(order(1, "echo run"));
  ASSERT_TRUE(wait_for_reports(3));
  EXPECT_FALSE(std::filesystem::exists(out(1)));
}

TEST_F(AgentTest, AnAttemptWithASilentShimIsStartingAndNotGone) {
  end_agent();
  const std::string real = options.shim_path;
  options.shim_path = folder + "/late-shim";
  options.answer_wait = milliseconds(50);
  std::ofstream(options.shim_path)
      << "#!/bin/sh\n( while [ ! -e " << folder << "/go ]; do sleep 0.01; done; exec " << real
      << " \"$@\" ) &\n";
  chmod(options.shim_path.c_str(), 0755);
  start_agent();
  start(order(1, "exit 7"));
  ASSERT_TRUE(wait_for_phase(1, AttemptPhase::starting));
  EXPECT_FALSE(of(report_, 1)->processes_gone);
  EXPECT_FALSE(of(report_, 1)->exit);
  std::ofstream(folder + "/go") << "go";
  ASSERT_TRUE(wait_until_gone(1));
  EXPECT_EQ(of(report_, 1)->exit->code, 7);
}

// A shim of an earlier agent has the lock and has recorded nothing yet.
TEST_F(AgentTest, AStopWhileAShimIsAtWorkDoesNotMakeItsAttemptGone) {
  ASSERT_EQ(mkdir(record(1).c_str(), 0700), 0);
  ASSERT_TRUE(launch::write_spec(record(1), *launch::format_spec(order(1, "exit 0"), {}, {})));
  {
    const auto at_work = launch::RecordLock::try_take(record(1));
    ASSERT_TRUE(at_work);
    stop_at_once(1);
    ASSERT_TRUE(wait_for_phase(1, AttemptPhase::starting));
    const int before = reports_;
    ASSERT_TRUE(wait_for_report([&](const NodeReport& report) {
      EXPECT_EQ(of(report, 1)->phase, AttemptPhase::starting);
      return reports_ >= before + 3;
    }));
  }
  stop_at_once(1);  // as the controller does with every report
  ASSERT_TRUE(wait_until_gone(1));
  EXPECT_EQ(of(report_, 1)->exit->message, "stopped before it was started");
}

TEST_F(AgentTest, AStartThatIsOlderThanWhatWasForgottenSinceIsDropped) {
  ASSERT_TRUE(wait_for_reports(1));
  const control::Basis before{report_.node.boot_id, report_.life, report_.sequence};
  start(order(1, "exit 0"));
  ASSERT_TRUE(wait_until_gone(1));
  send(control::Forget{attempt(1)});
  ASSERT_TRUE(wait_for_report([](const NodeReport& report) { return of(report, 1) == nullptr; }));
  start(order(1, "exit 0"), before);  // a second copy of the order, very late
  control::Basis other_life = before;
  other_life.life += 1;
  start(order(2, "exit 0"), other_life);
  start(order(3, "exit 0"));
  ASSERT_TRUE(wait_until_gone(3));
  EXPECT_EQ(of(report_, 1), nullptr) << "it would have run twice";
  EXPECT_EQ(of(report_, 2), nullptr);
}

}  // namespace
}  // namespace takt::agent
