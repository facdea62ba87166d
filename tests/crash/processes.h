#pragma once
// The processes of one private takt, found by the folder that they all know of.
#include <string>
#include <vector>

namespace takt::crash {

struct Process {
  int pid = 0;
  int parent = 0;
  std::vector<std::string> words;  // its command line
};

// All processes that have the folder in their command line or their environment, without this one.
std::vector<Process> processes_of(const std::string& folder);
// Shims, with the attempt ("17.1") that they are there for. The jobs that they have forked and that
// are not yet executed are none.
struct Shim {
  int pid = 0;
  std::string attempt;
};
std::vector<Shim> shims_of(const std::string& folder);
// The agent that `server` has started; 0: none.
int agent_of(const std::string& folder, long server);
// SIGKILL, if the pid still is a process of the folder. True: sent.
bool kill_process(const std::string& folder, int pid);

}  // namespace takt::crash
