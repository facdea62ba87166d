#pragma once
// One function a command, with the options it takes as plain values. options.cpp reads the command
// line into them; each command is in a file of its own name.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace takt::cli {

// What `run` and `submit` may set beside the file; the words of docs/job-spec.md.
struct JobFlags {
  std::optional<int> gpus;
  std::string memory;   // on one device
  std::string compute;  // "30%"
  std::vector<std::string> types;
  std::string tier;
  std::string name;
  std::string isolation;
  std::string host_memory;
  std::optional<int> cpus;
  std::string time;
  std::string kill_after;
  std::vector<std::string> env;  // NAME=VALUE
  bool wait_for_capacity = false;
};

struct ServeFlags {
  bool user = false;
  std::string state_dir;
  std::string runtime_dir;
  std::string socket_path;
  std::string policy_file;
  std::string sample = "1s";
  bool accept_loss = false;
};
int serve(const ServeFlags& flags);

struct AgentFlags {
  int fd = -1;
  std::string records_dir;
  std::string logs_dir;
  std::string sample = "1s";
};
int agent(const AgentFlags& flags);

struct RunFlags {
  JobFlags job;
  bool detach = false;
  std::string reconnect = "5m";  // waits so long for a server that is away
  std::vector<std::string> command;
};
int run(const RunFlags& flags);

struct SubmitFlags {
  JobFlags job;
  std::string file;
  std::vector<std::string> arguments;
  bool dry_run = false;
  bool json = false;
};
int submit(const SubmitFlags& flags);

struct PsFlags {
  bool all = false;
  bool json = false;
  std::string user;
  std::string state;
  std::optional<int> limit;
};
int ps(const PsFlags& flags);

int why(const std::string& id, bool json);
int hold(const std::vector<std::string>& ids, bool json);
int release(const std::vector<std::string>& ids, bool json);

struct LogsFlags {
  std::string id;
  bool follow = false;
  std::string stream = "both";
  std::string reconnect = "5m";
};
int logs(const LogsFlags& flags);

int cancel(const std::vector<std::string>& ids, bool all, bool json);
int gpus(bool json);
int workloads(bool json);
int summary();
int doctor(bool json);
int backup(const std::string& file);

struct SimulateFlags {
  std::uint64_t seed = 1;
  std::uint64_t seeds = 1;
  std::optional<int> steps;
  std::string scenario;  // a file
  bool list = false;
  bool trace = false;
};
int simulate(const SimulateFlags& flags);

struct TopFlags {
  bool until_idle = false;  // until nothing but services is unfinished
  bool once = false;
  std::string interval = "1s";
  std::string reconnect = "5m";
};
int top(const TopFlags& flags);

}  // namespace takt::cli
