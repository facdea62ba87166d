// What a broken or hostile client may send; after each the server must still answer others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "edge/http/client.h"
#include "edge/http/fixture.h"
#include "edge/http/server.h"

namespace takt::http {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Clock = std::chrono::steady_clock;

class Hostile : public ::testing::Test {
 protected:
  void start(ServerOptions options) {
    options.socket_path = folder_ / "s";
    server_ = Server::start(options, [this](const Request& request) {
                ++handled_;
                return echo(request);
              }).value();
  }
  void SetUp() override { start({}); }
  void TearDown() override {
    Client client(folder_ / "s");
    const auto response = client.call("GET", "/still/there", "", seconds(10));
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->body, "GET /still/there\n");
  }
  // The server's whole answer to these bytes, until it hangs up.
  std::string answer_to(std::string_view bytes) {
    RawConnection connection(folder_ / "s");
    connection.send(bytes);
    return connection.receive();
  }

  TempFolder folder_;
  std::atomic<int> handled_{0};
  std::unique_ptr<Server> server_;
};

const std::string kClose = " HTTP/1.1\r\nHost: takt\r\nConnection: close\r\n\r\n";

TEST_F(Hostile, AHundredMegabytesOfHeaderLinesAreCutOffAndNotKept) {
  const long before = resident_kib();
  RawConnection connection(folder_ / "s");
  connection.send("GET / HTTP/1.1\r\nHost: takt\r\n");
  const std::string line = "X-Filler: " + std::string(1000, 'a') + "\r\n";
  std::size_t sent = 0;
  while (sent < 100u << 20 && connection.send(line)) sent += line.size();
  EXPECT_LT(sent, 4u << 20) << "the server hung up early";
  EXPECT_LT(resident_kib() - before, 8 * 1024);
  EXPECT_EQ(handled_.load(), 0);
}

TEST_F(Hostile, AHundredMegabytesWithoutALineEndAreCutOffAndNotKept) {
  const long before = resident_kib();
  RawConnection connection(folder_ / "s");
  connection.send("GET /");
  const std::string block(64u << 10, 'a');
  std::size_t sent = 0;
  while (sent < 100u << 20 && connection.send(block)) sent += block.size();
  EXPECT_LT(sent, 4u << 20);
  EXPECT_LT(resident_kib() - before, 8 * 1024);
  EXPECT_EQ(handled_.load(), 0);
}

TEST_F(Hostile, AQueryBeyondTheHeaderLimitIsRefused) {
  EXPECT_THAT(answer_to("GET /?q=" + std::string(40u << 10, 'q') + kClose),
              StartsWith("HTTP/1.1 4"));
  EXPECT_EQ(handled_.load(), 0);
}

TEST_F(Hostile, AQueryBelowTheHeaderLimitIsRead) {
  EXPECT_THAT(answer_to("GET /?q=" + std::string(20u << 10, 'q') + kClose),
              StartsWith("HTTP/1.1 200"));
}

TEST_F(Hostile, AClientThatStopsInTheMiddleOfARequestIsCutOffAfterTheIdleTime) {
  server_.reset();
  ServerOptions options;
  options.idle_timeout = seconds(1);
  start(options);
  for (const char* half : {"", "GET /x HT", "GET /x HTTP/1.1\r\nHost: t",
                           "POST /x HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\nhalf"}) {
    RawConnection connection(folder_ / "s");
    const auto begin = Clock::now();
    connection.send(half);
    connection.receive();
    EXPECT_TRUE(connection.ended()) << half;
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5)) << half;
  }
  EXPECT_EQ(handled_.load(), 0);
}

TEST_F(Hostile, AHandlerMayTakeLongerThanTheIdleTime) {
  server_.reset();
  ServerOptions options = at(folder_ / "s");
  options.idle_timeout = seconds(1);
  server_ = Server::start(options, [](const Request& request) {
              if (request.path == "/slow") std::this_thread::sleep_for(std::chrono::seconds(3));
              return echo(request);
            }).value();
  Client client(folder_ / "s");
  const auto response = client.call("GET", "/slow", "", seconds(20));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "GET /slow\n");
}

