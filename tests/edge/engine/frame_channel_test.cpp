// Frames over a socket: however it cuts them, and whatever the other end does.
#include "edge/engine/frame_channel.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace takt::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Pair {
  explicit Pair(std::size_t max = 1 << 20) {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    channel = std::make_unique<FrameChannel>(fds[0], max);
    other = fds[1];
  }
  ~Pair() { close_other(); }
  void close_other() {
    if (other >= 0) ::close(other);
    other = -1;
  }
  void sends(const std::string& bytes) {
    ASSERT_EQ(::send(other, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  std::string receives_all() {
    std::string all;
    char buffer[65536];
    ::fcntl(other, F_SETFL, O_NONBLOCK);
    for (ssize_t n = 0; (n = ::recv(other, buffer, sizeof buffer, 0)) > 0;)
      all.append(buffer, static_cast<std::size_t>(n));
    return all;
  }
  std::unique_ptr<FrameChannel> channel;
  int other = -1;
};

TEST(FrameChannel, FramesThatArriveTogetherAreTakenApart) {
  Pair pair;
  pair.sends("one\ntwo\n\nfour\n");
  EXPECT_THAT(pair.channel->read_available().value(), ElementsAre("one", "two", "", "four"));
  EXPECT_THAT(pair.channel->read_available().value(), IsEmpty());
}

TEST(FrameChannel, AFrameThatArrivesInPiecesIsPutTogether) {
  Pair pair;
  const std::string text = "{\"a\": \"long enough\"}\nnext\n";
  std::vector<std::string> got;
  for (const char c : text) {
    pair.sends(std::string(1, c));
    const auto frames = pair.channel->read_available();
    ASSERT_TRUE(frames);
    got.insert(got.end(), frames->begin(), frames->end());
  }
  EXPECT_THAT(got, ElementsAre("{\"a\": \"long enough\"}", "next"));
}

TEST(FrameChannel, AFrameOfExactlyTheMostIsTakenAndALongerOneRefused) {
  Pair pair(10);
  pair.sends("0123456789\n");
  EXPECT_THAT(pair.channel->read_available().value(), ElementsAre("0123456789"));
  pair.sends("0123456789A\n");
  const auto refused = pair.channel->read_available();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::invalid);
  EXPECT_THAT(refused.error().message, HasSubstr("longer than 10 bytes"));
}

TEST(FrameChannel, ALineThatNeverEndsIsRefusedAndNotCollected) {
  Pair pair(1000);
  pair.sends(std::string(1001, 'x'));
  EXPECT_EQ(pair.channel->read_available().error().kind, ErrorKind::invalid);
}

TEST(FrameChannel, WhatCameBeforeTheEndIsHandedOutAndThenTheEnd) {
  Pair pair;
  pair.sends("last words\nhalf");
  pair.close_other();
  EXPECT_THAT(pair.channel->read_available().value(), ElementsAre("last words"));
  const auto end = pair.channel->read_available();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().kind, ErrorKind::unavailable);
}

TEST(FrameChannel, WritingToNobodyFailsAtOnceAndRaisesNoSignal) {
  Pair pair;
  pair.close_other();
  const auto failed = pair.channel->write("hello", seconds(5));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::unavailable);
}

TEST(FrameChannel, WritingToSomebodyWhoTakesNothingMeetsItsDeadline) {
  Pair pair;
  const std::string large(8 << 20, 'x');
  const auto begin = std::chrono::steady_clock::now();
  const auto failed = pair.channel->write(large, milliseconds(100));
  const auto took = std::chrono::steady_clock::now() - begin;
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::unavailable);
  EXPECT_GE(took, std::chrono::milliseconds(90));
  EXPECT_LT(took, std::chrono::seconds(5));
}

TEST(FrameChannel, AFrameThatMetItsDeadlineHalfWayDoesNotSpoilTheNext) {
  Pair pair;
  const std::string large(2 << 20, 'x');
  ASSERT_FALSE(pair.channel->write(large, milliseconds(20)));
  ASSERT_FALSE(pair.channel->write("never sent", milliseconds(20))) << "the socket is full";
  std::string received;
  std::thread reader([&] {
    char buffer[65536];
    while (received.find("next\n") == std::string::npos) {
      const ssize_t n = ::recv(pair.other, buffer, sizeof buffer, 0);
      if (n <= 0) return;
      received.append(buffer, static_cast<std::size_t>(n));
    }
  });
  const auto ok = pair.channel->write("next", seconds(10));
  if (!ok) pair.close_other();
  reader.join();
  ASSERT_TRUE(ok) << ok.error().message;
  EXPECT_EQ(received, large + "\nnext\n");
}

TEST(FrameChannel, LargeFramesAreReadInReasonableTime) {
  Pair pair(std::size_t{16} << 20);
  const std::string large(std::size_t{12} << 20, 'x');
  std::thread writer([&] {
    const std::string line = large + "\n";
    for (std::size_t done = 0; done < line.size();) {
      const ssize_t n = ::send(pair.other, line.data() + done, line.size() - done, MSG_NOSIGNAL);
      if (n <= 0) return;
      done += static_cast<std::size_t>(n);
    }
  });
  std::vector<std::string> got;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (got.empty() && std::chrono::steady_clock::now() < end) {
    auto frames = pair.channel->read_available();
    ASSERT_TRUE(frames) << frames.error().message;
    for (auto& frame : *frames) got.push_back(std::move(frame));
    std::this_thread::yield();
  }
  writer.join();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0], large);
}

}  // namespace
}  // namespace takt::engine
