#include "app/report/text.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

namespace takt::report {
namespace {

TEST(Text, EscapeSequencesBecomeHarmless) {
  EXPECT_EQ(harmless("a\x1b[31mred\x1b[0m"), "a?[31mred?[0m");
  EXPECT_EQ(harmless("\x1b]0;title\x07"), "?]0;title?");
  EXPECT_EQ(harmless(std::string("nul\0del\x7f", 8)), "nul?del?");
}

TEST(Text, C1ControlsAndDirectionMarksBecomeHarmless) {
  EXPECT_EQ(harmless("\xC2\x9B"
                     "31m"),
            "?31m");                                             // CSI as one character
  EXPECT_EQ(harmless("abc\xE2\x80\xAEtxt.exe"), "abc?txt.exe");  // right-to-left override
  EXPECT_EQ(harmless("a\xE2\x80\x8B\x62"), "a?b");               // zero-width space
}

TEST(Text, InvalidUtf8BecomesHarmless) {
  EXPECT_EQ(harmless("a\xFFz"), "a?z");
  EXPECT_EQ(harmless("\xC0\x80"), "??");       // overlong
  EXPECT_EQ(harmless("\xED\xA0\x80"), "???");  // surrogate
  EXPECT_EQ(harmless("cut \xE2\x82"), "cut ??");
  EXPECT_EQ(harmless("\x9B"
                     "31m"),
            "?31m");  // a raw C1 byte
}

TEST(Text, LineBreaksBecomeSpacesAndLettersStay) {
  EXPECT_EQ(harmless("a\nb\tc\rd"), "a b c d");
  EXPECT_EQ(harmless("Grüße 你好 ×40 …"), "Grüße 你好 ×40 …");
}

TEST(Text, KnowsHowWideCharactersAre) {
  EXPECT_EQ(columns("abc"), 3u);
  EXPECT_EQ(columns("Grüße"), 5u);
  EXPECT_EQ(columns("你好"), 4u);
  EXPECT_EQ(columns("e\xCC\x81"), 1u);  // e and a combining accent
  EXPECT_EQ(columns("🚀"), 2u);
}

TEST(Text, CutsWithoutBreakingCharacters) {
  EXPECT_EQ(cut("abcdef", 6), "abcdef");
  EXPECT_EQ(cut("abcdef", 4), "abc…");
  EXPECT_EQ(cut("你好吗", 4), "你…");
  EXPECT_EQ(cut("你好吗", 5), "你好…");
  EXPECT_EQ(cut("abc", 0), "");
  EXPECT_EQ(cut("re\xCC\x81sume\xCC\x81", 3), "re\xCC\x81…");
}

TEST(Text, PadsToColumnsAndNotToBytes) {
  EXPECT_EQ(pad("é", 3), "é  ");
  EXPECT_EQ(pad_left("你", 4), "  你");
  EXPECT_EQ(pad("你好吗", 4), "你… ");
}

TEST(Text, WrapsAtSpacesAndBreaksLongWords) {
  EXPECT_EQ(wrap("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrap("abcdefghij", 4), (std::vector<std::string>{"abcd", "efgh", "ij"}));
  EXPECT_EQ(wrap("", 10), std::vector<std::string>{""});
}

TEST(Text, AParagraphHangsBelowItsLead) {
  EXPECT_EQ(paragraph("needs  ", "one two three four five six", 27),
            "needs  one two three four\n       five six\n");
}

TEST(Text, WhateverBytesComeTheResultIsPrintableAndFits) {
  EXPECT_TRUE(rc::check([] {
    const auto bytes = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
    const std::string safe = harmless(bytes);
    for (const char c : safe) {
      const auto byte = static_cast<unsigned char>(c);
      RC_ASSERT(byte >= 0x20 && byte != 0x7F);
    }
    RC_ASSERT(harmless(safe) == safe);
    const auto width = static_cast<std::size_t>(*rc::gen::inRange(0, 30));
    RC_ASSERT(columns(cut(safe, width)) <= width);
    RC_ASSERT(columns(pad(safe, width)) == width);
    for (const std::string& line : wrap(safe, width))
      RC_ASSERT(columns(line) <= std::max<std::size_t>(width, 2));
  }));
}

}  // namespace
}  // namespace takt::report
