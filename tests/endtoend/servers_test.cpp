// Two servers that want the same things, files that are taken away under a running one, and crowds.
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "endtoend/harness.h"

namespace takt::endtoend {
namespace {

TEST(Servers, OnOneRuntimeFolderAreRefusedBeforeTheyTouchAnything) {
  Takt takt(four_gpus());
  takt.serve();
  const std::string id = takt.start({"-g", "1", "--", "sh", "-c", "sleep 2; exit 9"});
  ASSERT_TRUE(eventually([&] { return takt.state_of(id) == "running"; }));
  const auto other = takt.folder() / "other";
  const Outcome second = takt.serve_expecting_refusal(
      {"--state-dir", other.string(), "--socket", (takt.folder() / "second.sock").string()});
  EXPECT_EQ(second.code, 1);
  EXPECT_NE(second.err.find("runtime folder"), std::string::npos) << second.err;
  EXPECT_NE(second.err.find("pid " + std::to_string(takt.server_pid())), std::string::npos)
      << second.err;
  EXPECT_FALSE(std::filesystem::exists(other / "journal.db")) << "it went further than the lock";
  ASSERT_TRUE(eventually([&] { return takt.state_of(id) == "failed"; }));
  EXPECT_EQ(takt.job(id)["exit_code"], 9) << "the first one's job was left alone";
}

TEST(Servers, OnOneSocketAreRefusedBeforeTheyTouchAnything) {
  Takt takt(four_gpus());
  takt.serve();
  const auto other = takt.folder() / "other";
  const Outcome second = takt.serve_expecting_refusal(
      {"--state-dir", other.string(), "--runtime-dir", (takt.folder() / "other-run").string()});
  EXPECT_EQ(second.code, 1);
  EXPECT_FALSE(std::filesystem::exists(other / "journal.db")) << "it went further than the socket";
}

TEST(Servers, ALockLeftByAKilledOneDoesNotMatter) {
  Takt takt(four_gpus());
  takt.serve();
  takt.kill_server();
  takt.serve();
  EXPECT_EQ(takt.takt({"ps"}).code, 0);
}

TEST(Servers, WhoseJournalIsTakenAwayAcknowledgeNothing) {
  for (const char* name : {"journal.db", "journal.db-wal"}) {
    Takt takt(four_gpus());
    takt.serve();
    ASSERT_EQ(takt.takt({"run", "--", "true"}).code, 0);
    const auto file = takt.folder() / "state" / name;
    const auto aside = takt.folder() / "aside";
    std::filesystem::rename(file, aside);
    const Outcome deleted = takt.takt({"run", "-d", "--", "true"});
    EXPECT_EQ(deleted.code, 1) << name << deleted.out;
    EXPECT_NE(deleted.err.find("was deleted or moved"), std::string::npos) << name << deleted.err;
    std::filesystem::copy_file(aside, file);
    const Outcome replaced = takt.takt({"run", "-d", "--", "true"});
    EXPECT_EQ(replaced.code, 1) << name << replaced.out;
    EXPECT_NE(replaced.err.find("was replaced"), std::string::npos) << name << replaced.err;
    std::filesystem::rename(aside, file);  // the same file as before
    EXPECT_TRUE(eventually([&] { return takt.takt({"run", "-d", "--", "true"}).code == 0; }));
    EXPECT_TRUE(eventually([&] { return takt.json({"ps"})["jobs"].empty(); }));
    EXPECT_EQ(takt.json({"ps", "--all"})["jobs"].size(), 2u) << "what was refused does not exist";
  }
}

class Held {
 public:
  explicit Held(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
      std::abort();
  }
  ~Held() { ::close(fd_); }
  Held(const Held&) = delete;

 private:
  int fd_;
};

TEST(Servers, WhoseConnectionsAreAllTakenStillCancelForTheirOwner) {
  Takt takt(four_gpus());
  takt.serve({"--policy", takt.write("policy.yaml", "limits: {connections_max: 16}\n")});
  const std::string id = takt.start({"--", "sleep", "60"});
  std::vector<std::unique_ptr<Held>> crowd;
  for (int i = 0; i < 4; ++i)
    crowd.push_back(std::make_unique<Held>(takt.environment()["TAKT_SOCKET"]));
  EXPECT_EQ(takt.takt({"ps"}).code, 0);
  EXPECT_EQ(takt.takt({"cancel", id}).code, 0);
  // An attached run that only gets short visits is slow, and whole.
  const Outcome run = takt.takt({"run", "--", "sh", "-c", "echo a; sleep 1; echo b; exit 3"});
  EXPECT_EQ(run.out, "a\nb\n") << run.err;
  EXPECT_EQ(run.code, 3);
}

TEST(Servers, OneUserOfManyCannotTakeAllConnections) {
  if (::geteuid() != 0) GTEST_SKIP() << "a second user needs root";
  Takt takt(four_gpus());
  takt.all_users = true;
  takt.serve({"--policy", takt.write("policy.yaml", "limits: {connections_max: 16}\n")});
  ASSERT_EQ(takt.takt_as(65534, {"ps"}).code, 0);
  const pid_t crowd = ::fork();
  if (crowd == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(1);
    std::vector<std::unique_ptr<Held>> held;
    for (int i = 0; i < 16; ++i)
      held.push_back(std::make_unique<Held>(takt.environment()["TAKT_SOCKET"]));
    ::pause();
    ::_exit(0);
  }
  Outcome refused;
  EXPECT_TRUE(eventually([&] {
    refused = takt.takt_as(65534, {"ps"});
    return refused.code == 3;
  }));
  EXPECT_NE(refused.err.find("already has 4 connections"), std::string::npos) << refused.err;
  EXPECT_EQ(takt.takt({"ps"}).code, 0) << "others come in";
  EXPECT_EQ(takt.takt_as(65533, {"ps"}).code, 0) << "others come in";
  ::kill(crowd, SIGKILL);
  ::waitpid(crowd, nullptr, 0);
}

}  // namespace
}  // namespace takt::endtoend
