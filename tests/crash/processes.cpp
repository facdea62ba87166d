#include "crash/processes.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace takt::crash {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool read_process(const std::string& folder, int pid, Process& process) {
  const std::string place = "/proc/" + std::to_string(pid);
  const std::string command = text_of(place + "/cmdline");
  if (command.find(folder) == std::string::npos &&
      text_of(place + "/environ").find(folder) == std::string::npos)
    return false;
  process.pid = pid;
  std::istringstream words(command);
  for (std::string word; std::getline(words, word, '\0');) process.words.push_back(word);
  const std::string stat = text_of(place + "/stat");
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return false;
  char state = '?';
  std::istringstream(stat.substr(name_end + 1)) >> state >> process.parent;
  return state != 'Z';
}

bool is_shim(const Process& process) {
  return process.words.size() == 2 && process.words[0] == "takt-shim";
}

}  // namespace

std::vector<Process> processes_of(const std::string& folder) {
  std::vector<Process> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const int pid = std::stoi(name);
    Process process;
    if (pid != ::getpid() && read_process(folder, pid, process)) found.push_back(process);
  }
  return found;
}

std::vector<Shim> shims_of(const std::string& folder) {
  std::vector<Shim> shims;
  const std::vector<Process> all = processes_of(folder);
  for (const Process& process : all) {
    if (!is_shim(process)) continue;
    bool forked_by_shim = false;
    for (const Process& other : all)
      forked_by_shim = forked_by_shim || (other.pid == process.parent && is_shim(other));
    if (forked_by_shim) continue;
    shims.push_back({process.pid, std::filesystem::path(process.words[1]).filename()});
  }
  return shims;
}

int agent_of(const std::string& folder, long server) {
  for (const Process& process : processes_of(folder))
    if (process.parent == server && process.words.size() > 1 && process.words[1] == "agent")
      return process.pid;
  return 0;
}

bool kill_process(const std::string& folder, int pid) {
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U));
  if (fd < 0) return false;
  // Only now is it certain that the number goes on to mean the same process.
  Process process;
  const bool sent = read_process(folder, pid, process) &&
                    ::syscall(SYS_pidfd_send_signal, fd, SIGKILL, nullptr, 0U) == 0;
  ::close(fd);
  return sent;
}

}  // namespace takt::crash
