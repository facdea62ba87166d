// Nothing acknowledged is lost, run twice or killed when the server dies.
#include <signal.h>

#include <fstream>
#include <thread>

#include <nlohmann/json.hpp>

#include "endtoend/harness.h"
#include "support/places.h"

namespace takt::endtoend {
namespace {

int lines_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  int n = 0;
  for (std::string line; std::getline(in, line);) ++n;
  return n;
}

std::map<std::string, int> states(const Takt& takt) {
  std::map<std::string, int> count;
  const auto document = takt.json({"ps", "--all"});
  for (const auto& job : document["jobs"]) ++count[job["state"].get<std::string>()];
  return count;
}

// 13 shares of 6 GiB on each 80 GiB card: 52 places for 150 tasks.
constexpr const char* kFleet = "gpus:\n  - {model: a100-80, count: 4}\n";

TEST(Durability, KillingTheServerWith50RunningAnd100QueuedLosesNothing) {
  Takt takt(kFleet);
  takt.serve();
  const std::string marks = (takt.folder() / "marks").string();
  std::filesystem::create_directory(marks);
  const std::string file = takt.write(
      "sweep.yaml", "name: sweep\nrun: echo $$ >> " + marks +
                        "/$TAKT_JOB_ID; sleep 4; exit $((TAKT_JOB_ID % 5))\ntier: batch\n"
                        "gpus: {memory: 6GiB}\narray: {n: 0-149}\n");
  ASSERT_EQ(takt.takt({"submit", file}).code, 0);
  ASSERT_TRUE(eventually([&] { return states(takt)["running"] >= 50; }, 40));
  const auto before = states(takt);
  EXPECT_GE(before.at("running"), 50);
  EXPECT_GE(before.at("waiting"), 90);

  takt.kill_server();
  // Some end while nobody is there to see it.
  std::this_thread::sleep_for(std::chrono::seconds(5));
  takt.serve();
  ASSERT_TRUE(eventually([&] { return states(takt)["done"] + states(takt)["failed"] == 150; }, 100))
      << takt.takt({"ps"}).out;

  const auto document = takt.json({"ps", "--all"});
  ASSERT_EQ(document["jobs"].size(), 150u);
  for (const auto& job : document["jobs"]) {
    const int id = job["id"].get<int>();
    EXPECT_EQ(lines_of(std::filesystem::path(marks) / std::to_string(id)), 1) << "job " << id;
    EXPECT_EQ(job["exit_code"].get<int>(), id % 5) << job.dump();
    EXPECT_EQ(job["attempts"].get<int>(), 1);
    EXPECT_EQ(job["state"], id % 5 == 0 ? "done" : "failed");
  }
}

TEST(Durability, KillingTheAgentKillsNoJob) {
  Takt takt(kFleet);
  takt.serve();
  const std::string id = takt.start({"-g", "1", "--", "sh", "-c", "sleep 3; exit 42"});
  ASSERT_TRUE(eventually([&] { return takt.state_of(id) == "running"; }));
  // The agent is the server's only child.
  const Outcome child = run_program(
      {"/bin/sh", "-c", "cat /proc/" + std::to_string(takt.server_pid()) + "/task/*/children"}, {});
  const long agent = std::stol(child.out);
  ASSERT_GT(agent, 1);
  ASSERT_EQ(::kill(static_cast<pid_t>(agent), SIGKILL), 0);
  ASSERT_TRUE(eventually([&] { return takt.state_of(id) == "failed"; }));
  EXPECT_EQ(takt.job(id)["exit_code"].get<int>(), 42);
  EXPECT_EQ(takt.job(id)["attempts"].get<int>(), 1);
}

TEST(Durability, AStoppedServerLeavesJobsRunningAndFindsTheirExits) {
  Takt takt(kFleet);
  takt.serve();
  const std::string id = takt.start({"--memory", "4GiB", "--", "sh", "-c", "sleep 2; exit 9"});
  ASSERT_TRUE(eventually([&] { return takt.state_of(id) == "running"; }));
  takt.stop_server();
  std::this_thread::sleep_for(std::chrono::seconds(3));
  takt.serve();
  ASSERT_TRUE(eventually([&] { return takt.state_of(id) == "failed"; }));
  EXPECT_EQ(takt.job(id)["exit_code"].get<int>(), 9);
}

TEST(Durability, AFullDiskRefusesWithASentenceAndRecovers) {
  if (::geteuid() != 0) GTEST_SKIP() << "a small file system of its own needs root";
  // Its own mount namespace: nothing of the host changes, and it is gone with the process.
  Takt takt(kFleet);
  const std::string script = takt.write("full.sh", R"sh(set -e
mkdir -p "$D/state"
mount -t tmpfs -o size=1m tmpfs "$D/state"
takt serve --user --state-dir "$D/state" --runtime-dir "$D/run" > "$D/serve.log" 2>&1 &
server=$!
trap 'takt cancel --all >/dev/null 2>&1 || true; sleep 1; kill $server; wait $server || true' EXIT
for i in $(seq 100); do takt ps >/dev/null 2>&1 && break; sleep 0.1; done
takt run -d -- true
dd if=/dev/zero of="$D/state/filler" bs=4k count=1000 2>/dev/null || true
for i in $(seq 40); do takt run -d -- true >"$D/out" 2>"$D/err" || { echo refused; break; }; done
cat "$D/err"
before=$(takt ps --all --json | tr ',' '\n' | grep -c '"submitted"')
rm "$D/state/filler"
for i in $(seq 50); do
  takt run -d -- true >"$D/out" 2>"$D/err" && { echo accepted again; break; }
  sleep 0.2
done
after=$(takt ps --all --json | tr ',' '\n' | grep -c '"submitted"')
echo "grown by $((after - before))"
)sh");
  auto environment = takt.environment();
  environment["D"] = takt.folder().string();
  const Outcome outcome = run_program(
      {"/usr/bin/unshare", "-m", "--propagation", "private", "/bin/bash", script}, environment, 90);
  EXPECT_NE(outcome.out.find("refused"), std::string::npos) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("nothing can be acknowledged"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("accepted again"), std::string::npos) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("grown by 1\n"), std::string::npos) << outcome.out;
}