TEST_F(Hostile, ClientsThatHangUpEarlyCostNothing) {
  const std::size_t fds = open_fds();
  for (int i = 0; i < 200; ++i) {
    RawConnection connection(folder_ / "s");
    switch (i % 4) {
      case 0: break;
      case 1: connection.send("GET / HT"); break;
      case 2: connection.send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\nhal"); break;
      default: connection.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n"); break;
    }
  }
  EXPECT_TRUE(eventually([&] { return server_->connections() == 0; }));
  EXPECT_TRUE(eventually([&] { return open_fds() <= fds; }));
}

TEST_F(Hostile, AClientThatHangsUpWhileItsHandlerWorksCostsNothing) {
  server_.reset();
  std::atomic<bool> inside{false};
  std::atomic<bool> go_on{false};
  server_ = Server::start(at(folder_ / "s"), [&](const Request& request) {
              if (request.path == "/slow") {
                inside = true;
                eventually([&] { return go_on.load(); });
                Response large;
                large.body.assign(5u << 20, 'x');
                return large;
              }
              return echo(request);
            }).value();
  RawConnection connection(folder_ / "s");
  connection.send("GET /slow HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return inside.load(); }));
  connection.close();
  go_on = true;
  EXPECT_TRUE(eventually([&] { return server_->connections() == 0; }));
}

TEST_F(Hostile, PipelinedRequestsAreAnsweredInOrder) {
  RawConnection connection(folder_ / "s");
  std::string all;
  for (int i = 0; i < 20; ++i) {
    const std::string body = "body" + std::to_string(i);
    all += "POST /" + std::to_string(i) +
           " HTTP/1.1\r\nHost: t\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
           body;
  }
  connection.send(all + "GET /last" + kClose);
  const std::string answers = connection.receive();
  std::size_t at = 0;
  for (int i = 0; i < 20; ++i) {
    const std::string expected = "POST /" + std::to_string(i) + "\nbody" + std::to_string(i);
    at = answers.find(expected, at);
    ASSERT_NE(at, std::string::npos) << i;
  }
  EXPECT_NE(answers.find("GET /last", at), std::string::npos);
}

TEST_F(Hostile, InvalidPercentEncodingIs400WithASentence) {
  for (const char* target : {"/%zz", "/a%", "/%00", "/?a=%4", "/?%=1"}) {
    const std::string answer = answer_to("GET " + std::string(target) + kClose);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 400")) << target;
    EXPECT_THAT(answer, HasSubstr("{\"error\": \"")) << target;
  }
  EXPECT_EQ(handled_.load(), 0);
}

TEST_F(Hostile, MalformedRequestsAre400OrEndTheConnection) {
  const std::string many[] = {
      "\r\n\r\n\r\n",
      "GARBAGE\r\n\r\n",
      "GET / HTTP/1.1\r\nContent-Length: -1\r\nHost: t\r\nConnection: close\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length: 1x\r\nHost: t\r\nConnection: close\r\n\r\nab",
      "GET no-slash" + kClose,
      "GET http://takt/" + kClose,
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + "\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nzz\r\n",
  };
  server_.reset();
  ServerOptions options;
  options.idle_timeout = seconds(1);
  start(options);
  for (const std::string& bytes : many) {
    const std::string answer = answer_to(bytes);
    EXPECT_EQ(answer.find("HTTP/1.1 200"), std::string::npos) << bytes << "\n" << answer;
  }
  EXPECT_EQ(handled_.load(), 0);
}

// libmicrohttpd passes the address on as a C string.
TEST_F(Hostile, ARawNulEndsTheAddressAndNothingElse) {
  const std::string bytes = "GET /a" + std::string(1, 0) + "b" + kClose;
  const std::string answer = answer_to(bytes);
  EXPECT_EQ(handled_.load(), 1);
  EXPECT_THAT(answer, ::testing::EndsWith("GET /a\n"));
}

TEST_F(Hostile, ABodyAboveTheLimitIs413WithASentence) {
  server_.reset();
  ServerOptions options;
  options.body_bytes_max = 1000;
  start(options);
  Client client(folder_ / "s");
  const auto fits = client.call("POST", "/", std::string(1000, 'x'), seconds(10));
  ASSERT_TRUE(fits) << fits.error().message;
  EXPECT_EQ(fits->status, 200);
  for (const std::size_t size : {1001u, 50u << 20}) {
    const auto refused = client.call("POST", "/", std::string(size, 'x'), seconds(10));
    ASSERT_TRUE(refused) << size << ": " << refused.error().message;
    EXPECT_EQ(refused->status, 413);
    EXPECT_THAT(refused->body, HasSubstr("larger than 1000 bytes"));
  }
  EXPECT_EQ(handled_.load(), 1);
}

TEST_F(Hostile, AnAnnouncedLengthBeyondAllNumbersIsRefused) {
  const std::string answer =
      answer_to("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 99999999999999999999999\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 4"));
  EXPECT_EQ(handled_.load(), 0);
}

