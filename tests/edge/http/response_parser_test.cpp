#include "edge/http/response_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace takt::http {
namespace {

using ::testing::HasSubstr;

const std::string kAnswer =
    "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nX-Takt:  a b \r\n"
    "content-length: 5\r\n\r\nhello";

// The error's message, or "" when there is none.
std::string refusal(std::string_view text) {
  ResponseParser parser(false, 1000);
  const auto fed = parser.feed(text);
  if (fed) return "";
  EXPECT_EQ(fed.error().kind, ErrorKind::io);
  return fed.error().message;
}

TEST(ResponseParser, ReadsStatusHeadersAndBody) {
  ResponseParser parser(false, 1000);
  EXPECT_FALSE(parser.begun());
  ASSERT_TRUE(parser.feed(kAnswer).value());
  EXPECT_TRUE(parser.begun());
  EXPECT_EQ(parser.response().status, 201);
  EXPECT_EQ(parser.response().content_type, "application/json");
  EXPECT_EQ(parser.response().headers.at("x-takt"), "a b");
  EXPECT_EQ(parser.response().body, "hello");
  EXPECT_TRUE(parser.keeps_alive());
  EXPECT_FALSE(parser.surplus());
}

RC_GTEST_PROP(ResponseParser, TheCutsBetweenReadsDoNotMatter, ()) {
  const std::string text = "HTTP/1.1 100 Continue\r\n\r\n" + kAnswer;
  ResponseParser parser(false, 1000);
  std::size_t at = 0;
  bool complete = false;
  while (at < text.size()) {
    RC_ASSERT(!complete);
    const auto size = *rc::gen::inRange<std::size_t>(1, 12);
    complete = parser.feed(std::string_view(text).substr(at, size)).value();
    at += size;
  }
  RC_ASSERT(complete);
  RC_ASSERT(parser.response().body == "hello");
  RC_ASSERT(parser.response().status == 201);
}

RC_GTEST_PROP(ResponseParser, AnyBytesEndInAnAnswerOrASentenceAndNeverInMoreThanTheLimit,
              (std::string noise)) {
  ResponseParser parser(false, 10);
  const auto fed = parser.feed(*rc::gen::element<std::string>("", "HTTP/1.1 200 OK\r\n") + noise);
  if (fed && *fed) RC_ASSERT(parser.response().body.size() <= 10u);
  if (!fed) RC_ASSERT(!fed.error().message.empty());
}

TEST(ResponseParser, AnswersWithoutBodyAreCompleteAtTheirHeaders) {
  for (const char* status : {"204 No Content", "304 Not Modified"}) {
    ResponseParser parser(false, 1000);
    EXPECT_TRUE(parser.feed("HTTP/1.1 " + std::string(status) + "\r\n\r\n").value()) << status;
  }
  ResponseParser head(true, 10);
  EXPECT_TRUE(head.feed("HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n").value())
      << "an answer to HEAD has no body, however long GET's would be";
  EXPECT_EQ(head.response().body, "");
}

TEST(ResponseParser, NoticesThatTheConnectionEnds) {
  ResponseParser closes(false, 1000);
  ASSERT_TRUE(
      closes.feed("HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n").value());
  EXPECT_FALSE(closes.keeps_alive());
  ResponseParser old(false, 1000);
  ASSERT_TRUE(old.feed("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n").value());
  EXPECT_FALSE(old.keeps_alive());
}

TEST(ResponseParser, NoticesBytesBehindTheAnswer) {
  ResponseParser parser(false, 1000);
  ASSERT_TRUE(parser.feed(kAnswer + "x").value());
  EXPECT_EQ(parser.response().body, "hello");
  EXPECT_TRUE(parser.surplus());
}

TEST(ResponseParser, RefusesWhatIsNotHttp) {
  for (const char* text :
       {"SSH-2.0-OpenSSH_9.2\r\n", "HTTP/2 200 OK\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1 099 X\r\n\r\n", "\r\n\r\n"}) {
    EXPECT_THAT(refusal(text), HasSubstr("is it a takt that listens")) << text;
  }
}

TEST(ResponseParser, RefusesLengthsThatAreNone) {
  const std::string start = "HTTP/1.1 200 OK\r\n";
  EXPECT_THAT(refusal(start + "\r\n"), HasSubstr("no Content-Length"));
  for (const char* length : {"", "-1", "+1", "1x", "0x10", "1 2", "1,1", "99999999999999999999"}) {
    EXPECT_THAT(refusal(start + "Content-Length: " + length + "\r\n\r\n"), HasSubstr("no number"))
        << length;
  }
  EXPECT_THAT(refusal(start + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n"),
              HasSubstr("two Content-Lengths"));
}

TEST(ResponseParser, RefusesATransferEncoding) {
  EXPECT_THAT(refusal("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
              HasSubstr("transfer encoding"));
}

TEST(ResponseParser, RefusesAHeaderWithoutName) {
  EXPECT_THAT(refusal("HTTP/1.1 200 OK\r\n: x\r\n\r\n"), HasSubstr("no name"));
  EXPECT_THAT(refusal("HTTP/1.1 200 OK\r\nnothing\r\n\r\n"), HasSubstr("no name"));
}

TEST(ResponseParser, RefusesEndlessHeadersWithoutKeepingThem) {
  ResponseParser parser(false, 1000);
  ASSERT_TRUE(parser.feed("HTTP/1.1 200 OK\r\nX: "));
  const std::string block(16384, 'a');
  int blocks = 0;
  while (parser.feed(block)) ASSERT_LT(++blocks, 10) << "64 KiB is the limit";
}

TEST(ResponseParser, RefusesABodyAboveTheLimitBeforeItComes) {
  EXPECT_THAT(refusal("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n"),
              HasSubstr("more than the 1000 that this program takes"));
  EXPECT_EQ(refusal("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"), "");
}

}  // namespace
}  // namespace takt::http
