// What a user feels of takt, on the emulated fleet with a private server: how long from submitting
// to a running process, how fast a long list is shown, what starting the program and doing nothing
// cost. Everything that is compared is measured in this one run; results are JSON (--out FILE).
#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "edge/http/client.h"
#include "edge/launch/cgroup_tree.h"
#include "edge/launch/shim/family.h"
#include "private_server.h"

namespace {

namespace fs = std::filesystem;
using takt::http::Client;
using namespace takt::bench;

double now_ms() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// The stamping child: writes the monotonic clock as its first act.
int stamp(const char* file) {
  const double t = now_ms();
  const int fd = ::open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const std::string text = fmt::format("{:.6f}", t);
  return ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1;
}

double read_stamp(const fs::path& file) {
  const double end = now_ms() + 10'000;
  while (now_ms() < end) {
    std::ifstream in(file);
    double t = 0;
    if (in >> t) return t;
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  give_up("a job did not start within 10 s");
}

// The floor: the same cgroups, joined in the same quick way, the same bytes synced once (what one
// batch of the journal costs), and fork + exec of the same program.
double bare_start(const fs::path& folder, const std::string& self,
                  const takt::launch::CgroupTree& cgroups, int fd, int i) {
  const fs::path mark = folder / "bare";
  fs::remove(mark);
  const std::string record(2048, 'x');
  const double before = now_ms();
  if (::write(fd, record.data(), record.size()) < 0 || ::fdatasync(fd) != 0)
    give_up("cannot sync to " + folder.string());
  auto made = cgroups.create(fmt::format("bench-{}", i), takt::Bytes{0});
  if (!made) give_up(made.error().message);
  std::string v2;
  for (const std::string& join : made->join)
    if (!takt::shim::is_v1(join.c_str())) v2 = join;
  bool joined = false;
  const pid_t pid = takt::shim::fork_into(v2.c_str(), joined);
  if (pid == 0) {
    for (const std::string& join : made->join)
      if (takt::shim::is_v1(join.c_str()))
        (void)takt::shim::join_v1(join.c_str());
      else if (!joined)
        (void)takt::shim::move_into(join.c_str(), ::getpid());
    ::execl(self.c_str(), self.c_str(), "--stamp", mark.c_str(), nullptr);
    ::_exit(127);
  }
  ::waitpid(pid, nullptr, 0);
  const double started = read_stamp(mark);
  for (const std::string& join : made->join) ::rmdir(join.c_str());
  return started - before;
}

struct StartTimes {
  double takt_ms = 0;
  double bare_ms = 0;
};

StartTimes measure_starts(Client& client, const fs::path& folder, const std::string& self) {
  const auto cgroups = takt::launch::CgroupTree::open({});
  const int fd = ::open((folder / "synced").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  std::vector<double> takt_times;
  std::vector<double> bare_times;
  // Turn by turn, so that whatever else the machine does meets both.
  for (int i = 0; i < 60; ++i) {
    bare_times.push_back(bare_start(folder, self, *cgroups, fd, i));
    const fs::path mark = folder / "job";
    fs::remove(mark);
    const std::string body = submission({self, "--stamp", mark.string()}, folder, 1);
    const double before = now_ms();
    const std::string id = submit(client, body);
    takt_times.push_back(read_stamp(mark) - before);
    await_end(client, id);
    // Until the device is free again, so that each start meets an idle machine.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  ::close(fd);
  return {median(takt_times), median(bare_times)};
}

double run_ms(const std::vector<std::string>& argv, double* cpu_ms = nullptr,
              std::size_t* bytes = nullptr) {
  const fs::path out = fs::temp_directory_path() / fmt::format("takt-bench-out-{}", ::getpid());
  fs::remove(out);
  rusage before{};
  ::getrusage(RUSAGE_CHILDREN, &before);
  const double begin = now_ms();
  const pid_t pid = start(argv, out);
  int status = 0;
  ::waitpid(pid, &status, 0);
  const double wall = now_ms() - begin;
  rusage after{};
  ::getrusage(RUSAGE_CHILDREN, &after);
  const auto ms = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  if (cpu_ms != nullptr)
    *cpu_ms = ms(after.ru_utime) + ms(after.ru_stime) - ms(before.ru_utime) - ms(before.ru_stime);
  if (bytes != nullptr) *bytes = fs::file_size(out);
  fs::remove(out);
  if (status != 0) give_up(argv.at(1) + " failed");
  return wall;
}

double median_of(int n, const std::function<double()>& measure) {
  std::vector<double> values;
  for (int i = 0; i < n; ++i) values.push_back(measure());
  return median(values);
}

double resident_mib(long pid) {
  std::ifstream in(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(in, line);)
    if (line.rfind("VmRSS:", 0) == 0) return std::strtod(line.c_str() + 6, nullptr) / 1024;
  return 0;
}

int measure(const fs::path& build, const std::string& out) {
  std::string name = "/tmp/takt-bench.XXXXXX";
  const fs::path folder = ::mkdtemp(name.data());
  const std::string takt = (build / "takt").string();
  const Server server = serve(build, folder, 1);
  std::this_thread::sleep_for(std::chrono::seconds(3));
  const double controller = resident_mib(server.pid);
  const double agent = resident_mib(only_child(server.pid));

  Client client(server.socket);
  const StartTimes starts = measure_starts(client, folder, fs::read_symlink("/proc/self/exe"));

  double version_cpu = 0;
  version_cpu = median_of(50, [&] {
    double cpu = 0;
    run_ms({takt, "--version"}, &cpu);
    return cpu;
  });

  std::vector<std::string> numbers;
  for (int i = 0; i < 10'000; ++i) numbers.push_back(std::to_string(i));
  const std::string first =
      submit(client, submission({"/bin/sleep", "1000"}, folder, 1, {{"n", numbers}}));
  std::size_t table_bytes = 0;
  std::size_t json_bytes = 0;
  const double table = median_of(15, [&] { return run_ms({takt, "ps"}, nullptr, &table_bytes); });
  const double json = median_of(15, [&] {
    return run_ms({takt, "ps", "--json"}, nullptr, &json_bytes);
  });
  run_ms({takt, "cancel", "--all"});
  await_end(client, first);
  clean_up(server, folder);

  const std::string result = fmt::format(
      "{{\"what\": \"product\", \"submit_to_running_ms\": {:.2f}, \"bare_fork_exec_ms\": {:.2f}, "
      "\"ratio\": {:.2f}, \"ps_10000_jobs_ms\": {:.1f}, \"ps_10000_jobs_limit_ms\": 100, "
      "\"ps_10000_jobs_bytes\": {}, \"ps_json_10000_jobs_ms\": {:.1f}, "
      "\"ps_json_10000_jobs_bytes\": {}, \"version_cpu_ms\": {:.2f}, \"version_cpu_limit_ms\": 10, "
      "\"controller_resident_mib\": {:.1f}, \"agent_resident_mib\": {:.1f}, "
      "\"resident_mib\": {:.1f}, \"resident_limit_mib\": 40}}\n",
      starts.takt_ms, starts.bare_ms, starts.takt_ms / starts.bare_ms, table, table_bytes, json,
      json_bytes, version_cpu, controller, agent, controller + agent);
  fmt::print("{}", result);
  if (!out.empty()) std::ofstream(out) << result;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 2 && words[0] == "--stamp") return stamp(argv[2]);
  std::string out;
  if (words.size() == 2 && words[0] == "--out") out = words[1];
  const fs::path self = fs::read_symlink("/proc/self/exe");
  return measure(self.parent_path().parent_path(), out);
}
