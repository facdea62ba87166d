// Standard output that is full, closed or has lost its reader: no command pretends to have printed.
#include <nlohmann/json.hpp>

#include "endtoend/harness.h"

namespace takt::endtoend {
namespace {

Outcome shell(const Takt& takt, const std::string& line, int limit_seconds = 30) {
  return run_program({"/bin/sh", "-c", line}, takt.environment(), limit_seconds, std::nullopt,
                     takt.folder().string());
}

const std::vector<std::string>& printing_commands() {
  static const std::vector<std::string> commands = {"ps",
                                                    "ps --json",
                                                    "ps --all",
                                                    "why 1",
                                                    "why 1 --json",
                                                    "logs 1",
                                                    "gpus",
                                                    "gpus --json",
                                                    "workloads",
                                                    "workloads --json",
                                                    "summary",
                                                    "top --once",
                                                    "top",
                                                    "doctor",
                                                    "doctor --json",
                                                    "run -- true",
                                                    "run -d -- true",
                                                    "submit j.yaml",
                                                    "submit --json j.yaml",
                                                    "submit --dry-run j.yaml",
                                                    "hold 2",
                                                    "release 2",
                                                    "cancel --all",
                                                    "cancel --json --all",
                                                    "--version",
                                                    "--help",
                                                    "run --help",
                                                    "logs -f 1",
                                                    "run -- echo x"};
  return commands;
}

// These print nothing of their own.
bool prints_nothing(const std::string& command) { return command == "run -- true"; }

TEST(Output, ThatCannotBeWrittenIsAnErrorOfEveryCommand) {
  Takt takt(four_gpus());
  takt.serve();
  takt.write("j.yaml", "run: true\n");
  ASSERT_EQ(takt.takt({"run", "--", "echo", "x"}).code, 0);
  ASSERT_EQ(takt.start({"-g", "9", "--wait-for-capacity", "--", "true"}), "2");
  for (const std::string& command : printing_commands()) {
    const Outcome full = shell(takt, "takt " + command + " >/dev/full");
    EXPECT_EQ(full.code, prints_nothing(command) ? 0 : 1) << command << full.err;
    if (prints_nothing(command)) continue;
    EXPECT_NE(full.err.find("No space left on device"), std::string::npos) << command << full.err;
    const Outcome closed = shell(takt, "takt " + command + " >&-");
    EXPECT_EQ(closed.code, 1) << command << closed.err;
    EXPECT_NE(closed.err.find("Bad file descriptor"), std::string::npos) << command << closed.err;
  }
}

TEST(Output, WhoseReaderWentAwayEndsEveryCommandQuietly) {
  Takt takt(four_gpus());
  takt.serve();
  takt.write("j.yaml", "run: true\n");
  ASSERT_EQ(takt.takt({"run", "--", "echo", "x"}).code, 0);
  ASSERT_EQ(takt.start({"-g", "9", "--wait-for-capacity", "--", "true"}), "2");
  for (const std::string& command : printing_commands()) {
    if (prints_nothing(command)) continue;
    // The reader is gone before anything is printed.
    const Outcome gone =
        shell(takt, "{ sleep 0.1; takt " + command + "; echo \"code $?\" >&2; } | true");
    EXPECT_NE(gone.err.find("code 1\n"), std::string::npos) << command << gone.err;
    EXPECT_EQ(gone.err.find("Broken pipe"), std::string::npos) << command << gone.err;
  }
}

TEST(Output, AnAttachedRunThatLosesItsReaderSaysThatTheJobGoesOn) {
  Takt takt(four_gpus());
  takt.serve();
  const Outcome run = shell(
      takt,
      "{ takt run -- sh -c 'echo a; sleep 1; echo b; sleep 20'; echo \"code $?\" >&2; } | head -1");
  EXPECT_EQ(run.out, "a\n");
  EXPECT_NE(run.err.find("job 1 goes on: `takt logs -f 1`"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("code 1\n"), std::string::npos) << run.err;
  EXPECT_EQ(takt.state_of("1"), "running");
}

TEST(Output, OfCommandsWithJsonIsOneDocument) {
  Takt takt(four_gpus());
  takt.serve();
  takt.write("j.yaml", "run: sleep 60\n");
  ASSERT_EQ(takt.start({"--", "sleep", "60"}), "1");
  ASSERT_EQ(takt.start({"--", "sleep", "60"}), "2");
  for (const char* command :
       {"ps --json", "ps --all --json", "why 1 --json", "gpus --json", "workloads --json",
        "doctor --json", "submit --json j.yaml", "submit --dry-run --json j.yaml",
        "cancel --json 1 2", "cancel --json 1 99 x", "cancel --json 3", "cancel --json --all"}) {
    const Outcome outcome = shell(takt, std::string("takt ") + command);
    const auto document = nlohmann::json::parse(outcome.out, nullptr, false);
    ASSERT_FALSE(document.is_discarded()) << command << ": " << outcome.out;
    EXPECT_TRUE(document.contains("takt")) << command << outcome.out;
    EXPECT_TRUE(document.contains("warnings")) << command << outcome.out;
  }
}

TEST(Output, OfCancelSaysWhichWereCancelledAndWhichRefused) {
  Takt takt(four_gpus());
  takt.serve();
  ASSERT_EQ(takt.start({"--", "sleep", "60"}), "1");
  ASSERT_EQ(takt.start({"--", "sleep", "60"}), "2");
  const Outcome outcome = takt.takt({"cancel", "--json", "1", "99", "2"});
  EXPECT_EQ(outcome.code, 1);
  const auto document = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(document["cancelled"], nlohmann::json::array({1, 2}));
  ASSERT_EQ(document["refused"].size(), 1u);
  EXPECT_EQ(document["refused"][0]["job"], "99");
  EXPECT_NE(outcome.err.find("there is no job 99"), std::string::npos);
  EXPECT_EQ(takt.takt({"cancel", "--all", "1"}).code, 2) << "numbers beside --all are a mistake";
}

TEST(Output, OfAFolderThatWasRemovedIsASentence) {
  Takt takt(four_gpus());
  takt.serve();
  const std::string file = takt.write("job.yaml", "run: true\n");
  for (const std::string& command : {std::string("run -d -- true"), "submit " + file}) {
    const Outcome refused = shell(takt, "mkdir gone; cd gone; rmdir ../gone; takt " + command);
    EXPECT_EQ(refused.code, 2) << command << refused.out;
    EXPECT_NE(refused.err.find("current folder is gone"), std::string::npos) << refused.err;
  }
  EXPECT_TRUE(takt.json({"ps", "--all"})["jobs"].empty());
}

}  // namespace
}  // namespace takt::endtoend
