#pragma once
// What the driver's error numbers (XIDs) mean. Meanings after the public error list of NVIDIA's
// open kernel modules (nverror.h) and NVIDIA's Xid catalogue; `avoid` follows the catalogue's
// immediate action: those that ask for a reset of the GPU or of the host.
#include <cstdint>
#include <string>
#include <string_view>

namespace takt {

struct XidFacts {
  std::uint64_t code = 0;
  std::string_view meaning;  // a few words
  bool known = false;        // unknown codes are shown as such, never dropped
  // The GPU is not to be given to a job until it was reset. False for errors that programs cause.
  bool avoid = false;
};

XidFacts xid_facts(std::uint64_t code);

// "XID 79 (GPU has fallen off the bus)".
std::string xid_words(std::uint64_t code);

}  // namespace takt
