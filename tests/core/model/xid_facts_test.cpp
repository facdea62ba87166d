#include "core/model/xid_facts.h"

#include <gtest/gtest.h>

namespace takt {
namespace {

TEST(XidFactsTest, Errors_that_programs_cause_leave_the_gpu_usable) {
  for (const std::uint64_t code : {13, 31, 43, 45, 63, 94}) {
    EXPECT_TRUE(xid_facts(code).known) << code;
    EXPECT_FALSE(xid_facts(code).avoid) << code;
  }
}

TEST(XidFactsTest, Errors_that_ask_for_a_reset_take_the_gpu_out) {
  for (const std::uint64_t code : {48, 62, 64, 74, 79, 95, 119, 120, 140, 154}) {
    EXPECT_TRUE(xid_facts(code).known) << code;
    EXPECT_TRUE(xid_facts(code).avoid) << code;
  }
}

// Case C1 13: a code that nobody listed is shown, not dropped.
TEST(XidFactsTest, Unknown_codes_have_words_and_do_not_take_the_gpu_out) {
  const XidFacts facts = xid_facts(4711);
  EXPECT_EQ(facts.code, 4711u);
  EXPECT_FALSE(facts.known);
  EXPECT_FALSE(facts.avoid);
  EXPECT_NE(xid_words(4711).find("unknown"), std::string::npos);
}

TEST(XidFactsTest, Words_name_the_code_and_its_meaning) {
  EXPECT_EQ(xid_words(79), "XID 79 (GPU has fallen off the bus)");
}

}  // namespace
}  // namespace takt
