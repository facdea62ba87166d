// The engine keeps an agent running whatever becomes of it.
#include "edge/engine/local_engine.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

namespace takt::engine {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// What an engine told, to wait for with a deadline.
class Heard {
 public:
  void report(control::NodeReport r) {
    const std::lock_guard lock(mutex_);
    reports_.push_back(std::move(r));
    changed_.notify_all();
  }
  void note(const std::string& sentence) {
    const std::lock_guard lock(mutex_);
    notes_.push_back(sentence);
    changed_.notify_all();
  }
  bool wait(const std::function<bool(const Heard&)>& done) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return done(*this); });
  }
  std::vector<control::NodeReport> reports_;
  std::vector<std::string> notes_;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

class LocalEngineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "takt-engine-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    if (engine_) engine_->stop();
    for (const std::int64_t pid : pids())
      EXPECT_NE(::kill(static_cast<pid_t>(pid), 0), 0) << "an agent was left behind: " << pid;
    std::filesystem::remove_all(folder_);
  }

  void start(const std::string& behaviour, Duration silent_max = seconds(30)) {
    LocalEngineOptions options;
    options.agent_command = {FAKE_AGENT, "{fd}", behaviour, log()};
    options.takt_version = "0.1.0";
    options.silent_max = silent_max;
    options.mismatch_pause = milliseconds(40);
    options.restart_pause = milliseconds(20);
    auto engine = LocalEngine::start(
        options, [this](control::NodeReport r) { heard_.report(std::move(r)); },
        [this](const std::string& sentence) { heard_.note(sentence); });
    ASSERT_TRUE(engine) << engine.error().message;
    engine_ = std::move(*engine);
  }
  std::string log() const { return (folder_ / "agent.log").string(); }
  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    std::ifstream in(log());
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }
  std::set<std::int64_t> pids() const {
    std::set<std::int64_t> all;
    for (const std::string& line : lines())
      if (line.rfind("pid ", 0) == 0) all.insert(std::stoll(line.substr(4)));
    return all;
  }
  static bool eventually(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }

  std::filesystem::path folder_;
  Heard heard_;
  std::unique_ptr<LocalEngine> engine_;
};

TEST_F(LocalEngineTest, HandsReportsOnInTheirOrder) {
  start("works");
  ASSERT_TRUE(heard_.wait([](const Heard& h) { return h.reports_.size() >= 3; }));
  engine_->stop();
  for (std::size_t i = 0; i < heard_.reports_.size(); ++i)
    EXPECT_EQ(heard_.reports_[i].sequence, i + 1);
  EXPECT_EQ(heard_.reports_[0].node.id, NodeId("fake"));
}

TEST_F(LocalEngineTest, HandsEffectsToTheAgentInTheirOrder) {
  start("works");
  ASSERT_TRUE(heard_.wait([](const Heard& h) { return !h.reports_.empty(); }));
  const AttemptId id{JobId(1), 1};
  control::Start begin;
  begin.order.attempt = id;
  engine_->send({begin, control::Stop{id, 1, seconds(1)}, control::Forget{id}});
  ASSERT_TRUE(eventually([&] { return lines().size() >= 5; }));
  EXPECT_EQ(lines()[1], "hello") << "who speaks says so first";
  EXPECT_EQ(lines()[2], "effect 0");
  EXPECT_EQ(lines()[3], "effect 1");
  EXPECT_EQ(lines()[4], "effect 2");
}

TEST_F(LocalEngineTest, AnAgentThatDiesIsReplacedWithANote) {
  start("works");
  ASSERT_TRUE(heard_.wait([](const Heard& h) { return !h.reports_.empty(); }));
  const std::int64_t first = engine_->agent_pid();
  ASSERT_GT(first, 0);
  ASSERT_EQ(::kill(static_cast<pid_t>(first), SIGKILL), 0);
  // Numbers begin again with the new agent.
  ASSERT_TRUE(heard_.wait([](const Heard& h) {
    return std::count_if(h.reports_.begin(), h.reports_.end(),
                         [](const auto& r) { return r.sequence == 1; }) >= 2;
  }));
  EXPECT_NE(engine_->agent_pid(), first);
  EXPECT_THAT(heard_.notes_, Contains(HasSubstr("starting the node agent again")));
}

