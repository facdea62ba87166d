#include "endtoend/harness.h"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "support/places.h"

extern char** environ;

namespace takt::endtoend {
namespace {

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& on_top) {
  std::vector<std::string> words;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string pair = *e;
    if (on_top.count(pair.substr(0, pair.find('='))) == 0) words.push_back(pair);
  }
  for (const auto& [name, value] : on_top) words.push_back(name + "=" + value);
  return words;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> list;
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

struct Started {
  pid_t pid = 0;
  int out = -1;
  int err = -1;
};

Started start_program(std::vector<std::string> argv, std::vector<std::string> environment,
                      std::optional<unsigned> uid, const std::string& folder) {
  int out[2];
  int err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) std::abort();
  auto words = pointers(argv);
  auto env = pointers(environment);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(::open("/dev/null", O_RDONLY), 0);
    ::dup2(out[1], 1);
    ::dup2(err[1], 2);
    if (!folder.empty() && ::chdir(folder.c_str()) != 0) ::_exit(126);
    if (uid && (::setgid(*uid) != 0 || ::setuid(*uid) != 0)) ::_exit(126);
    ::execve(words[0], words.data(), env.data());
    ::_exit(127);
  }
  ::close(out[1]);
  ::close(err[1]);
  return {pid, out[0], err[0]};
}

// Reads both pipes until they close or time is up.
void collect(const Started& started, Outcome& outcome, int limit_seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(limit_seconds);
  bool open[2] = {true, true};
  while (open[0] || open[1]) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    pollfd fds[2] = {{open[0] ? started.out : -1, POLLIN, 0},
                     {open[1] ? started.err : -1, POLLIN, 0}};
    ::poll(fds, 2, static_cast<int>(left.count()));
    for (int i = 0; i < 2; ++i) {
      if (fds[i].revents == 0) continue;
      char buffer[65536];
      const ssize_t n = ::read(fds[i].fd, buffer, sizeof buffer);
      if (n <= 0)
        open[i] = false;
      else
        (i == 0 ? outcome.out : outcome.err).append(buffer, static_cast<std::size_t>(n));
    }
  }
  ::close(started.out);
  ::close(started.err);
}

