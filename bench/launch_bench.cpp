// How long from start() to the first instruction of the job, against a bare fork and exec with the
// same cgroups, output file and folder. Both are measured in turns in one run, so that a loaded
// machine loads both; the ratio is what counts.
//
//   launch_bench [--out FILE] [--rounds N] [--shim PATH] [--records FOLDER]
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "edge/launch/cgroup_tree.h"
#include "edge/launch/launcher.h"
#include "edge/launch/shim/family.h"

namespace takt::launch {
namespace {

std::int64_t now_us() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

struct Bench {
  std::string program;  // this one; with --stamp it says when it began
  std::string folder;
  int rounds = 200;
  std::string out;
  std::string shim;
};

std::optional<std::int64_t> stamp_of(const std::string& path) {
  std::int64_t stamp = 0;
  std::ifstream file(path);
  if (!(file >> stamp)) return std::nullopt;
  return stamp;
}

// Start to first instruction of a job through launcher and shim, and how long start() itself took.
struct Sample {
  std::int64_t running_us = 0;
  std::int64_t call_us = 0;
};

std::optional<Sample> through_launcher(Launcher& launcher, const Bench& bench, int round) {
  control::LaunchOrder order;
  order.attempt = {JobId(static_cast<std::uint64_t>(round) + 1), 1};
  order.generation = 1;
  order.identity = {geteuid(), getegid(), {getegid()}, "bench", bench.folder};
  order.argv = {bench.program, "--stamp"};
  order.env = {{"PATH", "/usr/bin:/bin", false}};
  order.workdir = bench.folder;
  order.stdout_path = order.stderr_path = fmt::format("{}/launcher-{}.out", bench.folder, round);
  const std::int64_t before = now_us();
  const auto started = launcher.start(order);
  const std::int64_t after = now_us();
  if (!started) {
    fmt::print(stderr, "{}\n", started.error().message);
    return std::nullopt;
  }
  for (const std::int64_t end = now_us() + 10'000'000; now_us() < end;) {
    const auto seen = launcher.scan();
    if (!seen.empty() && seen.back().processes_gone) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  (void)launcher.forget(order.attempt);
  const auto stamp = stamp_of(order.stdout_path);
  if (!stamp) return std::nullopt;
  return Sample{*stamp - before, after - before};
}

[[noreturn]] void bare_child(const Bench& bench, const AttemptCgroups& cgroups, bool joined,
                             const std::string& out) {
  for (const std::string& cgroup : cgroups.join) {
    if (shim::is_v1(cgroup.c_str())) {
      (void)shim::join_v1(cgroup.c_str());
    } else if (!joined) {
      (void)shim::move_into(cgroup.c_str(), getpid());
    }
  }
  setsid();
  const int fd = open(out.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0 || chdir(bench.folder.c_str()) != 0) _exit(1);
  std::string program = bench.program;
  std::string mode = "--stamp";
  std::string path = "PATH=/usr/bin:/bin";
  std::array<char*, 3> argv = {program.data(), mode.data(), nullptr};
  std::array<char*, 2> env = {path.data(), nullptr};
  execve(program.c_str(), argv.data(), env.data());
  _exit(1);
}

std::optional<Sample> bare(const CgroupTree& tree, const Bench& bench, int round) {
  const std::string out = fmt::format("{}/bare-{}.out", bench.folder, round);
  const std::int64_t before = now_us();
  const auto cgroups = tree.create(fmt::format("bench-{}", round), Bytes{});
  if (!cgroups) return std::nullopt;
  // The same quick ways into the cgroups as the shim has: what differs is the shim itself.
  std::string v2;
  for (const std::string& cgroup : cgroups->join) {
    if (!shim::is_v1(cgroup.c_str())) v2 = cgroup;
  }
  bool joined = false;
  const pid_t child = shim::fork_into(v2.c_str(), joined);
  if (child < 0) return std::nullopt;
  if (child == 0) bare_child(bench, *cgroups, joined, out);
  const std::int64_t after = now_us();
  waitpid(child, nullptr, 0);
  for (const std::string& cgroup : cgroups->join) (void)remove_cgroup(cgroup);
  const auto stamp = stamp_of(out);
  if (!stamp) return std::nullopt;
  return Sample{*stamp - before, after - before};
}

double quantile_ms(std::vector<std::int64_t> values, double q) {
  std::sort(values.begin(), values.end());
  const auto index = static_cast<std::size_t>(q * static_cast<double>(values.size() - 1));
  return static_cast<double>(values[index]) / 1000.0;
}

struct Series {
  std::vector<std::int64_t> running;
  std::vector<std::int64_t> call;
  void add(const Sample& sample) {
    running.push_back(sample.running_us);
    call.push_back(sample.call_us);
  }
};

// The resident memory of a shim that waits for its job, in KiB; -1 when unknown.
std::int64_t shim_rss_kib(Launcher& launcher, const Bench& bench) {
  control::LaunchOrder order;
  order.attempt = {JobId(1'000'000), 1};
  order.identity = {geteuid(), getegid(), {getegid()}, "bench", bench.folder};
  order.argv = {"/bin/sleep", "60"};
  order.workdir = bench.folder;
  if (!launcher.start(order)) return -1;
  std::int64_t kib = -1;
  std::ifstream record(bench.folder + "/records/1000000.1/job");
  for (std::string line; std::getline(record, line);) {
    if (line.rfind("shim_pid=", 0) != 0) continue;
    std::ifstream status("/proc/" + line.substr(9) + "/status");
    for (std::string row; std::getline(status, row);) {
      if (row.rfind("VmRSS:", 0) == 0) kib = std::strtoll(row.c_str() + 6, nullptr, 10);
    }
  }
  (void)launcher.stop(order.attempt, Duration{});
  for (const std::int64_t end = now_us() + 10'000'000; now_us() < end;) {
    if (launcher.scan().back().processes_gone && launcher.forget(order.attempt)) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return kib;
}

std::string describe(const Series& launcher, const Series& bare_series, std::int64_t rss_kib,
                     bool cgroups) {
  const double ours = quantile_ms(launcher.running, 0.5);
  const double floor = quantile_ms(bare_series.running, 0.5);
  return fmt::format(
      "{{\"benchmark\": \"start_to_running\", \"rounds\": {}, \"cgroups\": {},\n"
      " \"launcher_ms\": {{\"median\": {:.3f}, \"p95\": {:.3f}}},\n"
      " \"bare_ms\": {{\"median\": {:.3f}, \"p95\": {:.3f}}},\n"
      " \"start_call_ms\": {{\"median\": {:.3f}, \"p95\": {:.3f}}},\n"
      " \"ratio\": {:.2f}, \"shim_rss_kib\": {}}}\n",
      launcher.running.size(), cgroups, ours, quantile_ms(launcher.running, 0.95), floor,
      quantile_ms(bare_series.running, 0.95), quantile_ms(launcher.call, 0.5),
      quantile_ms(launcher.call, 0.95), ours / floor, rss_kib);
}

int run(const Bench& bench) {
  LauncherOptions options;
  options.records_dir = bench.folder + "/records";
  options.shim_path = bench.shim;
  auto launcher = Launcher::open(options);
  if (!launcher) {
    fmt::print(stderr, "{}\n", launcher.error().message);
    return 1;
  }
  const auto tree = CgroupTree::open({});
  Series ours;
  Series floor;
  for (int round = 0; round < bench.rounds; ++round) {
    const auto one = through_launcher(**launcher, bench, round);
    const auto other = bare(*tree, bench, round);
    if (!one || !other) {
      fmt::print(stderr, "launch_bench: round {} has no result\n", round);
      return 1;
    }
    ours.add(*one);
    floor.add(*other);
  }
  const std::string text =
      describe(ours, floor, shim_rss_kib(**launcher, bench), tree->limits_memory());
  fmt::print("{}", text);
  if (!bench.out.empty() && !(std::ofstream(bench.out) << text)) {
    fmt::print(stderr, "launch_bench: {}: cannot be written: make its folder\n", bench.out);
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace takt::launch

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--stamp") == 0) {
    const std::string stamp = std::to_string(takt::launch::now_us()) + "\n";
    return write(1, stamp.data(), stamp.size()) > 0 ? 0 : 1;
  }
  takt::launch::Bench bench;
  std::error_code error;
  bench.program = std::filesystem::canonical("/proc/self/exe", error).string();
  // build/<preset>/bench/launch_bench: the shim is one folder up.
  const auto here = std::filesystem::path(bench.program).parent_path();
  bench.shim = (here.parent_path() / "takt-shim").string();
  std::string above = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--out") bench.out = argv[i + 1];
    if (name == "--shim") bench.shim = argv[i + 1];
    if (name == "--records") above = argv[i + 1];
    if (name == "--rounds") bench.rounds = std::max(1, std::atoi(argv[i + 1]));
  }
  bench.folder = above + "/takt-launch-bench-XXXXXX";
  if (mkdtemp(bench.folder.data()) == nullptr) {
    fmt::print(stderr, "launch_bench: {}: {}\n", bench.folder, std::strerror(errno));
    return 1;
  }
  const int result = takt::launch::run(bench);
  std::filesystem::remove_all(bench.folder, error);
  return result;
}