TEST_F(LocalEngineTest, OneThatDiesAgainAndAgainIsReplacedAgainAndAgain) {
  start("dies-after-one");
  ASSERT_TRUE(heard_.wait([](const Heard& h) { return h.reports_.size() >= 3; }));
  EXPECT_GE(pids().size(), 3u);
}

TEST_F(LocalEngineTest, OneThatNeverReportsBeforeItEndsIsReplaced) {
  start("exits-at-once");
  EXPECT_TRUE(heard_.wait([](const Heard& h) { return h.notes_.size() >= 2; }));
}

TEST_F(LocalEngineTest, OneThatFallsSilentIsReplacedAfterItsTime) {
  start("silent", milliseconds(200));
  ASSERT_TRUE(heard_.wait([](const Heard& h) { return h.reports_.size() >= 2; }));
  EXPECT_THAT(heard_.notes_, Contains(HasSubstr("sent no report for 0.2 s")));
}

TEST_F(LocalEngineTest, OneThatTalksGarbageIsReplacedWithANoteAndNothingIsReported) {
  start("garbage");
  ASSERT_TRUE(heard_.wait([](const Heard& h) { return h.notes_.size() >= 2; }));
  engine_->stop();
  EXPECT_TRUE(heard_.reports_.empty());
  EXPECT_THAT(heard_.notes_[0], HasSubstr("starting the node agent again"));
}

TEST_F(LocalEngineTest, OneOfAnotherReleaseIsNotListenedToAndASentenceSaysWhatToDo) {
  start("other-release");
  // It is tried again: the installation may be whole by then.
  ASSERT_TRUE(heard_.wait([](const Heard& h) { return h.notes_.size() >= 2; }));
  engine_->stop();
  EXPECT_TRUE(heard_.reports_.empty());
  EXPECT_THAT(heard_.notes_[0], HasSubstr("the node agent is takt 9.0.0 with protocol 7, this "
                                          "server is takt 0.1.0 with protocol 4: restart"));
}

TEST_F(LocalEngineTest, OneThatDoesNotSayWhoItIsIsReplaced) {
  start("no-hello");
  ASSERT_TRUE(heard_.wait([](const Heard& h) { return h.notes_.size() >= 2; }));
  engine_->stop();
  EXPECT_TRUE(heard_.reports_.empty());
  EXPECT_THAT(heard_.notes_[0], HasSubstr("the first one of the node agent is no hello"));
}

TEST_F(LocalEngineTest, StopEndsAnAgentThatIgnoresTheEndOfItsSocket) {
  start("ignores-the-end");
  ASSERT_TRUE(heard_.wait([](const Heard& h) { return !h.reports_.empty(); }));
  const auto begin = std::chrono::steady_clock::now();
  engine_->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  engine_->stop();  // a second call does nothing; TearDown looks for the process
}

TEST_F(LocalEngineTest, SendingWhileNoAgentRunsDoesNothing) {
  start("exits-at-once");
  for (int i = 0; i < 50; ++i) engine_->send({control::Forget{AttemptId{JobId(1), 1}}});
  EXPECT_TRUE(heard_.wait([](const Heard& h) { return h.notes_.size() >= 2; }));
}

TEST_F(LocalEngineTest, AProgramThatIsNotThereIsSaidAtOnce) {
  LocalEngineOptions options;
  options.agent_command = {"/nowhere/takt", "agent"};
  const auto engine = LocalEngine::start(
      options, [](control::NodeReport) {}, [](const std::string&) {});
  ASSERT_FALSE(engine);
  EXPECT_THAT(engine.error().message, HasSubstr("/nowhere/takt is not a program"));
}

}  // namespace
}  // namespace takt::engine