int exit_code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string read_all(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

Outcome run_program(const std::vector<std::string>& argv,
                    const std::map<std::string, std::string>& environment, int limit_seconds,
                    std::optional<unsigned> uid, const std::string& folder) {
  const Started started = start_program(argv, merged_environment(environment), uid, folder);
  Outcome outcome;
  collect(started, outcome, limit_seconds);
  int status = 0;
  if (::waitpid(started.pid, &status, WNOHANG) == 0) {
    // The pipes are closed or time is up: a moment for a clean end, then no more.
    if (!eventually([&] { return ::waitpid(started.pid, &status, WNOHANG) != 0; }, 2)) {
      ::kill(started.pid, SIGKILL);
      ::waitpid(started.pid, &status, 0);
    }
  }
  outcome.code = exit_code_of(status);
  return outcome;
}

bool eventually(const std::function<bool()>& holds, int limit_seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(limit_seconds);
  while (true) {
    if (holds()) return true;
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

Beside::Beside(std::vector<std::string> argv, const std::map<std::string, std::string>& environment,
               const std::filesystem::path& folder) {
  std::string name = (folder / "beside.XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) std::abort();
  out_ = std::filesystem::path(name) / "out";
  err_ = std::filesystem::path(name) / "err";
  std::vector<std::string> env = merged_environment(environment);
  auto words = pointers(argv);
  auto pairs = pointers(env);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(::open("/dev/null", O_RDONLY), 0);
    ::dup2(::open(out_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644), 1);
    ::dup2(::open(err_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644), 2);
    if (::chdir(folder.c_str()) != 0) ::_exit(126);
    ::execve(words[0], words.data(), pairs.data());
    ::_exit(127);
  }
}

Beside::~Beside() {
  if (code_ >= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::string Beside::out() const { return read_all(out_); }
std::string Beside::err() const { return read_all(err_); }
void Beside::signal(int number) const { ::kill(pid_, number); }

int Beside::wait(int limit_seconds) {
  int status = 0;
  if (code_ < 0 &&
      eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }, limit_seconds))
    code_ = exit_code_of(status);
  return code_;
}

std::string Takt::program(const std::string& name) {
  return ::takt::testing::build_folder() + "/" + name;
}

Takt::Takt() {
  std::string name = "/tmp/takt-endtoend.XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) std::abort();
  folder_ = name;
  std::filesystem::permissions(folder_, std::filesystem::perms(0755));
  environment_ = {{"TAKT_SOCKET", (folder_ / "takt.sock").string()},
                  {"TAKT_NVML", program("emulator/libnvidia-ml.so.1")},
                  {"PATH", ::takt::testing::build_folder() + ":/usr/bin:/bin"},
                  {"TZ", "UTC"}};
}

Takt::Takt(const std::string& fleet_yaml) : Takt() {
  environment_["TAKT_EMULATED_FLEET"] = write("fleet.yaml", fleet_yaml);
}

Takt Takt::from_file(const std::string& fleet) {
  Takt takt;
  takt.environment_["TAKT_EMULATED_FLEET"] = fleet;
  return takt;
}

Takt::~Takt() {
  if (folder_.empty()) return;
  if (serving()) {
    takt({"cancel", "--all"}, 20);
    EXPECT_TRUE(eventually([&] { return json({"ps"})["jobs"].empty(); }, 30)) << "jobs are left:\n"
                                                                              << takt({"ps"}).out;
    stop_server();
  }
  if (::testing::Test::HasFailure()) std::cerr << "server log:\n" << server_log() << "\n";
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::vector<std::string> Takt::serve_command(const std::vector<std::string>& more) const {
  std::vector<std::string> command = {program("takt"), "serve",
                                      "--state-dir",   (folder_ / "state").string(),
                                      "--runtime-dir", (folder_ / "run").string(),
                                      "--sample",      "200ms"};
  if (!all_users) command.push_back("--user");
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

void Takt::serve(const std::vector<std::string>& more) {
  std::vector<std::string> command = serve_command(more);
  std::vector<std::string> env = merged_environment(environment_);
  auto words = pointers(command);
  auto pairs = pointers(env);
  const std::string log = (folder_ / "serve.log").string();
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    ::dup2(::open("/dev/null", O_RDONLY), 0);
    ::dup2(fd, 1);
    ::dup2(fd, 2);
    ::execve(words[0], words.data(), pairs.data());
    ::_exit(127);
  }
  server_ = pid;
  ASSERT_TRUE(eventually([&] { return takt({"ps"}).code == 0; }, 20))
      << "the server does not answer:\n"
      << server_log();
}

Outcome Takt::serve_expecting_refusal(const std::vector<std::string>& more) {
  return run_program(serve_command(more), environment_, 20);
}

void Takt::kill_server() {
  ::kill(static_cast<pid_t>(server_), SIGKILL);
  ::waitpid(static_cast<pid_t>(server_), nullptr, 0);
  server_ = 0;
}

void Takt::stop_server() {
  ::kill(static_cast<pid_t>(server_), SIGTERM);
  int status = 0;
  const bool ended =
      eventually([&] { return ::waitpid(static_cast<pid_t>(server_), &status, WNOHANG) != 0; }, 20);
  EXPECT_TRUE(ended) << "the server did not stop";
  if (!ended) return kill_server();
  EXPECT_EQ(exit_code_of(status), 0) << server_log();
  server_ = 0;
}

Outcome Takt::takt(const std::vector<std::string>& arguments, int limit_seconds) const {
  std::vector<std::string> argv = {program("takt")};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return run_program(argv, environment_, limit_seconds, std::nullopt, folder_.string());
}

Outcome Takt::takt_as(unsigned uid, const std::vector<std::string>& arguments) const {
  // The build folder may be closed to other users: they get a copy where they can reach it.
  const std::filesystem::path copy = folder_ / "takt-for-all";
  if (!std::filesystem::exists(copy)) std::filesystem::copy_file(program("takt"), copy);
  std::vector<std::string> argv = {copy.string()};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return run_program(argv, environment_, 60, uid, "/tmp");
}

Beside Takt::beside(const std::vector<std::string>& arguments) const {
  std::vector<std::string> argv = {program("takt")};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return Beside(std::move(argv), environment_, folder_);
}

nlohmann::json Takt::json(std::vector<std::string> arguments) const {
  arguments.push_back("--json");
  const Outcome outcome = takt(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  auto document = nlohmann::json::parse(outcome.out, nullptr, false);
  EXPECT_FALSE(document.is_discarded()) << outcome.out.substr(0, 500);
  return document;
}

nlohmann::json Takt::job(const std::string& id) const { return json({"why", id}); }

std::string Takt::state_of(const std::string& id) const { return job(id)["state"]; }

std::string Takt::start(const std::vector<std::string>& arguments) const {
  std::vector<std::string> words = {"run", "-d"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const Outcome outcome = takt(words);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.out.substr(0, outcome.out.find('\n'));
}

std::string Takt::write(const std::string& name, const std::string& text) const {
  const std::filesystem::path path = folder_ / name;
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

std::string four_gpus() {
  return "gpus:\n  - {model: a100-80, count: 2}\n  - {model: l40s, count: 2}\n"
         "links:\n  - {between: [0, 1], kind: nvlink, count: 12}\n";
}

std::string Takt::server_log() const { return read_all(folder_ / "serve.log"); }

}  // namespace takt::endtoend
