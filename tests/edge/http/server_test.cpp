#include "edge/http/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <stdexcept>
#include <vector>

#include "edge/http/client.h"
#include "edge/http/fixture.h"

namespace takt::http {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

Response must_call(Client& client, const std::string& method, const std::string& target,
                   const std::string& body = {}) {
  auto response = client.call(method, target, body, seconds(10));
  if (!response) {
    ADD_FAILURE() << response.error().message;
    return {};
  }
  return *response;
}

TEST(Server, AnswersARequestWithWhatTheHandlerSays) {
  const TempFolder folder;
  const auto server = Server::start(at(folder / "s"), [](const Request& request) {
                        Response response;
                        response.status = 201;
                        response.content_type = "text/plain";
                        response.headers["x-takt"] = "yes";
                        response.body = request.method + request.path + request.query.at("user") +
                                        request.headers.at("content-type") + request.body;
                        return response;
                      }).value();
  Client client(folder / "s");
  const Response response = must_call(client, "POST", "/v1/jobs?user=a%20b", "{}");
  EXPECT_EQ(response.status, 201);
  EXPECT_EQ(response.content_type, "text/plain");
  EXPECT_EQ(response.headers.at("x-takt"), "yes");
  EXPECT_EQ(response.body, "POST/v1/jobsa bapplication/json{}");
}

TEST(Server, KnowsThePeerByTheKernelsWord) {
  const TempFolder folder;
  Peer seen;
  const auto server = Server::start(at(folder / "s"), [&](const Request& request) {
                        seen = request.peer;
                        return Response{};
                      }).value();
  Client client(folder / "s");
  must_call(client, "GET", "/");
  EXPECT_EQ(seen.uid, ::getuid());
  EXPECT_EQ(seen.gid, ::getgid());
  EXPECT_EQ(seen.pid, ::getpid());
}

TEST(Server, KnowsAnotherUserByTheKernelsWord) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const TempFolder folder;
  ::chmod(folder.path().c_str(), 0755);
  ServerOptions options = at(folder / "s");
  options.socket_mode = 0666;
  std::mutex mutex;
  Peer seen;
  const auto server = Server::start(options, [&](const Request& request) {
                        const std::lock_guard lock(mutex);
                        seen = request.peer;
                        return Response{};
                      }).value();
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(54322) != 0 || ::setuid(54321) != 0) ::_exit(2);
    RawConnection connection(folder / "s");
    connection.send("GET / HTTP/1.1\r\nHost: takt\r\nConnection: close\r\n\r\n");
    ::_exit(connection.receive().empty() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  const std::lock_guard lock(mutex);
  EXPECT_EQ(seen.uid, 54321u);
  EXPECT_EQ(seen.gid, 54322u);
  EXPECT_EQ(seen.pid, child);
}

TEST(Server, TheSocketHasTheModeThatWasAskedWhateverTheUmask) {
  const TempFolder folder;
  const mode_t before = ::umask(0077);
  ServerOptions options = at(folder / "s");
  options.socket_mode = 0666;
  const auto server = Server::start(options, echo);
  ::umask(before);
  ASSERT_TRUE(server);
  struct stat status {};
  ASSERT_EQ(::stat((folder / "s").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0666u);
}

TEST(Server, KeepsAConnectionForManyRequests) {
  const TempFolder folder;
  const auto server = Server::start(at(folder / "s"), echo).value();
  Client client(folder / "s");
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(must_call(client, "PUT", "/x", std::to_string(i)).body,
              "PUT /x\n" + std::to_string(i));
    EXPECT_EQ(server->connections(), 1u);
  }
}

TEST(Server, CarriesLargeBodiesBothWays) {
  const TempFolder folder;
  const auto server = Server::start(at(folder / "s"), echo).value();
  Client client(folder / "s");
  std::string body(7u << 20, '\0');
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 31 + i / 251);
  const Response response = must_call(client, "POST", "/", body);
  EXPECT_TRUE(response.body == "POST /\n" + body);
}

TEST(Server, AHandlersExceptionIsA500AndTheServerLives) {
  const TempFolder folder;
  const auto server = Server::start(at(folder / "s"), [](const Request& request) -> Response {
                        if (request.path == "/throw") throw std::runtime_error("a \"bug\"");
                        return echo(request);
                      }).value();
  Client client(folder / "s");
  const Response response = must_call(client, "GET", "/throw");
  EXPECT_EQ(response.status, 500);
  EXPECT_THAT(response.body, HasSubstr("a \\\"bug\\\""));
  EXPECT_EQ(must_call(client, "GET", "/fine").status, 200);
}

