// People and processes beside each other on one box.
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "endtoend/harness.h"

namespace takt::endtoend {
namespace {

TEST(Sharing, ADeviceWithAForeignProcessIsNotHandedOutAndWhyNamesIt) {
  Takt takt("gpus:\n  - {model: l40s}\n");
  takt.serve();
  // Somebody starts a program past takt.
  const std::string script =
      takt.write("foreign.sh", "CUDA_VISIBLE_DEVICES=0 exec " + Takt::program("takt-load") +
                                   " --memory 18GiB --sm 0.5 --duration 60s & echo $!; disown\n");
  const Outcome foreign = run_program(
      {"/bin/bash", "-c", "bash " + script + " 2>/dev/null >" + (takt.folder() / "pid").string()},
      takt.environment(), 5);
  ASSERT_EQ(foreign.code, 0) << foreign.err;
  const Outcome read = run_program({"/bin/cat", (takt.folder() / "pid").string()}, {});
  const std::string pid = read.out.substr(0, read.out.find('\n'));
  ASSERT_TRUE(eventually([&] {
    const auto gpu = takt.json({"gpus"})["nodes"][0]["gpus"][0];
    return !gpu["processes"].empty() && gpu["processes"][0]["foreign"] == true;
  }));
  const std::string id = takt.start({"-g", "1", "--", "true"});
  ASSERT_TRUE(eventually([&] { return !takt.job(id)["waiting_for"].empty(); }));
  const Outcome why = takt.takt({"why", id});
  EXPECT_NE(why.out.find("pid " + pid), std::string::npos) << why.out;
  EXPECT_NE(why.out.find("takt-load"), std::string::npos) << why.out;
  EXPECT_NE(why.out.find("not started by takt"), std::string::npos) << why.out;
  EXPECT_EQ(takt.state_of(id), "waiting");
  // It goes on as soon as the other has left, and not before.
  run_program({"/bin/kill", pid}, {});
  EXPECT_TRUE(eventually([&] { return takt.state_of(id) == "done"; }));
}

TEST(Sharing, ASecondUserSeesTheFirstOnesJobsAndCannotCancelThem) {
  if (::geteuid() != 0) GTEST_SKIP() << "two users need root";
  Takt takt(four_gpus());
  takt.all_users = true;
  takt.serve();
  constexpr unsigned kBob = 65534;
  const std::string roots = takt.start({"-g", "1", "--", "sleep", "60"});
  ASSERT_TRUE(eventually([&] { return takt.state_of(roots) == "running"; }));
  const Outcome seen = takt.takt_as(kBob, {"ps"});
  EXPECT_NE(seen.out.find("root"), std::string::npos) << seen.out << seen.err;
  const Outcome refused = takt.takt_as(kBob, {"cancel", roots});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("belongs to root"), std::string::npos) << refused.err;
  const Outcome peeked = takt.takt_as(kBob, {"logs", roots});
  EXPECT_EQ(peeked.code, 1);

  // Bob's own job runs as Bob, and root may cancel it.
  const Outcome mine = takt.takt_as(kBob, {"run", "--memory", "2GiB", "--", "id", "-u"});
  EXPECT_EQ(mine.code, 0) << mine.err;
  EXPECT_EQ(mine.out, "65534\n");
  const Outcome bobs = takt.takt_as(kBob, {"run", "-d", "-g", "1", "--", "sleep", "60"});
  ASSERT_EQ(bobs.code, 0) << bobs.err;
  const std::string id = bobs.out.substr(0, bobs.out.find('\n'));
  EXPECT_EQ(takt.takt({"cancel", id}).code, 0);
  EXPECT_TRUE(eventually([&] { return takt.state_of(id) == "cancelled"; }));
}

TEST(Sharing, SecretsAreNeverShown) {
  Takt takt(four_gpus());
  takt.serve();
  const std::string id = takt.start({"--env", "WANDB_API_KEY=hunter2", "--env", "PLAIN=visible-no",
                                     "--", "sh", "-c", "test ${#WANDB_API_KEY} = 7"});
  ASSERT_TRUE(eventually([&] { return takt.state_of(id) == "done"; }))
      << "the program itself gets the value";
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"ps", "--all", "--json"}, {"why", id, "--json"}, {"why", id}, {"summary"}}) {
    const Outcome shown = takt.takt(arguments);
    EXPECT_EQ(shown.out.find("hunter2"), std::string::npos) << shown.out;
    EXPECT_EQ(shown.out.find("visible-no"), std::string::npos) << shown.out;
  }
  EXPECT_EQ(takt.server_log().find("hunter2"), std::string::npos);
}

TEST(Sharing, AJobThatOutgrowsItsShareIsStoppedWithTheNextStep) {
  Takt takt("gpus:\n  - {model: a100-80}\n");
  takt.serve();
  const std::string id = takt.start({"--memory", "12GiB", "--", Takt::program("takt-load"),
                                     "--memory", "20GiB", "--duration", "30s"});
  ASSERT_TRUE(eventually([&] { return takt.state_of(id) == "failed"; }));
  const std::string reason = takt.job(id)["reason"];
  EXPECT_NE(reason.find("asked 12.0 GiB, used 20.0 GiB: try --memory 26GiB"), std::string::npos)
      << reason;
}

TEST(Sharing, AllDescendantsAreEndedBeforeTheDeviceIsGivenOn) {
  Takt takt("gpus:\n  - {model: a100-80}\n");
  takt.serve();
  const std::string load = Takt::program("takt-load");
  // The main process leaves at once; its detached grandchild holds the GPU.
  const std::string first = takt.start(
      {"-g", "1", "--", "sh", "-c",
       "(setsid " + load + " --memory 30GiB --duration 60s >/dev/null 2>&1 &); sleep 1"});
  const std::string second = takt.start({"-g", "1", "--", "sh", "-c", "exit 0"});
  ASSERT_TRUE(eventually([&] { return takt.state_of(first) == "done"; }));
  ASSERT_TRUE(eventually([&] { return takt.state_of(second) == "done"; }));
  const auto gpu = takt.json({"gpus"})["nodes"][0]["gpus"][0];
  EXPECT_TRUE(gpu["processes"].empty()) << gpu.dump(1);
}

}  // namespace
}  // namespace takt::endtoend
