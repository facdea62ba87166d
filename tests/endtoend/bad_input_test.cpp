// Bad input and broken surroundings: each a sentence with the next step and the documented exit
// code, and nothing is lost.
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "endtoend/harness.h"

namespace takt::endtoend {
namespace {

struct BadSpec {
  const char* name;
  const char* text;
  const char* says;
};

TEST(BadInput, MalformedSpecsAreRefusedWithFileLineAndField) {
  Takt takt(four_gpus());
  takt.serve();
  const std::vector<BadSpec> specs = {
      {"unknown.yaml", "run: true\ngpu: 1\n", "line 2"},
      {"unit.yaml", "run: true\ngpus: {memory: 12 gibibyte}\n", "gpus.memory"},
      {"tier.yaml", "run: true\ntier: prod\n", "tier"},
      {"torn.yaml", "run: [a, b\n", "line"},
      {"none.yaml", "name: x\n", "run"},
      {"empty.yaml", "", "run"},
      {"huge.yaml", "run: true\ngpus: 99999999999999\n", "gpus"},
  };
  for (const BadSpec& spec : specs) {
    const Outcome refused = takt.takt({"submit", takt.write(spec.name, spec.text)});
    EXPECT_EQ(refused.code, 2) << spec.name << refused.err;
    EXPECT_NE(refused.err.find(spec.name), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find(spec.says), std::string::npos) << refused.err;
  }
  EXPECT_EQ(takt.takt({"submit", "/nonexistent.yaml"}).code, 2);
  EXPECT_EQ(takt.takt({"submit", "/tmp"}).code, 2);
  EXPECT_TRUE(takt.json({"ps", "--all"})["jobs"].empty());
}

TEST(BadInput, ARequestThatNoMachineCanMeetIsRefusedAtSubmit) {
  Takt takt(four_gpus());
  takt.serve();
  const Outcome nine = takt.takt({"run", "-g", "9", "--", "true"});
  EXPECT_EQ(nine.code, 1);
  EXPECT_NE(nine.err.find("9 GPUs"), std::string::npos) << nine.err;
  EXPECT_NE(nine.err.find("--wait-for-capacity"), std::string::npos) << nine.err;
  const Outcome type = takt.takt({"run", "-g", "1", "--type", "h20", "--", "true"});
  EXPECT_EQ(type.code, 1);
  EXPECT_NE(type.err.find("no node has type h20 (types here:"), std::string::npos) << type.err;
  const Outcome accepted = takt.takt({"run", "-d", "-g", "9", "--wait-for-capacity", "--", "true"});
  EXPECT_EQ(accepted.code, 0) << accepted.err;
}

TEST(BadInput, AProgramThatDoesNotExistSaysSo) {
  Takt takt(four_gpus());
  takt.serve();
  const Outcome run = takt.takt({"run", "--memory", "1GiB", "--", "/nonexistent/train"});
  EXPECT_NE(run.code, 0);
  EXPECT_NE(run.err.find("/nonexistent/train"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("could not start"), std::string::npos) << run.err;
}

TEST(BadInput, WithoutAServerEveryCommandSaysHowToStartOne) {
  Takt takt(four_gpus());
  for (const auto& arguments : std::vector<std::vector<std::string>>{{"ps"},
                                                                     {"why", "1"},
                                                                     {"logs", "1"},
                                                                     {"cancel", "1"},
                                                                     {"workloads"},
                                                                     {"run", "--", "true"}}) {
    const Outcome outcome = takt.takt(arguments);
    EXPECT_EQ(outcome.code, 3) << arguments.front();
    EXPECT_NE(outcome.err.find("takt serve"), std::string::npos) << outcome.err;
  }
}

TEST(BadInput, JobNumbersThatAreNoneAreNamed) {
  Takt takt(four_gpus());
  takt.serve();
  EXPECT_EQ(takt.takt({"why", "99"}).code, 1);
  EXPECT_EQ(takt.takt({"cancel", "99"}).code, 1);
  EXPECT_EQ(takt.takt({"why", "x"}).code, 2);
  EXPECT_EQ(takt.takt({"cancel"}).code, 2);
  EXPECT_EQ(takt.takt({"frobnicate"}).code, 2);
  EXPECT_EQ(takt.takt({"ps", "--nonsense"}).code, 2);
}

TEST(BadInput, AnAbsentDriverIsASentenceAndJobsWithoutAGpuRun) {
  Takt takt("driver: absent\ngpus:\n  - {model: l40s}\n");
  takt.serve();
  const auto node = takt.json({"gpus"})["nodes"][0];
  EXPECT_TRUE(node["gpus"].empty());
  EXPECT_FALSE(node["driver_problem"].get<std::string>().empty()) << node.dump(1);
  const Outcome refused = takt.takt({"run", "-g", "1", "--", "true"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("takt doctor"), std::string::npos) << refused.err;
  EXPECT_EQ(takt.takt({"run", "--", "true"}).code, 0);
  EXPECT_EQ(takt.takt({"doctor"}).code, 1);
}

TEST(BadInput, ADriverThatIsTooOldIsASentence) {
  for (const char* state : {"too-old", "version-mismatch"}) {
    Takt takt(std::string("driver: ") + state + "\ngpus:\n  - {model: l40s}\n");
    const Outcome outcome = takt.takt({"doctor"});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_NE(outcome.out.find("driver"), std::string::npos) << outcome.out;
  }
}

TEST(BadInput, OneGpuOfFourThatHangsOrFailsCostsOnlyItself) {
  for (const char* fault : {"{hang: all}", "{lost: true}", "{error: {all: GPU_IS_LOST}}",
                            "{error: {MemoryInfo: UNKNOWN}}", "{reset_required: true}"}) {
    Takt takt(std::string("gpus:\n  - {model: l40s, count: 3}\n  - {model: l40s, fault: ") + fault +
              "}\n");
    takt.serve();
    const Outcome three = takt.takt({"run", "-g", "3", "--", "sh", "-c", "echo $TAKT_GPUS"}, 30);
    EXPECT_EQ(three.out, "3\n") << fault << three.err;
    const std::string four = takt.start({"-g", "4", "--", "true"});
    ASSERT_TRUE(eventually([&] { return !takt.job(four)["waiting_for"].empty(); })) << fault;
    const std::string why = takt.takt({"why", four}).out;
    EXPECT_NE(why.find("gpu3"), std::string::npos) << fault << why;
  }
}

TEST(BadInput, ASocketInUseNamesTheServerThatHasIt) {
  Takt takt(four_gpus());
  takt.serve();
  const Outcome second =
      takt.serve_expecting_refusal({"--state-dir", (takt.folder() / "other").string(),
                                    "--runtime-dir", (takt.folder() / "other-run").string()});
  EXPECT_EQ(second.code, 1);
  EXPECT_NE(second.err.find("pid " + std::to_string(takt.server_pid())), std::string::npos)
      << second.err;
  EXPECT_EQ(takt.takt({"ps"}).code, 0) << "the first one goes on";
}

TEST(BadInput, TwoServersOnOneStateFolderAreRefused) {
  Takt takt(four_gpus());
  takt.serve();
  const Outcome second =
      takt.serve_expecting_refusal({"--socket", (takt.folder() / "second.sock").string(),
                                    "--runtime-dir", (takt.folder() / "second-run").string()});
  EXPECT_EQ(second.code, 1);
  EXPECT_NE(second.err.find("journal"), std::string::npos) << second.err;
}

TEST(BadInput, AReadOnlyStateFolderIsASentence) {
  if (::geteuid() == 0) {
    // Root writes through modes: a file where the folder should be has the same effect.
    Takt takt(four_gpus());
    takt.write("state", "not a folder");
    const Outcome refused = takt.serve_expecting_refusal();
    EXPECT_EQ(refused.code, 1);
    EXPECT_NE(refused.err.find("--state-dir"), std::string::npos) << refused.err;
    return;
  }
  Takt takt(four_gpus());
  std::filesystem::create_directory(takt.folder() / "state");
  ::chmod((takt.folder() / "state").c_str(), 0500);
  const Outcome refused = takt.serve_expecting_refusal();
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("--state-dir"), std::string::npos) << refused.err;
}

TEST(BadInput, ABadPolicyFileIsRefusedWithItsLine) {
  Takt takt(four_gpus());
  const std::string file = takt.write("policy.yaml", "fair_share:\n  half_lives: 7d\n");
  const Outcome refused = takt.serve_expecting_refusal({"--policy", file});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("policy.yaml"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("line"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace takt::endtoend
