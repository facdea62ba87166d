// The helpers of support.h.
#include "support.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace takt::emulator::testing {

Program::Program(std::vector<std::string> words, std::vector<std::string> environment) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<char*> variables;
  for (auto& variable : environment) variables.push_back(variable.data());
  for (char** v = environ; *v != nullptr; ++v) variables.push_back(*v);
  variables.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    execve(arguments[0], arguments.data(), variables.data());
    _exit(127);
  }
  close(ends[1]);
  pipe_ = ends[0];
}

Program::~Program() {
  if (running()) signal(SIGKILL);
  status();
  close(pipe_);
}

void Program::signal(int number) const { kill(pid_, number); }

bool Program::running() {
  if (!reaped_ && waitpid(pid_, &status_, WNOHANG) == pid_) reaped_ = true;
  return !reaped_;
}

int Program::status() {
  if (!reaped_) {
    waitpid(pid_, &status_, 0);
    reaped_ = true;
  }
  return status_;
}

int Program::exit_code() {
  int ended = status();
  return WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
}

std::string Program::output() {
  status();
  char buffer[4096];
  for (ssize_t n = read(pipe_, buffer, sizeof buffer); n > 0;
       n = read(pipe_, buffer, sizeof buffer))
    said_.append(buffer, static_cast<std::size_t>(n));
  return said_;
}

void FleetTest::SetUp() {
  char name[] = "/tmp/emulator-test-XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  folder_ = name;
  setenv("TAKT_EMULATOR_DIR", sockets().c_str(), 1);
  setenv("TAKT_EMULATOR_IDLE", "0.2", 1);
  unsetenv("TAKT_EMULATED_FLEET");
  unsetenv("CUDA_VISIBLE_DEVICES");
}

// The kernel tells who listens.
pid_t FleetTest::daemon_pid() const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string path = sockets() + "/driver.sock";
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  ucred peer{};
  peer.pid = -1;
  socklen_t size = sizeof peer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
  close(fd);
  return peer.pid;
}

bool FleetTest::daemon_is_gone() const { return !std::filesystem::exists(sockets()); }

void FleetTest::TearDown() {
  EXPECT_TRUE(eventually([&] { return daemon_is_gone(); })) << "the daemon left " << sockets();
  std::filesystem::remove_all(folder_);
}

void FleetTest::use_fleet(const std::string& yaml) {
  std::string path = folder_ + "/fleet.yaml";
  std::ofstream(path) << yaml;
  use_selector(path);
}

void FleetTest::use_selector(const std::string& selector) {
  setenv("TAKT_EMULATED_FLEET", selector.c_str(), 1);
}

std::vector<std::string> load(std::vector<std::string> options) {
  options.insert(options.begin(), {TAKT_LOAD, "--quiet"});
  return options;
}

}  // namespace takt::emulator::testing
