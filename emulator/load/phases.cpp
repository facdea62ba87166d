#include "load/phases.h"

#include <algorithm>

#include "fleet/quantity.h"

namespace takt::emulator {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

// splitmix64: small, and the same everywhere (the distributions of <random> are not).
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  // From `least` to below `most`.
  double between(double least, double most) {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    z ^= z >> 31;
    return least + (most - least) * (static_cast<double>(z >> 11) * 0x1.0p-53);
  }

 private:
  std::uint64_t state_;
};

Phase phase(double seconds, std::uint64_t memory, double sm, double tensor, double dram) {
  Phase p;
  p.seconds = seconds;
  p.memory = memory;
  p.sm = std::clamp(sm, 0.0, 1.0);
  p.tensor = std::clamp(tensor, 0.0, 1.0);
  p.dram = std::clamp(dram, 0.0, 1.0);
  // A kernel that fills a part of the SMs still counts as a kernel running.
  p.busy = p.sm > 0 ? std::min(1.0, p.sm * 1.3) : 0;
  return p;
}

// Weights come over PCIe while memory fills up in steps.
void load(std::vector<Phase>& out, double seconds, std::uint64_t memory) {
  constexpr int kSteps = 4;
  for (int i = 1; i <= kSteps; ++i) {
    auto held = static_cast<std::uint64_t>(static_cast<double>(memory) * i / kSteps);
    Phase p = phase(seconds / kSteps, held, 0.02, 0, 0.1);
    p.pcie_rx = 10 * kGiB;
    out.push_back(p);
  }
}

void serve(std::vector<Phase>& out, double seconds, std::uint64_t memory, double strength,
           Dice& dice) {
  double level = 0.5;  // requests ebb and flow
  for (double left = seconds; left > 0; left -= 0.1) {
    level = std::clamp(level + dice.between(-0.15, 0.15), 0.1, 1.0);
    bool quiet = dice.between(0, 1) < 0.15;
    double sm = quiet ? 0 : strength * level * dice.between(0.7, 1.0);
    Phase p = phase(std::min(left, 0.1), memory, sm, sm * 0.4, sm * 0.9);
    p.pcie_rx = p.pcie_tx = sm * 0.05 * kGiB;
    out.push_back(p);
  }
}

void train(std::vector<Phase>& out, double seconds, std::uint64_t memory, double strength,
           Dice& dice) {
  constexpr double kStep = 0.4;
  constexpr int kCheckpointEvery = 12;
  int step = 0;
  for (double left = seconds; left > 0; left -= kStep, ++step) {
    double length = std::min(left, kStep);
    double sm = strength * dice.between(0.92, 1.0);
    out.push_back(phase(length * 0.8, memory, sm, sm * 0.6, sm * 0.6));
    bool checkpoint = step % kCheckpointEvery == kCheckpointEvery - 1;
    Phase p = phase(length * 0.2, memory, checkpoint ? 0 : sm * 0.3, 0, sm * 0.4);
    p.pcie_tx = checkpoint ? 6 * kGiB : 1 * kGiB;
    out.push_back(p);
  }
}

void work_off(std::vector<Phase>& out, double seconds, std::uint64_t memory, double strength,
              Dice& dice) {
  for (double left = seconds; left > 0; left -= 0.2) {
    double sm = strength * dice.between(0.94, 1.0);
    Phase p = phase(std::min(left, 0.2), memory, sm, sm * 0.65, sm * 0.5);
    p.pcie_rx = 0.5 * kGiB;
    out.push_back(p);
  }
}

void tinker(std::vector<Phase>& out, double seconds, std::uint64_t memory, double strength,
            Dice& dice) {
  double left = seconds;
  while (left > 0) {
    double pause = std::min(left, dice.between(0.3, 0.7));
    auto held = static_cast<std::uint64_t>(static_cast<double>(memory) * dice.between(0.4, 1.0));
    out.push_back(phase(pause, held, 0, 0, 0));
    left -= pause;
    if (left <= 0) break;
    double burst = std::min(left, dice.between(0.1, 0.25));
    double sm = strength * dice.between(0.2, 0.8);
    out.push_back(phase(burst, held, sm, sm * 0.2, sm * 0.4));
    left -= burst;
  }
}

}  // namespace

std::vector<Phase> phases_of(Pattern pattern, double seconds, std::uint64_t memory, double strength,
                             std::uint64_t seed) {
  std::vector<Phase> out;
  Dice dice(seed);
  double loading = std::min(1.0, seconds * 0.1);
  load(out, loading, pattern == Pattern::notebook ? memory / 4 : memory);
  double rest = seconds - loading;
  switch (pattern) {
    case Pattern::serving: serve(out, rest, memory, strength, dice); break;
    case Pattern::training: train(out, rest, memory, strength, dice); break;
    case Pattern::batch: work_off(out, rest, memory, strength, dice); break;
    case Pattern::notebook: tinker(out, rest, memory, strength, dice); break;
  }
  return out;
}

Result<double> parse_rate(const std::string& text) {
  std::string amount = text;
  if (amount.size() > 2 && amount.compare(amount.size() - 2, 2, "/s") == 0)
    amount.erase(amount.size() - 2);
  if (auto bytes = parse_bytes(amount)) return static_cast<double>(*bytes);
  return fail(ErrorKind::invalid, "'" + text + "'; expected a rate such as 2GiB/s");
}

Result<Phase> parse_phase(const std::string& text) {
  std::vector<std::string> parts;
  std::string rest = text;
  for (auto colon = rest.find(':'); colon != std::string::npos; colon = rest.find(':')) {
    parts.push_back(rest.substr(0, colon));
    rest.erase(0, colon + 1);
  }
  parts.push_back(rest);
  auto wrong = [&](const std::string& part, const std::string& expected) {
    return fail(ErrorKind::invalid,
                "'" + text + "': '" + part + "'; expected " + expected +
                    " in DURATION:MEMORY[:SM[:TENSOR[:DRAM[:PCIE_RX[:PCIE_TX]]]]]");
  };
  if (parts.size() < 2 || parts.size() > 7) return wrong(text, "2 to 7 parts");
  Phase phase;
  auto seconds = parse_seconds(parts[0]);
  if (!seconds) return wrong(parts[0], "a time such as 3s");
  phase.seconds = *seconds;
  auto memory = parse_bytes(parts[1]);
  if (!memory) return wrong(parts[1], "a size such as 12GiB");
  phase.memory = *memory;
  double* shares[] = {&phase.sm, &phase.tensor, &phase.dram};
  for (std::size_t i = 2; i < parts.size() && i < 5; ++i) {
    auto share = parse_ratio(parts[i]);
    if (!share) return wrong(parts[i], "a share from 0 to 1");
    *shares[i - 2] = *share;
  }
  double* rates[] = {&phase.pcie_rx, &phase.pcie_tx};
  for (std::size_t i = 5; i < parts.size(); ++i) {
    auto rate = parse_rate(parts[i]);
    if (!rate) return wrong(parts[i], "a rate such as 2GiB/s");
    *rates[i - 5] = *rate;
  }
  return phase;
}

}  // namespace takt::emulator
