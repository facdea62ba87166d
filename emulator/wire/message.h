#pragma once
// What travels between the daemon and its clients: one request and one reply a packet
// (SOCK_SEQPACKET), both made of numbers and texts. The layout of NVML's structs is known to the
// library alone.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/codes.h"

namespace takt::emulator {

inline constexpr std::size_t kPacketMax = 160 * 1024;

struct Request {
  std::string call;       // canonical name of an NVML call, or one of the emulator's own (below)
  std::int32_t mig = -1;  // index of the MIG device the call is about; -1: the whole GPU
  std::vector<std::uint64_t> numbers;
  std::string text;
};

struct Reply {
  Code code = Code::success;
  std::vector<std::uint64_t> numbers;
  std::vector<std::string> texts;
};

// The emulator's own calls. To driver.sock:
//  "hello"       -> texts: fleet name, driver version, NVML version, then per GPU: uuid;
//                   numbers: DriverState, CUDA version (0 unknown), GPUs
//  "processname" numbers: pid -> texts: name
// To gpuN.sock:
//  "load:attach"   mig: instance or -1; text: program name -> memory total, memory free
//  "load:memory"   numbers: bytes -> total, free; Code::memory when they are not there
//  "load:activity" numbers: busy, sm, tensor, dram (millionths), PCIe rx, tx (bytes a second)
//  "migs"          -> texts: uuids of the MIG devices; numbers: 1 where MIG is enabled
std::string encode(const Request& request);
std::string encode(const Reply& reply);
std::optional<Request> decode_request(std::string_view packet);
std::optional<Reply> decode_reply(std::string_view packet);

}  // namespace takt::emulator
