// The smallest whole journeys of a newcomer.
#include <nlohmann/json.hpp>

#include "endtoend/harness.h"

namespace takt::endtoend {
namespace {

TEST(EndToEnd, TheFirstJobOfAFreshMachineRunsWithinSeconds) {
  Takt takt(four_gpus());
  takt.serve();
  const Outcome run = takt.takt({"run", "-g", "1", "--", "sh", "-c",
                                 "echo out; echo err >&2; echo $CUDA_VISIBLE_DEVICES; exit 7"},
                                5);
  EXPECT_EQ(run.code, 7) << run.err;
  EXPECT_EQ(run.out.substr(0, 8), "out\nGPU-") << run.out;
  EXPECT_NE(run.err.find("err\n"), std::string::npos) << run.err;
}

TEST(EndToEnd, NothingIsLeftRunningWhenTheServerStops) {
  Takt takt(four_gpus());
  takt.serve();
  const std::string id = takt.start({"--memory", "4GiB", "--", "sleep", "100"});
  ASSERT_TRUE(eventually([&] { return takt.state_of(id) == "running"; }));
  EXPECT_EQ(takt.takt({"cancel", id}).code, 0);
  EXPECT_TRUE(eventually([&] { return takt.state_of(id) == "cancelled"; }));
}

TEST(FirstHour, AHeldJobWaitsUntilItIsReleased) {
  Takt takt(four_gpus());
  takt.serve();
  const std::string first = takt.start({"-g", "4", "--", "sleep", "60"});
  const std::string id = takt.start({"-g", "1", "--", "true"});
  const auto held = takt.takt({"hold", "--json", id});
  EXPECT_EQ(held.code, 0);
  EXPECT_EQ(nlohmann::json::parse(held.out)["held"][0], std::stoi(id));
  EXPECT_EQ(takt.takt({"cancel", first}).code, 0);
  ASSERT_TRUE(eventually([&] { return takt.state_of(first) == "cancelled"; }));
  EXPECT_EQ(takt.job(id)["waiting_for"][0]["blocker"], "held");
  const auto unknown = takt.takt({"hold", "--json", "99"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_EQ(nlohmann::json::parse(unknown.out)["refused"][0]["job"], "99");
  EXPECT_EQ(takt.takt({"release", id}).out, "released job " + id + "\n");
  EXPECT_TRUE(eventually([&] { return takt.state_of(id) == "done"; }));
}

}  // namespace
}  // namespace takt::endtoend
