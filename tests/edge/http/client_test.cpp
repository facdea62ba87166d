#include "edge/http/client.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <vector>

#include "edge/http/fixture.h"
#include "edge/http/server.h"

namespace takt::http {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

// A server that answers each connection with fixed bytes, or hangs up, without being HTTP.
class Impostor {
 public:
  // Each accepted connection: reads once, then sends the next text and hangs up.
  Impostor(const std::string& path, std::vector<std::string> answers) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(fd_, 8), 0);
    thread_ = std::thread([this, answers = std::move(answers)] {
      for (const std::string& answer : answers) {
        const int peer = ::accept(fd_, nullptr, nullptr);
        if (peer < 0) return;
        char request[4096];
        if (::recv(peer, request, sizeof(request), 0) > 0) ++requests_;
        ::send(peer, answer.data(), answer.size(), MSG_NOSIGNAL);
        ::close(peer);
      }
    });
  }
  ~Impostor() {
    ::shutdown(fd_, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
  }
  int requests() const { return requests_; }

 private:
  int fd_ = -1;
  std::atomic<int> requests_{0};
  std::thread thread_;
};

TEST(Client, AMissingSocketAsksWhetherTaktRuns) {
  const TempFolder folder;
  Client client(folder / "none");
  const auto response = client.call("GET", "/", "", seconds(1));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind, ErrorKind::unavailable);
  EXPECT_THAT(response.error().message, HasSubstr("cannot reach takt at " + (folder / "none") +
                                                  ": is `takt serve` running?"));
}

TEST(Client, ADeadServersSocketAsksWhetherTaktRuns) {
  const TempFolder folder;
  { const Impostor dead(folder / "s", {}); }
  Client client(folder / "s");
  const auto response = client.call("GET", "/", "", seconds(1));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind, ErrorKind::unavailable);
  EXPECT_THAT(response.error().message, HasSubstr("is `takt serve` running?"));
}

TEST(Client, ASocketThatMayNotBeOpenedIsForbidden) {
  const TempFolder folder;
  const auto server = Server::start(at(folder / "s"), echo).value();
  const pid_t child = ::fork();
  if (child == 0) {
    ::chmod(folder.path().c_str(), 0755);
    ::chmod((folder / "s").c_str(), 0);
    if (::geteuid() == 0 && ::setuid(54321) != 0) ::_exit(2);
    Client client(folder / "s");
    const auto response = client.call("GET", "/", "", seconds(1));
    ::_exit(!response && response.error().kind == ErrorKind::forbidden ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Client, PathsThatNoSocketCanHaveAreInvalid) {
  for (const std::string& path : {std::string(), std::string(108, 'x'), std::string("a\0b", 3)}) {
    Client client(path);
    const auto response = client.call("GET", "/", "", seconds(1));
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().kind, ErrorKind::invalid);
  }
}

TEST(Client, MethodsAndTargetsThatWouldSmuggleALineAreInvalid) {
  const TempFolder folder;
  Client client(folder / "s");
  for (const char* method : {"", "get", "GET /x HTTP/1.1\r\nX:", "G ET"}) {
    const auto response = client.call(method, "/", "", seconds(1));
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().kind, ErrorKind::invalid) << method;
  }
  for (const char* target : {"", "x", "/a b", "/a\r\nX: y", "/ü"}) {
    const auto response = client.call("GET", target, "", seconds(1));
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().kind, ErrorKind::invalid) << target;
  }
}

TEST(Client, NamesTheServersProcess) {
  const TempFolder folder;
  const auto server = Server::start(at(folder / "s"), echo).value();
  Client client(folder / "s");
  EXPECT_FALSE(client.peer()) << "before the first call nobody is known";
  ASSERT_TRUE(client.call("GET", "/", "", seconds(10)));
  ASSERT_TRUE(client.peer());
  EXPECT_EQ(client.peer()->pid, ::getpid());
  EXPECT_EQ(client.peer()->uid, ::getuid());
}

TEST(Client, EndsACallWhenItsTimeIsUpAndCanCallAgain) {
  const TempFolder folder;
  std::atomic<bool> go_on{false};
  const auto server = Server::start(at(folder / "s"), [&](const Request& request) {
                        if (request.path == "/slow") eventually([&] { return go_on.load(); });
                        return echo(request);
                      }).value();
  Client client(folder / "s");
  const auto begin = Clock::now();
  const auto late = client.call("GET", "/slow", "", milliseconds(200));
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(200));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::unavailable);
  EXPECT_THAT(late.error().message, HasSubstr("did not answer in time"));
  const auto next = client.call("GET", "/next", "", seconds(10));
  ASSERT_TRUE(next);
  EXPECT_EQ(next->body, "GET /next\n") << "the late answer is not taken for the next one's";
  go_on = true;
}