TEST_F(Hostile, AChunkedBodyIsReadAndItsLimitHolds) {
  server_.reset();
  ServerOptions options;
  options.body_bytes_max = 1000;
  start(options);
  const std::string head =
      "POST / HTTP/1.1\r\nHost: t\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_THAT(answer_to(head + "5\r\nhello\r\n4\r\n you\r\n0\r\n\r\n"), HasSubstr("hello you"));
  const std::string chunk = "400\r\n" + std::string(1024, 'x') + "\r\n";
  EXPECT_THAT(answer_to(head + chunk + "0\r\n\r\n"), StartsWith("HTTP/1.1 413"));
  RawConnection endless(folder_ / "s");
  endless.send(head);
  std::size_t sent = 0;
  while (sent < 100u << 20 && endless.send(chunk)) sent += chunk.size();
  EXPECT_LT(sent, 4u << 20) << "an endless body is cut off";
  EXPECT_EQ(handled_.load(), 1);
}

TEST_F(Hostile, ThePrivilegedComeInWhenAllPlacesAreTakenForOneShortRequest) {
  for (const bool all : {false, true}) {
    server_.reset();
    ServerOptions options;
    (all ? options.connections_max : options.connections_per_user_max) = 5;
    options.connections_reserved = 2;
    std::atomic<bool> privileged{true};
    options.privileged = [&](std::uint32_t uid) { return privileged && uid == ::getuid(); };
    options.socket_path = folder_ / "s";
    std::atomic<int> waited{0};
    auto started = Server::start(options, [&](const Request& request) {
      waited += request.stop.stop_requested() ? 0 : 1;
      return echo(request);
    });
    ASSERT_TRUE(started) << started.error().message;
    server_ = *std::move(started);
    std::vector<std::unique_ptr<RawConnection>> held;
    for (int i = 0; i < 5; ++i) held.push_back(std::make_unique<RawConnection>(folder_ / "s"));
    ASSERT_TRUE(eventually([&] { return server_->connections() == 5; }));
    for (int i = 0; i < 20; ++i) {
      Client client(folder_ / "s");
      const auto let_in = client.call("GET", "/", "", seconds(10));
      ASSERT_TRUE(let_in) << let_in.error().message;
      // The place of the one before may take a moment to become free.
      EXPECT_EQ(let_in->status == 200 || let_in->headers.count("retry-after") == 1, true);
      // And it has to go, though the client would stay.
      ASSERT_TRUE(eventually([&] { return server_->connections() == 5; }));
    }
    EXPECT_EQ(waited, 0) << "nobody waits on a place of the reserve";
    const RawConnection one(folder_ / "s");
    const RawConnection two(folder_ / "s");
    ASSERT_TRUE(eventually([&] { return server_->connections() == 7; }));
    Client third(folder_ / "s");
    EXPECT_EQ(third.call("GET", "/", "", seconds(10))->status, 503) << "the reserve has an end too";
    held.clear();
    ASSERT_TRUE(eventually([&] { return server_->connections() == 2; }));
    privileged = false;
    for (int i = 0; i < 5; ++i) held.push_back(std::make_unique<RawConnection>(folder_ / "s"));
    ASSERT_TRUE(eventually([&] { return server_->connections() == 7; }));
    const auto refused = third.call("GET", "/", "", seconds(10));
    ASSERT_TRUE(refused) << refused.error().message;
    EXPECT_EQ(refused->status, 503);
    EXPECT_EQ(refused->headers.at("retry-after"), "1");
    EXPECT_THAT(refused->body,
                HasSubstr(all ? "all 5 connections are taken" : "already has 5 connections open"));
    server_.reset();
  }
  start({});
}