// A place where handlers wait until they are let go or the server stops.
class Gate {
 public:
  Response wait(const Request& request) {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, request.stop, [this] { return open_; });
    --waiting_;
    Response response;
    response.body = request.stop.stop_requested() ? "stopping" : "done";
    return response;
  }
  bool wait_until_waiting(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return waiting_ >= count; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  int waiting_ = 0;
  bool open_ = false;
};

TEST(Server, TwoHundredWaitingRequestsDoNotHoldUpAnother) {
  const TempFolder folder;
  Gate gate;
  const auto server = Server::start(at(folder / "s"), [&](const Request& request) {
                        return request.path == "/wait" ? gate.wait(request) : echo(request);
                      }).value();
  std::vector<std::thread> clients;
  std::atomic<int> done{0};
  for (int i = 0; i < 200; ++i) {
    clients.emplace_back([&] {
      Client client(folder / "s");
      const auto response = client.call("GET", "/wait", "", seconds(60));
      if (response && response->body == "done") ++done;
    });
  }
  EXPECT_TRUE(gate.wait_until_waiting(200));
  Client quick(folder / "s");
  must_call(quick, "GET", "/warm");
  std::vector<double> times;
  for (int i = 0; i < 200; ++i) {
    const auto start = Clock::now();
    EXPECT_EQ(must_call(quick, "GET", "/x").status, 200);
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  RecordProperty("median_ms_beside_200_waiting", std::to_string(times[100]));
  RecordProperty("p99_ms_beside_200_waiting", std::to_string(times[198]));
  RecordProperty("resident_kib", std::to_string(resident_kib()));
  EXPECT_LT(times[100], 50.0) << "the other requests wait for nobody";
  gate.open();
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(done.load(), 200);
}

TEST(Server, StopsPromptlyWhileLongPollsWaitAndAnswersThem) {
  const TempFolder folder;
  Gate gate;
  const auto server = Server::start(at(folder / "s"), [&](const Request& request) {
                        return gate.wait(request);
                      }).value();
  std::vector<std::thread> clients;
  std::atomic<int> answered{0};
  for (int i = 0; i < 50; ++i) {
    clients.emplace_back([&] {
      Client client(folder / "s");
      const auto response = client.call("GET", "/wait", "", seconds(60));
      if (response && response->body == "stopping") ++answered;
    });
  }
  EXPECT_TRUE(gate.wait_until_waiting(50));
  const auto start = Clock::now();
  server->stop();
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(3));
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(answered.load(), 50);
  EXPECT_FALSE(std::filesystem::exists(folder / "s")) << "the socket file is gone";
  server->stop();
}

TEST(Server, StopsPromptlyWithIdleConnections) {
  const TempFolder folder;
  const auto server = Server::start(at(folder / "s"), echo).value();
  Client client(folder / "s");
  must_call(client, "GET", "/");
  const RawConnection silent(folder / "s");
  EXPECT_TRUE(eventually([&] { return server->connections() == 2; }));
  const auto start = Clock::now();
  server->stop();
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(2));
}

TEST(Server, CanBeStartedAgainAtTheSamePath) {
  const TempFolder folder;
  for (int i = 0; i < 3; ++i) {
    const auto server = Server::start(at(folder / "s"), echo);
    ASSERT_TRUE(server) << server.error().message;
    Client client(folder / "s");
    EXPECT_EQ(must_call(client, "GET", "/").status, 200);
  }
}

// Where the server cannot listen.

Error start_error(const std::string& path) {
  auto server = Server::start(at(path), echo);
  if (server) {
    ADD_FAILURE() << "started at " << path;
    return {};
  }
  return server.error();
}

TEST(ServerStart, ASocketOfALiveServerIsAConflictThatNamesItsPid) {
  const TempFolder folder;
  const auto first = Server::start(at(folder / "s"), echo).value();
  const Error error = start_error(folder / "s");
  EXPECT_EQ(error.kind, ErrorKind::conflict);
  EXPECT_THAT(error.message, HasSubstr(folder / "s"));
  EXPECT_THAT(error.message,
              HasSubstr("in use by a running takt (pid " + std::to_string(::getpid()) + ")"));
  Client client(folder / "s");
  EXPECT_EQ(must_call(client, "GET", "/").status, 200) << "the first is not disturbed";
}

