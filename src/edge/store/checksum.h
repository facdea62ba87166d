#pragma once
// CRC-32C (Castagnoli; RFC 3720, appendix B.4): finds damage by disks and by hand, not by
// attackers.
#include <cstdint>
#include <string_view>

namespace takt::store {

// Continues a checksum over more bytes: crc32c("ab") == crc32c("b", crc32c("a")).
std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0);
// The same without the processor's own instruction for it.
std::uint32_t crc32c_by_tables(std::string_view bytes, std::uint32_t before = 0);

}  // namespace takt::store