TEST_F(Hostile, OneUserCannotTakeMoreConnectionsThanAllowed) {
  server_.reset();
  ServerOptions options;
  options.connections_per_user_max = 5;
  start(options);
  {
    std::vector<std::unique_ptr<RawConnection>> held;
    for (int i = 0; i < 5; ++i) {
      held.push_back(std::make_unique<RawConnection>(folder_ / "s"));
    }
    EXPECT_TRUE(eventually([&] { return server_->connections() == 5; }));
    Client client(folder_ / "s");
    const auto refused = client.call("GET", "/", "", seconds(10));
    ASSERT_TRUE(refused) << refused.error().message;
    EXPECT_EQ(refused->status, 503);
    EXPECT_THAT(refused->body, HasSubstr("already has 5 connections open"));
  }
  EXPECT_TRUE(eventually([&] { return server_->connections() == 0; }));
}

TEST_F(Hostile, BeyondAllConnectionsClientsWaitOrAreRefusedAndLaterServed) {
  server_.reset();
  ServerOptions options;
  options.connections_max = 5;
  start(options);
  std::vector<std::unique_ptr<RawConnection>> held;
  for (int i = 0; i < 30; ++i) held.push_back(std::make_unique<RawConnection>(folder_ / "s"));
  EXPECT_TRUE(eventually([&] { return server_->connections() == 5; }));
  held.clear();
  EXPECT_TRUE(eventually([&] {
    Client client(folder_ / "s");
    const auto response = client.call("GET", "/", "", seconds(2));
    return response && response->status == 200;
  }));
}

TEST_F(Hostile, TenThousandRequestsLeakNeitherFilesNorMemory) {
  const auto requests = [&](int count) {
    Client kept(folder_ / "s");
    for (int i = 0; i < count; ++i) {
      Client fresh(folder_ / "s");
      Client& client = i % 2 == 0 ? kept : fresh;
      const auto response = client.call("POST", "/x?a=b", std::string(500, 'x'), seconds(10));
      ASSERT_TRUE(response) << response.error().message;
      ASSERT_EQ(response->status, 200);
    }
  };
  requests(1000);
  ASSERT_TRUE(eventually([&] { return server_->connections() == 0; }));
  const std::size_t fds = open_fds();
  const long before = resident_kib();
  requests(10'000);
  EXPECT_TRUE(eventually([&] { return server_->connections() == 0; }));
  EXPECT_TRUE(eventually([&] { return open_fds() <= fds; })) << open_fds() << " after " << fds;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // Sanitizers keep freed memory; AddressSanitizer looks for leaks itself when the program ends.
  EXPECT_LT(resident_kib() - before, 4 * 1024);
#else
  EXPECT_GT(before, 0);
#endif
}

}  // namespace
}  // namespace takt::http
