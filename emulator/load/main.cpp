// takt-load: a program that uses emulated GPUs as a real one would use real ones.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

#include "load/devices.h"
#include "load/options.h"

namespace {

using namespace takt::emulator;
using Clock = std::chrono::steady_clock;

constexpr double kGrowEvery = 0.05;  // seconds

std::string gibibytes(std::uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / (1024.0 * 1024 * 1024));
  return text;
}

[[noreturn]] void crash() {
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  std::signal(SIGSEGV, SIG_DFL);
  raise(SIGSEGV);
  _exit(139);
}

class Run {
 public:
  Run(Devices& devices, const LoadOptions& options)
      : devices_(devices), options_(options), start_(Clock::now()) {}

  // The exit code.
  int play() {
    double ends = 0;
    do {
      for (const auto& phase : options_.phases) {
        ends += phase.seconds;
        if (int code = play(phase, ends); code >= 0) return code;
      }
    } while (options_.repeat);
    return options_.exit_code;
  }

 private:
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  void sleep_until(double seconds) const {
    if (options_.crash_after >= 0) seconds = std::min(seconds, options_.crash_after);
    std::this_thread::sleep_until(start_ + std::chrono::duration_cast<Clock::duration>(
                                               std::chrono::duration<double>(seconds)));
    if (options_.crash_after >= 0 && elapsed() >= options_.crash_after) crash();
  }

  // Below 0: go on.
  int play(Phase phase, double ends) {
    const std::uint64_t base = phase.memory;
    do {
      phase.memory = base + static_cast<std::uint64_t>(options_.grow * elapsed());
      OutOfMemory lack;
      auto applied = devices_.apply(phase, lack);
      if (!applied) {
        std::fprintf(stderr, "%s\n", applied.error().message.c_str());
        return 1;
      }
      if (!*applied) {
        std::fprintf(stderr,
                     "CUDA out of memory. Tried to allocate %s; %s of %s free (GPU %u, emulated)\n",
                     gibibytes(lack.wanted).c_str(), gibibytes(lack.free).c_str(),
                     gibibytes(lack.total).c_str(), lack.gpu);
        return 1;
      }
      sleep_until(options_.grow > 0 ? std::min(ends, elapsed() + kGrowEvery) : ends);
    } while (elapsed() < ends);
    return -1;
  }

  Devices& devices_;
  const LoadOptions& options_;
  Clock::time_point start_;
};

}  // namespace

int main(int argc, char** argv) {
  auto options = parse_load_options(std::vector<std::string>(argv + 1, argv + argc));
  if (!options) {
    std::fprintf(stderr, "takt-load: %s\n", options.error().message.c_str());
    return 2;
  }
  if (options->help) {
    std::fputs(kLoadHelp, stdout);
    return 0;
  }
  if (options->ignore_term) std::signal(SIGTERM, SIG_IGN);
  auto devices = Devices::open(argv[0]);
  if (!devices) {
    std::fprintf(stderr, "%s\n", devices.error().message.c_str());
    return 1;
  }
  if (!options->quiet) {
    for (const auto& name : devices->names())
      std::printf("takt-load: on %s (emulated)\n", name.c_str());
    std::fflush(stdout);
  }
  return Run(*devices, *options).play();
}
