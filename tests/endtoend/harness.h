#pragma once
// A takt of its own for one test: private folders, a private emulated fleet, a private server. What
// it started is ended and removed with it.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace takt::endtoend {

struct Outcome {
  int code = -1;  // 128 + signal when it was killed
  std::string out;
  std::string err;
};

// Runs a program to its end (killed after `limit_seconds`) with the environment on top of ours.
Outcome run_program(const std::vector<std::string>& argv,
                    const std::map<std::string, std::string>& environment, int limit_seconds = 60,
                    std::optional<unsigned> uid = std::nullopt, const std::string& folder = "");

// True as soon as `holds` is; false after `limit_seconds`.
bool eventually(const std::function<bool()>& holds, int limit_seconds = 30);

// A program that runs beside the test; killed with it.
class Beside {
 public:
  // What it prints goes into files of this folder.
  Beside(std::vector<std::string> argv, const std::map<std::string, std::string>& environment,
         const std::filesystem::path& folder);
  ~Beside();
  Beside(Beside&&) = delete;

  std::string out() const;  // so far
  std::string err() const;
  void signal(int number) const;
  // Its exit code (128 + signal); -1 when it has not ended in time.
  int wait(int limit_seconds = 30);
  long pid() const { return pid_; }

 private:
  std::filesystem::path out_;
  std::filesystem::path err_;
  int pid_ = 0;
  int code_ = -1;
};

class Takt {
 public:
  // A fleet from YAML text (emulator/README.md).
  explicit Takt(const std::string& fleet_yaml);
  // A fleet from a file: YAML, `nvidia-smi -q -x` or a text capture (with "#load" perhaps).
  static Takt from_file(const std::string& fleet);
  ~Takt();
  Takt(Takt&&) = default;

  // Starts `takt serve` and waits until it takes commands. More arguments may be given.
  void serve(const std::vector<std::string>& more = {});
  // Expects the server to refuse to start.
  Outcome serve_expecting_refusal(const std::vector<std::string>& more = {});
  void kill_server();  // SIGKILL: no chance to tidy up
  void stop_server();  // SIGTERM, and waits
  bool serving() const { return server_ > 0; }
  long server_pid() const { return server_; }

  Outcome takt(const std::vector<std::string>& arguments, int limit_seconds = 60) const;
  Outcome takt_as(unsigned uid, const std::vector<std::string>& arguments) const;
  Beside beside(const std::vector<std::string>& arguments) const;
  nlohmann::json json(std::vector<std::string> arguments) const;  // adds --json, expects exit 0
  nlohmann::json job(const std::string& id) const;
  std::string state_of(const std::string& id) const;
  // Submits `takt run -d` with these arguments; the job's number.
  std::string start(const std::vector<std::string>& arguments) const;
  std::string write(const std::string& name, const std::string& text) const;

  std::filesystem::path folder() const { return folder_; }
  std::string server_log() const;
  std::map<std::string, std::string> environment() const { return environment_; }
  bool all_users = false;  // serve as root's server for everybody (needs root)

  static std::string program(const std::string& name);  // in the build folder

 private:
  Takt();
  std::vector<std::string> serve_command(const std::vector<std::string>& more) const;
  std::filesystem::path folder_;
  std::map<std::string, std::string> environment_;
  long server_ = 0;
};

// Four GPUs: what most tests need.
std::string four_gpus();

}  // namespace takt::endtoend
