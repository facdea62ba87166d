// Commands whose server dies, is busy, keeps silent or forgets to answer: no job is left that the
// user was not told of, and what was attached stays attached.
#include <signal.h>

#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>

#include "endtoend/harness.h"
#include "endtoend/scripted_server.h"

namespace takt::endtoend {
namespace {

using nlohmann::json;

constexpr const char* kAccepted =
    R"({"takt": "x", "warnings": [], "dry_run": false, "ids": [17], "count": 1, "spec": {},)"
    R"( "would_start": false, "waiting_for": [], "decision": []})";
constexpr const char* kRetryAfter = "Retry-After: 1\r\n";

std::string job_17(const std::string& state) {
  return R"({"takt": "x", "warnings": [], "id": 17, "name": "x", "state": ")" + state +
         R"(", "exit_code": null, "signal": null, "reason": "", "devices": [], "waiting_for": []})";
}

// Answers a submission when it is told to.
class Gate {
 public:
  void open() {
    {
      const std::lock_guard lock(mutex_);
      open_ = true;
    }
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

std::string request_id(const Asked& asked) {
  return json::parse(asked.body).value("request_id", "");
}

TEST(Client, ASubmissionWhoseAnswerIsLostIsAskedAgainUnderTheSameId) {
  Takt takt(four_gpus());
  std::atomic<int> posts{0};
  ScriptedServer server(takt.environment()["TAKT_SOCKET"],
                        [&](const Asked&) -> std::optional<std::string> {
                          if (++posts < 3) return std::nullopt;
                          return http_answer(201, kAccepted);
                        });
  const Outcome run = takt.takt({"run", "-d", "--", "true"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out, "17\n");
  EXPECT_NE(run.err.find("no second job"), std::string::npos) << run.err;
  const auto asked = server.asked("POST");
  ASSERT_EQ(asked.size(), 3u);
  EXPECT_EQ(request_id(asked[0]).size(), 32u);
  EXPECT_EQ(request_id(asked[0]), request_id(asked[2]));
  EXPECT_EQ(takt.takt({"run", "-d", "--", "true"}).code, 0);
  EXPECT_NE(request_id(server.asked("POST").back()), request_id(asked[0])) << "each has its own";
}

TEST(Client, AnInterruptWhileASubmissionIsAnsweredNamesTheJob) {
  for (const bool script : {false, true}) {
    Takt takt(four_gpus());
    Gate gate;
    ScriptedServer server(takt.environment()["TAKT_SOCKET"], [&](const Asked&) {
      gate.pass();
      return http_answer(201, kAccepted);
    });
    const std::string file = takt.write("job.yaml", "run: true\n");
    Beside run = script ? takt.beside({"submit", file}) : takt.beside({"run", "-d", "--", "true"});
    EXPECT_TRUE(eventually([&] { return !server.asked("POST").empty(); }));
    run.signal(SIGINT);
    EXPECT_TRUE(eventually([&] { return run.err().find("waiting for") != std::string::npos; }));
    gate.open();
    EXPECT_EQ(run.wait(), 128 + SIGINT) << run.err();
    EXPECT_EQ(run.out(), script ? "job 17\n" : "17\n");
    EXPECT_NE(run.err().find("takt cancel"), std::string::npos) << run.err();
  }
}

TEST(Client, AnInterruptWhileAnAttachedRunIsSubmittedCancelsItWhereNobodyCanBeAsked) {
  Takt takt(four_gpus());
  Gate gate;
  std::atomic<bool> cancelled{false};
  ScriptedServer server(takt.environment()["TAKT_SOCKET"], [&](const Asked& asked) {
    if (asked.method == "POST" && asked.target == "/v1/jobs") {
      gate.pass();
      return http_answer(201, kAccepted);
    }
    if (asked.target == "/v1/jobs/17/cancel") cancelled = true;
    if (asked.target.find("/logs") != std::string::npos)
      return http_answer(200, "",
                         std::string("X-Takt-Next-Offset: 0\r\nX-Takt-Ended: ") +
                             (cancelled ? "true\r\n" : "false\r\n"));
    if (asked.method == "POST")
      return http_answer(200, R"({"takt": "x", "warnings": [], "cancelled": [17]})");
    return http_answer(200, job_17(cancelled ? "cancelled" : "running"));
  });
  Beside run = takt.beside({"run", "--", "sleep", "60"});
  EXPECT_TRUE(eventually([&] { return !server.asked("POST").empty(); }));
  run.signal(SIGINT);
  EXPECT_TRUE(eventually([&] { return run.err().find("waiting for") != std::string::npos; }));
  gate.open();
  EXPECT_EQ(run.wait(), 1) << run.err();
  EXPECT_TRUE(cancelled);
}

TEST(Client, ASecondInterruptLeavesAServerThatKeepsSilent) {
  Takt takt(four_gpus());
  Gate gate;
  ScriptedServer server(takt.environment()["TAKT_SOCKET"], [&](const Asked&) {
    gate.pass();
    return http_answer(201, kAccepted);
  });
  Beside run = takt.beside({"run", "--", "true"});
  EXPECT_TRUE(eventually([&] { return !server.asked("POST").empty(); }));
  run.signal(SIGINT);
  EXPECT_TRUE(eventually([&] { return run.err().find("waiting for") != std::string::npos; }));
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 3);
  EXPECT_NE(run.err().find("takt ps --all"), std::string::npos) << run.err();
  gate.open();
}

TEST(Client, AServerThatSaysComeBackIsAskedAgain) {
  Takt takt(four_gpus());
  std::atomic<int> calls{0};
  ScriptedServer server(takt.environment()["TAKT_SOCKET"], [&](const Asked& asked) {
    if (++calls % 3 != 0) return http_answer(503, R"({"error": "all taken"})", kRetryAfter);
    return asked.method == "POST" ? http_answer(201, kAccepted) : http_answer(200, "table\n");
  });
  EXPECT_EQ(takt.takt({"ps"}).out, "table\n");
  EXPECT_EQ(takt.takt({"run", "-d", "--", "true"}).out, "17\n");
  const Outcome top = takt.takt({"top", "--once"});
  EXPECT_EQ(top.code, 0) << top.err;
  EXPECT_NE(top.err.find("all taken (trying again)"), std::string::npos) << top.err;
  EXPECT_EQ(calls, 9);
}

TEST(Client, ARefusalThatIsNoComeBackIsFinal) {
  Takt takt(four_gpus());
  ScriptedServer server(takt.environment()["TAKT_SOCKET"], [&](const Asked&) {
    return http_answer(503, R"({"error": "nothing can be acknowledged"})");
  });
  const Outcome run = takt.takt({"run", "--", "true"});
  EXPECT_EQ(run.code, 1);
  EXPECT_EQ(run.err, "takt: nothing can be acknowledged\n");
  EXPECT_EQ(server.asked("POST").size(), 1u);
}

std::string counting(int to, const std::string& step, int code) {
  return "i=0; while [ $i -lt " + std::to_string(to) + " ]; do i=$((i+1)); echo line $i; sleep " +
         step + "; done; exit " + std::to_string(code);
}

std::string lines(int to) {
  std::string all;
  for (int i = 1; i <= to; ++i) all += "line " + std::to_string(i) + "\n";
  return all;
}

TEST(Attached, OutlivesItsServerAndPassesOutputAndExitCodeOn) {
  Takt takt(four_gpus());
  takt.serve();
  Beside run = takt.beside({"run", "-g", "1", "--", "sh", "-c", counting(60, "0.1", 7)});
  EXPECT_TRUE(eventually([&] { return run.out().find("line 5\n") != std::string::npos; }));
  Beside logs = takt.beside({"logs", "-f", "1"});
  Beside top = takt.beside({"top", "--until-idle", "--interval", "200ms"});
  EXPECT_TRUE(eventually([&] { return logs.out().find("line 5\n") != std::string::npos; }));
  EXPECT_TRUE(eventually([&] { return !top.out().empty(); }));
  takt.kill_server();
  for (const Beside* one : {&run, &logs, &top})
    EXPECT_TRUE(
        eventually([&] { return one->err().find("the server is away") != std::string::npos; }));
  EXPECT_NE(run.err().find("job 1 goes on"), std::string::npos) << run.err();
  takt.serve();
  EXPECT_EQ(run.wait(), 7) << run.err();
  EXPECT_EQ(run.out(), lines(60)) << "neither a gap nor a line twice";
  EXPECT_EQ(logs.wait(), 0) << logs.err();
  EXPECT_EQ(logs.out(), lines(60));
  EXPECT_EQ(top.wait(), 0) << top.err();
  for (const Beside* one : {&run, &logs, &top}) {
    const std::size_t first = one->err().find("the server is away");
    ASSERT_NE(first, std::string::npos) << one->err();
    EXPECT_EQ(one->err().find("the server is away", first + 1), std::string::npos) << "told once";
    EXPECT_NE(one->err().find("the server is back"), std::string::npos) << one->err();
  }
}

TEST(Attached, OutlivesAServerThatIsStoppedInGoodOrder) {
  Takt takt(four_gpus());
  takt.serve();
  Beside run = takt.beside({"run", "--", "sh", "-c", counting(40, "0.1", 0)});
  EXPECT_TRUE(eventually([&] { return run.out().find("line 5\n") != std::string::npos; }));
  takt.stop_server();
  takt.serve();
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(run.out(), lines(40));
}

TEST(Attached, LeavesAServerThatStaysAwayAndSaysHowToComeBack) {
  Takt takt(four_gpus());
  takt.serve();
  Beside run = takt.beside({"run", "--reconnect", "1s", "--", "sleep", "20"});
  EXPECT_TRUE(
      eventually([&] { return takt.takt({"ps"}).out.find("running") != std::string::npos; }));
  Beside logs = takt.beside({"logs", "-f", "--reconnect", "1s", "1"});
  Beside interrupted = takt.beside({"run", "--", "sleep", "20"});
  EXPECT_TRUE(eventually([&] { return takt.json({"ps"})["jobs"].size() == 2; }));
  EXPECT_EQ(takt.state_of("1"), "running");
  takt.kill_server();
  EXPECT_EQ(run.wait(), 3);
  EXPECT_NE(run.err().find("takt logs -f 1"), std::string::npos) << run.err();
  EXPECT_EQ(logs.wait(), 3) << logs.err();
  EXPECT_TRUE(eventually([&] { return interrupted.err().find("away") != std::string::npos; }));
  interrupted.signal(SIGINT);
  EXPECT_EQ(interrupted.wait(5), 3);
  EXPECT_NE(interrupted.err().find("job 2 was not cancelled"), std::string::npos);
  EXPECT_NE(interrupted.err().find("takt logs -f 2"), std::string::npos) << interrupted.err();
  takt.serve();
  EXPECT_EQ(takt.state_of("2"), "running") << "it was left, not ended";
}

}  // namespace
}  // namespace takt::endtoend