TEST(Client, ReconnectsAfterTheServerWasRestarted) {
  const TempFolder folder;
  Client client(folder / "s");
  for (int i = 0; i < 3; ++i) {
    const auto server = Server::start(at(folder / "s"), echo).value();
    for (const char* method : {"GET", "POST"}) {
      const auto response = client.call(method, "/", "", seconds(10));
      ASSERT_TRUE(response) << response.error().message;
    }
  }
}

TEST(Client, AConnectionThatEndsWithoutAnswerSaysThatTheRequestMayHaveBeenCarriedOut) {
  const TempFolder folder;
  const Impostor impostor(folder / "s", {"", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"});
  for (int i = 0; i < 2; ++i) {
    Client client(folder / "s");
    const auto response = client.call("POST", "/", "{}", seconds(10));
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().kind, ErrorKind::unavailable);
    EXPECT_THAT(response.error().message, HasSubstr("may have carried the request out"));
  }
  EXPECT_EQ(impostor.requests(), 2) << "a POST is not sent twice";
}

TEST(Client, SomethingElseOnTheSocketIsASentence) {
  const TempFolder folder;
  const Impostor impostor(folder / "s", {"220 mail.example.com ESMTP\r\n"});
  Client client(folder / "s");
  const auto response = client.call("GET", "/", "", seconds(10));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind, ErrorKind::io);
  EXPECT_THAT(response.error().message, HasSubstr("is it a takt that listens on this socket?"));
}

TEST(Client, AnAnswerBeyondItsLimitIsRefused) {
  const TempFolder folder;
  const auto server = Server::start(at(folder / "s"), [](const Request&) {
                        Response response;
                        response.body.assign(1001, 'x');
                        return response;
                      }).value();
  Client client(folder / "s", ClientOptions{1000});
  const auto response = client.call("GET", "/", "", seconds(10));
  ASSERT_FALSE(response);
  EXPECT_THAT(response.error().message, HasSubstr("more than the 1000"));
}

TEST(Client, ReadsHeadersOfAHeadRequestWithoutWaitingForABody) {
  const TempFolder folder;
  const auto server = Server::start(at(folder / "s"), echo).value();
  Client client(folder / "s");
  const auto head = client.call("HEAD", "/x", "", seconds(10));
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_EQ(head->body, "");
  const auto get = client.call("GET", "/x", "", seconds(10));
  ASSERT_TRUE(get);
  EXPECT_EQ(get->body, "GET /x\n");
}

TEST(Client, CanBeMoved) {
  const TempFolder folder;
  const auto server = Server::start(at(folder / "s"), echo).value();
  Client first(folder / "s");
  ASSERT_TRUE(first.call("GET", "/", "", seconds(10)));
  Client second = std::move(first);
  EXPECT_TRUE(second.call("GET", "/", "", seconds(10)));
  EXPECT_EQ(server->connections(), 1u) << "the connection moved along";
}

// A body that is larger than a client takes into memory.
class FileOverTheSocket : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 300'000; ++i) text_ += static_cast<char>('a' + i * 7 % 26);
    std::ofstream(folder_ / "file") << text_;
    ServerOptions options;
    options.socket_path = folder_ / "s";
    auto started = Server::start(options, [this](const Request& request) {
      Response response;
      if (request.path == "/error") return error_response(403, "not for you");
      response.file = std::make_shared<BodyFile>(
          ::open((folder_ / "file").c_str(), O_RDONLY | O_CLOEXEC), text_.size());
      return response;
    });
    ASSERT_TRUE(started) << started.error().message;
    server_ = *std::move(started);
  }
  TempFolder folder_;
  std::string text_;
  std::unique_ptr<Server> server_;
};

TEST_F(FileOverTheSocket, ComesInPiecesAndIsNeitherKeptNorLimited) {
  ClientOptions options;
  options.response_bytes_max = 1000;
  Client client(folder_ / "s", options);
  std::string got;
  int pieces = 0;
  const auto response = client.fetch("/file", seconds(20), [&](std::string_view piece) {
    got += piece;
    ++pieces;
    return Result<void>();
  });
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "");
  EXPECT_TRUE(got == text_);
  EXPECT_GT(pieces, 1);
}

TEST_F(FileOverTheSocket, AnErrorIsAnAnswerAndNoPiece) {
  Client client(folder_ / "s");
  const auto response = client.fetch("/error", seconds(20), [&](std::string_view) {
    ADD_FAILURE() << "an error went into the file";
    return Result<void>();
  });
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 403);
  EXPECT_THAT(response->body, HasSubstr("not for you"));
}

TEST_F(FileOverTheSocket, ASinkThatFailsEndsTheTransferWithItsSentence) {
  Client client(folder_ / "s");
  const auto response = client.fetch("/file", seconds(20), [](std::string_view) -> Result<void> {
    return fail(ErrorKind::unavailable, "the disk is full");
  });
  ASSERT_FALSE(response);
  EXPECT_THAT(response.error().message, HasSubstr("the disk is full"));
}

}  // namespace
}  // namespace takt::http
