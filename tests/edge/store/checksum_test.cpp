#include "edge/store/checksum.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace takt::store {
namespace {

TEST(Checksum, FitsThePublishedValues) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);            // the catalogue's check value of CRC-32C
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);  // RFC 3720, B.4: 32 bytes of zeroes
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);  // 32 bytes of ones
}

RC_GTEST_PROP(Checksum, CanBeContinuedAnywhere, (std::string text)) {
  const auto cut = *rc::gen::inRange<std::size_t>(0, text.size() + 1);
  RC_ASSERT(crc32c(text) == crc32c(text.substr(cut), crc32c(text.substr(0, cut))));
}

RC_GTEST_PROP(Checksum, IsTheSameWithAndWithoutTheProcessorsInstruction,
              (std::string text, std::uint32_t before)) {
  RC_ASSERT(crc32c(text, before) == crc32c_by_tables(text, before));
}

RC_GTEST_PROP(Checksum, FindsEveryChangedByte, (std::string text)) {
  RC_PRE(!text.empty());
  std::string other = text;
  const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
  other[at] = static_cast<char>(other[at] ^ *rc::gen::inRange(1, 256));
  RC_ASSERT(crc32c(text) != crc32c(other));
}

}  // namespace
}  // namespace takt::store