TEST(Durability, AJobThatWritesWithoutEndFillsNoDiskAndItsLogsSayWhatIsMissing) {
  Takt takt(four_gpus());
  takt.serve({"--policy", takt.write("policy.yaml", "limits: {log_bytes_max: 1MiB}\n")});
  const std::string id = takt.start({"-g", "1", "--", "/bin/sh", "-c",
                                     "echo first; head -c 20000000 /dev/zero | tr '\\0' x; echo; "
                                     "echo last"});
  ASSERT_TRUE(eventually([&] { return takt.state_of(id) == "done"; }));
  const Outcome logs = takt.takt({"logs", id});
  EXPECT_EQ(logs.code, 0) << logs.err;
  EXPECT_EQ(logs.out.rfind("first\nxxx", 0), 0u);
  EXPECT_NE(logs.out.find("MiB dropped here: log_bytes_max is 1.0 MiB]\nxxx"), std::string::npos);
  EXPECT_NE(logs.out.find("xxx\nlast\n"), std::string::npos);
  EXPECT_LT(logs.out.size(), 2u << 20);
}

// The indented lines of the page's part on putting back, with this test's folders.
std::string restore_commands(const std::string& state, const std::string& copy) {
  std::ifstream page(testing::source_folder() + "/docs/backup.md");
  std::string commands = "set -e\n";
  bool there = false;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("## ", 0) == 0) there = line == "## Put it back";
    if (there && line.rfind("    ", 0) == 0) commands += line + "\n";
  }
  for (const auto& [from, to] : {std::pair{std::string("/var/lib/takt"), state},
                                 {std::string("/backup/takt-journal.db"), copy}})
    for (std::size_t at = 0; (at = commands.find(from, at)) != std::string::npos; at += to.size())
      commands.replace(at, from.size(), to);
  return commands;
}

