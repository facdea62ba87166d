#include "edge/http/message.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace takt::http {
namespace {

TEST(Message, EveryErrorKindHasAStatusThatLeadsBackToIt) {
  for (const ErrorKind kind : {ErrorKind::invalid, ErrorKind::not_found, ErrorKind::forbidden,
                               ErrorKind::conflict, ErrorKind::unavailable, ErrorKind::io}) {
    EXPECT_EQ(kind_of(status_of(kind)), kind);
  }
  EXPECT_EQ(status_of(ErrorKind::conflict), 409);
}

TEST(Message, StatusesThatTaktDoesNotUseItselfHaveASensibleKind) {
  EXPECT_EQ(kind_of(405), ErrorKind::invalid);
  EXPECT_EQ(kind_of(413), ErrorKind::invalid);
  EXPECT_EQ(kind_of(431), ErrorKind::invalid);
  EXPECT_EQ(kind_of(429), ErrorKind::unavailable);
  EXPECT_EQ(kind_of(401), ErrorKind::forbidden);
  EXPECT_EQ(kind_of(502), ErrorKind::io);
}

TEST(Message, AnErrorIsAJsonObjectWithOneSentence) {
  const Response response = error_response(Error{ErrorKind::not_found, "no job \"17\"\n"});
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_EQ(response.body, "{\"error\": \"no job \\\"17\\\"\\n\"}\n");
}

TEST(Message, JsonTextEscapesWhatJsonForbids) {
  EXPECT_EQ(json_quoted(""), "\"\"");
  EXPECT_EQ(json_quoted("a\\b\"c"), "\"a\\\\b\\\"c\"");
  EXPECT_EQ(json_quoted("\t\n\r\x01"), "\"\\t\\n\\u000d\\u0001\"");
  EXPECT_EQ(json_quoted("grün €😀"), "\"grün €😀\"");
}

TEST(Message, JsonTextReplacesWhatIsNotUtf8) {
  EXPECT_EQ(json_quoted("a\xFFz"), "\"a\xEF\xBF\xBDz\"");
  EXPECT_EQ(json_quoted("\xC0\xAF"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");  // overlong slash
  EXPECT_EQ(json_quoted("\xED\xA0\x80"),
            "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");               // surrogate
  EXPECT_EQ(json_quoted("\xE2\x82"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");  // cut off
  EXPECT_EQ(json_quoted("\xF4\x90\x80\x80").size(), 2 + 4 * 3);        // above U+10FFFF
}

TEST(Message, PercentDecodingUndoesEscapes) {
  EXPECT_EQ(percent_decoded("a%20b%2Fc%C3%BC", false).value(), "a b/cü");
  EXPECT_EQ(percent_decoded("a+b", true).value(), "a b");
  EXPECT_EQ(percent_decoded("a+b", false).value(), "a+b");
}

TEST(Message, PercentDecodingRefusesWhatIsNoEscape) {
  for (const char* text : {"%", "a%", "a%4", "%zz", "%4g", "%%41", "%-1", "% 1", "%+1"}) {
    const auto decoded = percent_decoded(text, true);
    ASSERT_FALSE(decoded) << text;
    EXPECT_EQ(decoded.error().kind, ErrorKind::invalid);
    EXPECT_NE(decoded.error().message.find("percent-encoding"), std::string::npos);
  }
}

TEST(Message, PercentDecodingRefusesNulAndRawControlCharacters) {
  EXPECT_FALSE(percent_decoded("a%00b", false));
  EXPECT_FALSE(
      percent_decoded("a\x01"
                      "b",
                      false));
  EXPECT_FALSE(percent_decoded("a\x7F", false));
  EXPECT_TRUE(percent_decoded("a%0Ab", false)) << "an escaped newline is a character like others";
}

TEST(Message, AQueryIsItsPairs) {
  const auto query =
      parse_query("state=queued&user=a%26b&flag&empty=&state=running&&x=1=2").value();
  EXPECT_EQ(query.at("state"), "running") << "the last one counts";
  EXPECT_EQ(query.at("user"), "a&b");
  EXPECT_EQ(query.at("flag"), "");
  EXPECT_EQ(query.at("empty"), "");
  EXPECT_EQ(query.at("x"), "1=2");
  EXPECT_EQ(query.size(), 5u);
  EXPECT_TRUE(parse_query("").value().empty());
}

TEST(Message, AQueryWithABrokenEscapeIsRefusedInNameAndValue) {
  EXPECT_FALSE(parse_query("a%=1"));
  EXPECT_FALSE(parse_query("a=%1"));
  EXPECT_FALSE(parse_query("ok=1&b=%zz"));
}

RC_GTEST_PROP(Message, DecodingUndoesEncodingForAnyTextWithoutNul, (std::string text)) {
  std::erase(text, '\0');
  RC_ASSERT(percent_decoded(percent_encoded(text), false).value() == text);
  RC_ASSERT(percent_decoded(percent_encoded(text), true).value() == text);
  RC_ASSERT(parse_query("k=" + percent_encoded(text)).value().at("k") == text);
}

RC_GTEST_PROP(Message, QuotedTextNeverEndsEarlyOrHoldsControlCharacters, (std::string text)) {
  const std::string quoted = json_quoted(text);
  RC_ASSERT(quoted.front() == '"');
  RC_ASSERT(quoted.back() == '"');
  for (std::size_t i = 1; i + 1 < quoted.size(); ++i) {
    RC_ASSERT(static_cast<unsigned char>(quoted[i]) >= 0x20);
    RC_ASSERT(quoted[i] != '"');
    if (quoted[i] == '\\') ++i;
  }
}

}  // namespace
}  // namespace takt::http
