#pragma once
// What a stand-in program does over time, as a list of phases.
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace takt::emulator {

struct Phase {
  double seconds = 1;
  std::uint64_t memory = 0;  // bytes held
  double busy = -1;          // share of time with a kernel running; < 0: the largest of the others
  double sm = 0;
  double tensor = 0;
  double dram = 0;
  double pcie_rx = 0;  // bytes a second
  double pcie_tx = 0;
};

enum class Pattern { serving, training, batch, notebook };

// The shape of a kind of work over `seconds`, at most `memory` bytes; `strength` 0-1 scales how
// busy its busy times are. The same seed gives the same phases.
//  serving:  loads weights, then holds its memory while requests come and go
//  training: loads, then steps: forward and backward, a short exchange, now and then a checkpoint
//  batch:    loads, then works at full strength to the end
//  notebook: long pauses with memory held, short bursts
std::vector<Phase> phases_of(Pattern pattern, double seconds, std::uint64_t memory, double strength,
                             std::uint64_t seed);

// "3s:12GiB:0.6:0.3:0.4:2GiB/s:1GiB/s": duration, memory, SM, tensor, DRAM, PCIe in and out; what
// is left out at the end is 0.
Result<Phase> parse_phase(const std::string& text);
Result<double> parse_rate(const std::string& text);  // "2GiB/s" -> bytes a second

}  // namespace takt::emulator