TEST(Durability, ABackupIsMadeWhileTheServerGoesOnAndPutBackByThePage) {
  Takt takt(four_gpus());
  takt.serve();
  const std::string running = takt.start({"-g", "1", "--", "sleep", "60"});
  const std::string done = takt.start({"--", "true"});
  ASSERT_TRUE(eventually(
      [&] { return takt.state_of(running) == "running" && takt.state_of(done) == "done"; }));
  const std::string copy = (takt.folder() / "copy.db").string();
  const Outcome made = takt.takt({"backup", copy});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(std::filesystem::status(copy).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  const std::filesystem::path pid_file = takt.folder() / "pid";
  const std::string later =
      takt.start({"--", "sh", "-c", "echo $$ > " + pid_file.string() + "; exec sleep 60"});
  ASSERT_TRUE(eventually([&] { return lines_of(pid_file) == 1; }));
  pid_t later_pid = 0;
  std::ifstream(pid_file) >> later_pid;

  takt.stop_server();
  const Outcome put_back = run_program(
      {"/bin/sh", "-c", restore_commands((takt.folder() / "state").string(), copy)}, {});
  ASSERT_EQ(put_back.code, 0) << put_back.err;
  takt.serve();
  EXPECT_NE(takt.server_log().find("is a backup that was put in place"), std::string::npos);
  EXPECT_EQ(takt.state_of(done), "done");
  EXPECT_TRUE(eventually([&] { return takt.state_of(running) == "running"; }));
  EXPECT_EQ(takt.job(running)["attempts"].get<int>(), 1) << "taken over, not started again";
  EXPECT_NE(takt.takt({"why", later}).code, 0) << "not known any more";
  EXPECT_EQ(::kill(later_pid, 0), 0) << "and left alone";
  EXPECT_GT(std::stoll(takt.start({"--", "true"})), 1'000'000);
  ::kill(later_pid, SIGKILL);
}

TEST(Durability, AJournalThatLostAcknowledgedRecordsIsNotServedUntilThatIsAccepted) {
  Takt takt(four_gpus());
  takt.serve();
  takt.start({"--", "true"});
  takt.start({"--", "true"});
  takt.kill_server();
  const std::filesystem::path log = takt.folder() / "state/journal.db-wal";
  // Half of it: its last bytes may be of a commit that nobody was told of yet.
  std::filesystem::resize_file(log, std::filesystem::file_size(log) / 2);
  const Outcome refused = takt.serve_expecting_refusal();
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("takt serve --accept-loss"), std::string::npos) << refused.err;
  takt.serve({"--accept-loss"});
  EXPECT_GT(std::stoll(takt.start({"--", "true"})), 1'000'000);
}

TEST(Durability, ANewStateFolderNeitherAdoptsNorEndsTheJobsOfAnother) {
  Takt takt(kFleet);
  takt.serve();
  const std::string mark = (takt.folder() / "mark").string();
  const std::string old_job =
      takt.start({"-g", "1", "--", "sh", "-c", "sleep 6; echo old >> " + mark});
  ASSERT_TRUE(eventually([&] { return takt.state_of(old_job) == "running"; }));
  takt.kill_server();
  std::filesystem::rename(takt.folder() / "state", takt.folder() / "state-before");

  takt.serve();
  const std::string new_job = takt.start({"--cpus", "1", "--", "sh", "-c", "sleep 60"});
  EXPECT_EQ(new_job, old_job) << "numbers begin anew: only the state's identity tells them apart";
  ASSERT_TRUE(eventually([&] { return takt.state_of(new_job) == "running"; }));
  EXPECT_EQ(takt.takt({"cancel", new_job}).code, 0);
  ASSERT_TRUE(eventually([&] { return takt.state_of(new_job) == "cancelled"; }));
  EXPECT_TRUE(eventually([&] { return lines_of(mark) == 1; })) << "the other's job went on";
}

TEST(Durability, JobsThatLeftForTheArchiveAreFoundAlsoAfterACrash) {
  Takt takt(four_gpus());
  const std::string policy = takt.write("policy.yaml", "finished: {live_max: 1}\n");
  takt.serve({"--policy", policy});
  std::string first;
  for (int i = 0; i < 4; ++i) {
    const std::string id = takt.start({"--", "echo", "printed"});
    if (first.empty()) first = id;
    ASSERT_TRUE(eventually([&] { return takt.state_of(id) == "done"; }));
  }
  // The archivist looks every five seconds; the last job's end was seen by then, and three moved.
  const std::filesystem::path journal = takt.folder() / "state/journal.db-wal";
  ASSERT_TRUE(eventually([&] {
    std::ifstream in(journal, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    return bytes.find("archived{\"jobs\":[") != std::string::npos;
  }));
  takt.kill_server();
  takt.serve({"--policy", policy});
  EXPECT_EQ(takt.json({"ps", "--all"})["jobs"].size(), 4u);
  EXPECT_EQ(takt.state_of(first), "done");
  EXPECT_EQ(takt.takt({"logs", first}).out, "printed\n");
  const auto two = takt.json({"ps", "--all", "--limit", "2"});
  EXPECT_EQ(two["jobs"].size(), 2u);
  EXPECT_NE(two["warnings"].dump().find("2 older jobs that are over"), std::string::npos);
}

}  // namespace
}  // namespace takt::endtoend
