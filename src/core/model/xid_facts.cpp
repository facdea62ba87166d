#include "core/model/xid_facts.h"

#include <fmt/core.h>

#include <array>

namespace takt {
namespace {

constexpr bool kAvoid = true;
constexpr bool kUsable = false;

constexpr std::array kXids{
    XidFacts{8, "a channel stopped processing", true, kUsable},
    XidFacts{13, "graphics or compute engine exception, mostly a fault of the program", true,
             kUsable},
    XidFacts{31, "memory page fault, mostly a fault of the program", true, kUsable},
    XidFacts{32, "corrupted push buffer", true, kUsable},
    XidFacts{38, "driver firmware error", true, kUsable},
    XidFacts{43, "a program's channel was stopped", true, kUsable},
    XidFacts{45, "channels removed after another error or the program's end", true, kUsable},
    XidFacts{46, "the GPU stopped processing", true, kAvoid},
    XidFacts{48, "double-bit memory error", true, kAvoid},
    XidFacts{61, "internal controller breakpoint", true, kUsable},
    XidFacts{62, "internal controller halted", true, kAvoid},
    XidFacts{63, "a faulty memory row or page was taken out of use", true, kUsable},
    XidFacts{64, "a faulty memory row or page could not be taken out of use", true, kAvoid},
    XidFacts{68, "video decoder exception", true, kUsable},
    XidFacts{69, "graphics engine class error", true, kUsable},
    XidFacts{74, "NVLink error", true, kAvoid},
    XidFacts{79, "GPU has fallen off the bus", true, kAvoid},
    XidFacts{92, "many single-bit memory errors", true, kUsable},
    XidFacts{94, "contained memory error: one program was hit", true, kUsable},
    XidFacts{95, "uncontained memory error: any program may be hit", true, kAvoid},
    XidFacts{109, "context switch timed out", true, kAvoid},
    XidFacts{119, "the GPU's firmware (GSP) did not answer", true, kAvoid},
    XidFacts{120, "error in the GPU's firmware (GSP)", true, kAvoid},
    XidFacts{136, "a link could not be trained", true, kAvoid},
    XidFacts{140, "memory error that cannot be corrected", true, kAvoid},
    XidFacts{154, "the driver asks for a reset or reboot", true, kAvoid},
};

}  // namespace

XidFacts xid_facts(std::uint64_t code) {
  for (const XidFacts& facts : kXids)
    if (facts.code == code) return facts;
  return {code, "unknown to takt: see NVIDIA's Xid catalogue", false, kUsable};
}

std::string xid_words(std::uint64_t code) {
  const XidFacts facts = xid_facts(code);
  return fmt::format("XID {} ({})", code, facts.meaning);
}

}  // namespace takt
