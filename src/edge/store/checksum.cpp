#include "edge/store/checksum.h"

#include <array>
#include <cstddef>
#include <cstring>

namespace takt::store {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78u;  // 0x1EDC6F41 with its bits reversed

// Row n is for a byte with n more behind it, so that eight bytes are taken in one step ("slicing by
// 8", Kounavis and Berry, 2005): a batch's checksums else cost as much as its inserts.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1u) != 0 ? kPolynomial : 0u);
    tables[0][i] = value;
  }
  for (std::size_t row = 1; row < tables.size(); ++row) {
    for (std::size_t i = 0; i < 256; ++i) {
      const std::uint32_t one_less = tables[row - 1][i];
      tables[row][i] = (one_less >> 8) ^ tables[0][one_less & 0xFFu];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

std::uint32_t little_endian(const unsigned char* at) {
  return std::uint32_t{at[0]} | std::uint32_t{at[1]} << 8 | std::uint32_t{at[2]} << 16 |
         std::uint32_t{at[3]} << 24;
}

#if defined(__x86_64__)
// The processor's own instruction for this polynomial (SSE 4.2).
__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_processor(std::string_view bytes,
                                                                    std::uint32_t before) {
  std::uint64_t value = ~before;
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    value = __builtin_ia32_crc32di(value, word);
  }
  auto low = static_cast<std::uint32_t>(value);
  for (; left > 0; --left, ++at) low = __builtin_ia32_crc32qi(low, static_cast<unsigned char>(*at));
  return ~low;
}
#endif

}  // namespace

std::uint32_t crc32c(std::string_view bytes, std::uint32_t before) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return crc32c_by_processor(bytes, before);
#endif
  return crc32c_by_tables(bytes, before);
}

std::uint32_t crc32c_by_tables(std::string_view bytes, std::uint32_t before) {
  std::uint32_t value = ~before;
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    const std::uint32_t low = value ^ little_endian(at);
    const std::uint32_t high = little_endian(at + 4);
    value = kTables[7][low & 0xFFu] ^ kTables[6][(low >> 8) & 0xFFu] ^
            kTables[5][(low >> 16) & 0xFFu] ^ kTables[4][low >> 24] ^ kTables[3][high & 0xFFu] ^
            kTables[2][(high >> 8) & 0xFFu] ^ kTables[1][(high >> 16) & 0xFFu] ^
            kTables[0][high >> 24];
  }
  for (; left > 0; --left, ++at) value = (value >> 8) ^ kTables[0][(value ^ *at) & 0xFFu];
  return ~value;
}

}  // namespace takt::store