TEST(ServerStart, ASocketFileOfADeadServerIsReplaced) {
  const TempFolder folder;
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (folder / "s").c_str(), sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ::close(fd);
  ASSERT_TRUE(std::filesystem::exists(folder / "s"));
  const auto server = Server::start(at(folder / "s"), echo);
  ASSERT_TRUE(server) << server.error().message;
  Client client(folder / "s");
  EXPECT_EQ(must_call(client, "GET", "/").status, 200);
}

TEST(ServerStart, OfManyThatStartAtOnceOnAStaleSocketExactlyOneWins) {
  const TempFolder folder;
  for (int round = 0; round < 10; ++round) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, (folder / "s").c_str(), sizeof(address.sun_path) - 1);
    ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ::close(fd);
    std::vector<std::thread> starters;
    std::mutex mutex;
    std::vector<std::unique_ptr<Server>> started;
    for (int i = 0; i < 6; ++i) {
      starters.emplace_back([&] {
        auto server = Server::start(at(folder / "s"), echo);
        const std::lock_guard lock(mutex);
        if (server) started.push_back(*std::move(server));
      });
    }
    for (std::thread& starter : starters) starter.join();
    EXPECT_EQ(started.size(), 1u);
    Client client(folder / "s");
    EXPECT_EQ(must_call(client, "GET", "/").status, 200) << "the winner can be reached";
  }
}

TEST(ServerStart, AnythingThatIsNoSocketIsRefusedAndKept) {
  const TempFolder folder;
  std::ofstream(folder / "file") << "precious";
  std::filesystem::create_directory(folder / "folder");
  std::filesystem::create_symlink("file", folder / "link");
  for (const char* name : {"file", "folder", "link"}) {
    const Error error = start_error(folder / name);
    EXPECT_EQ(error.kind, ErrorKind::invalid) << name;
    EXPECT_THAT(error.message, HasSubstr("is not a socket")) << name;
    EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
  }
  EXPECT_EQ(std::filesystem::file_size(folder / "file"), 8u);
}

TEST(ServerStart, APathThatIsTooLongIsASentenceWithTheLimit) {
  const TempFolder folder;
  const std::string longest = folder / std::string(107 - folder.path().size() - 1, 'x');
  ASSERT_EQ(longest.size(), 107u);
  EXPECT_TRUE(Server::start(at(longest), echo));
  const Error error = start_error(longest + "x");
  EXPECT_EQ(error.kind, ErrorKind::invalid);
  EXPECT_THAT(error.message, HasSubstr("108 bytes, the kernel allows 107"));
  EXPECT_EQ(start_error("").kind, ErrorKind::invalid);
}

TEST(ServerStart, AMissingFolderIsASentence) {
  const TempFolder folder;
  const Error error = start_error(folder / "none/s");
  EXPECT_EQ(error.kind, ErrorKind::not_found);
  EXPECT_THAT(error.message, HasSubstr("none of the socket does not exist: create it"));
  std::ofstream(folder / "file") << "x";
  EXPECT_EQ(start_error(folder / "file/s").kind, ErrorKind::invalid);
}

TEST(ServerStart, AFolderThatMayNotBeWrittenIsASentence) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "closed");
  ::chmod((folder / "closed").c_str(), 0555);
  // Root may write everywhere: the attempt is made by a child that is nobody special.
  const pid_t child = ::fork();
  if (child == 0) {
    ::chmod(folder.path().c_str(), 0755);
    if (::geteuid() == 0 && ::setuid(54321) != 0) ::_exit(2);
    const auto server = Server::start(at(folder / "closed/s"), echo);
    const bool right = !server && server.error().kind == ErrorKind::forbidden &&
                       server.error().message.find("writable") != std::string::npos;
    ::_exit(right ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(ServerStart, StoppingDoesNotRemoveASuccessorsSocketFile) {
  const TempFolder folder;
  auto first = Server::start(at(folder / "s"), echo).value();
  std::filesystem::rename(folder / "s", folder / "moved");
  const auto second = Server::start(at(folder / "s"), echo).value();
  first.reset();
  Client client(folder / "s");
  EXPECT_EQ(must_call(client, "GET", "/").status, 200);
}

}  // namespace
}  // namespace takt::http
