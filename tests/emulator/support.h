#pragma once
// What the emulator's tests share: a fleet of their own, programs, and waiting with a deadline.
#include <gtest/gtest.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace takt::emulator::testing {

// True as soon as `happened` is; false after `seconds`.
inline bool eventually(const std::function<bool()>& happened, double seconds = 10) {
  auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!happened()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

// A child process of the test; ended and reaped at the latest by the destructor.
class Program {
 public:
  // `environment` is added to the test's own ("NAME=value").
  explicit Program(std::vector<std::string> words, std::vector<std::string> environment = {});
  ~Program();
  Program(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  bool running();
  int status();          // waits for the end; the wait status
  int exit_code();       // waits for the end; -1 where a signal ended it
  std::string output();  // of both streams, until the end

 private:
  pid_t pid_ = -1;
  int pipe_ = -1;
  int status_ = -1;
  bool reaped_ = false;
  std::string said_;
};

// A fleet file in a folder of its own, named to library and takt-load by the environment. At the
// end the daemon has ended by itself and has left nothing in its socket folder.
class FleetTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  void use_fleet(const std::string& yaml);         // writes a file and names it
  void use_selector(const std::string& selector);  // names an existing one
  std::string sockets() const { return folder_ + "/s"; }
  std::string folder() const { return folder_; }
  bool daemon_is_gone() const;
  pid_t daemon_pid() const;  // -1: none runs

 private:
  std::string folder_;
};

std::vector<std::string> load(std::vector<std::string> options);  // takt-load --quiet ...

}  // namespace takt::emulator::testing
