// How many trivial jobs a second go through takt, from the submission to the proven end, beside the
// launcher alone with as many at a time: start, wait, forget, without server, journal or devices.
// Sync is on. Then what server and agent cost while nobody wants anything. Results are JSON.
//
//   throughput_bench [--out FILE] [--jobs N]
#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "edge/launch/launcher.h"
#include "private_server.h"

namespace {

namespace fs = std::filesystem;
using namespace takt::bench;
using takt::http::Client;
using Clock = std::chrono::steady_clock;

constexpr int kGpus = 8;
constexpr int kRounds = 5;
constexpr auto kIdle = std::chrono::seconds(30);

double seconds_since(Clock::time_point from) {
  return std::chrono::duration<double>(Clock::now() - from).count();
}

// ---- the launcher alone -------------------------------------------------------------------------

takt::control::LaunchOrder order_of(std::uint64_t number, const fs::path& folder) {
  takt::control::LaunchOrder order;
  order.attempt = {takt::JobId(number), 1};
  order.generation = number;
  order.identity = {geteuid(), getegid(), {getegid()}, "bench", folder.string()};
  order.argv = {"/bin/true"};
  order.env = {{"PATH", "/usr/bin:/bin", false}};
  order.workdir = folder.string();
  order.stdout_path = fmt::format("{}/{}.out", folder.string(), number);
  order.stderr_path = fmt::format("{}/{}.err", folder.string(), number);
  return order;
}

double launcher_rate(takt::launch::Launcher& launcher, const fs::path& folder, std::uint64_t first,
                     int jobs) {
  std::uint64_t next = first;
  int ended = 0;
  std::set<takt::AttemptId> under_way;
  const auto begin = Clock::now();
  while (ended < jobs) {
    while (under_way.size() < kGpus && next < first + static_cast<std::uint64_t>(jobs)) {
      const auto order = order_of(next++, folder);
      if (auto ok = launcher.start(order); !ok) give_up(ok.error().message);
      under_way.insert(order.attempt);
    }
    for (const auto& seen : launcher.scan()) {
      if (!seen.processes_gone || under_way.count(seen.attempt) == 0) continue;
      if (!launcher.forget(seen.attempt)) continue;
      under_way.erase(seen.attempt);
      ++ended;
    }
    if (under_way.size() == kGpus) {
      pollfd event{launcher.event_fd(), POLLIN, 0};
      ::poll(&event, 1, 100);
    }
    if (seconds_since(begin) > 300) give_up("the launcher did not end its jobs in 5 minutes");
  }
  return jobs / seconds_since(begin);
}

// ---- all of takt --------------------------------------------------------------------------------

double takt_rate(Client& client, const fs::path& folder, int jobs) {
  std::vector<std::string> numbers;
  for (int i = 0; i < jobs; ++i) numbers.push_back(std::to_string(i));
  const std::string body = submission({"/bin/true"}, folder, 1, {{"n", numbers}});
  const auto begin = Clock::now();
  const long first = std::stol(submit(client, body));
  // In the order in which they wait: when the last one has ended, those before it end too.
  for (long id = first + jobs - 1; id >= std::max(first, first + jobs - kGpus); --id)
    await_end(client, std::to_string(id));
  return jobs / seconds_since(begin);
}

// ---- doing nothing ------------------------------------------------------------------------------

double cpu_seconds(long pid) {
  std::ifstream in(fmt::format("/proc/{}/stat", pid));
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const std::size_t at = text.rfind(')');
  if (at == std::string::npos) return 0;
  std::istringstream fields(text.substr(at + 2));
  std::string word;
  double ticks = 0;
  for (int i = 3; i <= 15 && fields >> word; ++i)
    if (i >= 14) ticks += std::strtod(word.c_str(), nullptr);  // utime, stime
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// Of one core, in percent.
double idle_percent(const Server& server) {
  const long agent = only_child(server.pid);
  std::this_thread::sleep_for(std::chrono::seconds(3));
  const double before = cpu_seconds(server.pid) + cpu_seconds(agent);
  const auto begin = Clock::now();
  std::this_thread::sleep_for(kIdle);
  const double used = cpu_seconds(server.pid) + cpu_seconds(agent) - before;
  return 100 * used / seconds_since(begin);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int measure(const fs::path& build, const std::string& out, int jobs) {
  std::string name = "/tmp/takt-bench.XXXXXX";
  const fs::path folder = ::mkdtemp(name.data());
  std::string memory = "/dev/shm/takt-bench.XXXXXX";  // as the server's records are
  const fs::path records = ::mkdtemp(memory.data());
  takt::launch::LauncherOptions options;
  options.records_dir = records.string();
  options.shim_path = (build / "takt-shim").string();
  options.logs_dir = folder.string();  // files are made by the launcher, as in the agent
  auto launcher = takt::launch::Launcher::open(options);
  if (!launcher) give_up(launcher.error().message);
  const Server server = serve(build, folder, kGpus);
  const double idle = idle_percent(server);
  Client client(server.socket);
  std::vector<double> alone;
  std::vector<double> whole;
  std::vector<double> ratios;
  const int part = std::max(1, jobs / kRounds);
  // Turn by turn, so that whatever else the machine does meets both.
  for (int i = 0; i < kRounds; ++i) {
    alone.push_back(
        launcher_rate(**launcher, folder, static_cast<std::uint64_t>(i * part + 1), part));
    whole.push_back(takt_rate(client, folder, part));
    ratios.push_back(whole.back() / alone.back());
    fmt::print(stderr, "takt: {} jobs: launcher {:.0f}/s, takt {:.0f}/s\n", part, alone.back(),
               whole.back());
  }
  launcher->reset();
  fs::remove_all(records);
  clean_up(server, folder);
  const std::string result = fmt::format(
      "{{\"what\": \"throughput\", \"jobs\": {}, \"gpus\": {}, \"takt_jobs_per_second\": {:.1f}, "
      "\"launcher_jobs_per_second\": {:.1f}, \"ratio\": {:.2f}, \"ratio_limit\": 0.7, "
      "\"idle_percent_of_a_core\": {:.2f}, \"idle_limit_percent\": 1}}\n",
      part * kRounds, kGpus, median(whole), median(alone), median(ratios), idle);
  fmt::print("{}", result);
  if (!out.empty()) std::ofstream(out) << result;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string out;
  int jobs = 5000;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--out") out = argv[i + 1];
    if (option == "--jobs") jobs = std::max(kRounds, std::atoi(argv[i + 1]));
  }
  const fs::path self = fs::read_symlink("/proc/self/exe");
  return measure(self.parent_path().parent_path(), out, jobs);
}
