// takt-emulator: plays the GPUs of one fleet.
#include <fcntl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "daemon/server.h"
#include "fleet/quantity.h"
#include "fleet/read_fleet.h"
#include "wire/autostart.h"

namespace {

using namespace takt::emulator;

constexpr const char* kHelp =
    "usage: takt-emulator --fleet FILE [--socket-dir DIR] [--idle-exit SECONDS] [--check]\n"
    "\n"
    "Plays the GPUs that FILE describes to programs with the emulator's libnvidia-ml.so.1 and to "
    "takt-load.\n"
    "Both start it themselves when TAKT_EMULATED_FLEET names the fleet: it is seldom started by "
    "hand.\n"
    "\n"
    "  --fleet FILE         YAML, nvidia-smi -q -x, nvidia-smi -q, or a capture (FILE#load: its "
    "loaded half)\n"
    "  --socket-dir DIR     where the sockets are (default: /tmp/takt-emulator-<hash of FILE>)\n"
    "  --idle-exit SECONDS  ends after so long without a connection; 0: never (default: 0)\n"
    "  --check              reads FILE, says what is in it, and ends\n"
    "\n"
    "example: takt-emulator --fleet emulator/fleets/small-team.yaml --check\n";

struct Options {
  std::string fleet, folder;
  double idle_exit = 0;
  int ready_fd = -1;
  bool check = false, help = false;
};

std::optional<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--help" || word == "-h")
      options.help = true;
    else if (word == "--check")
      options.check = true;
    else if (i + 1 >= argc) {
      std::fprintf(stderr,
                   "takt-emulator: %s is not known or needs a value; see takt-emulator --help\n",
                   word.c_str());
      return std::nullopt;
    } else if (word == "--fleet")
      options.fleet = argv[++i];
    else if (word == "--socket-dir")
      options.folder = argv[++i];
    else if (word == "--ready-fd")
      options.ready_fd = std::atoi(argv[++i]);
    else if (word == "--idle-exit") {
      auto seconds = parse_seconds(argv[++i]);
      if (!seconds) {
        std::fprintf(stderr, "takt-emulator: --idle-exit %s: expected seconds such as 5 or 2m\n",
                     argv[i]);
        return std::nullopt;
      }
      options.idle_exit = *seconds;
    } else {
      std::fprintf(stderr, "takt-emulator: %s is not known; see takt-emulator --help\n",
                   word.c_str());
      return std::nullopt;
    }
  }
  return options;
}

// The one who started us waits for a word on this pipe.
int complain(const Options& options, const std::string& sentence) {
  if (options.ready_fd >= 0)
    (void)!write(options.ready_fd, sentence.data(), sentence.size());
  else
    std::fprintf(stderr, "takt-emulator: %s\n", sentence.c_str());
  return 1;
}

int check(const Fleet& fleet) {
  std::printf("%s: %zu GPUs, driver %s (emulated)\n", fleet.name.c_str(), fleet.gpus.size(),
              fleet.driver_version.empty() ? "unknown" : fleet.driver_version.c_str());
  for (const auto& gpu : fleet.gpus)
    std::printf("  %s  %s  %llu MiB  %zu MIG devices  %zu processes\n", gpu.uuid.c_str(),
                gpu.name.c_str(),
                static_cast<unsigned long long>(gpu.memory_total.value_or(0) / kMiB),
                gpu.migs.size(), gpu.processes.size());
  return 0;
}

int serve(const Options& options, takt::Result<Fleet> fleet) {
  std::string folder = options.folder;
  if (folder.empty()) {
    auto place = place_of(options.fleet);
    if (!place) return complain(options, place.error().message);
    folder = place->folder;
  }
  sigset_t ends;
  sigemptyset(&ends);
  for (int signal : {SIGTERM, SIGINT}) sigaddset(&ends, signal);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  std::signal(SIGHUP, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  int signal_fd = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
  Server server(std::move(*fleet), folder, options.idle_exit);
  if (auto listening = server.listen(); !listening)
    return complain(options, listening.error().message);
  if (options.ready_fd >= 0) {
    (void)!write(options.ready_fd, "ready\n", 6);
    close(options.ready_fd);
  }
  auto done = server.run(signal_fd);
  return done ? 0 : complain(options, done.error().message);
}

}  // namespace

int main(int argc, char** argv) {
  auto options = parse(argc, argv);
  if (!options) return 2;
  if (options->help) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  if (options->fleet.empty()) {
    std::fprintf(stderr, "takt-emulator: --fleet FILE is missing; see takt-emulator --help\n");
    return 2;
  }
  auto fleet = read_fleet(options->fleet);
  if (!fleet) return complain(*options, fleet.error().message);
  return options->check ? check(*fleet) : serve(*options, std::move(fleet));
}
