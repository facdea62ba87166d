#pragma once
// What /proc tells about processes and who descends from whom. Shared by launcher and shim; no C++
// run-time library.
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace takt::shim {

// Of /proc/PID/stat (man 5 proc): fields 1, 3, 4, 6, 22.
struct ProcessStat {
  pid_t pid = 0;
  char state = '?';
  pid_t parent = 0;
  pid_t session = 0;
  std::int64_t start =
      0;  // clock ticks since boot: with pid and boot id it names a process for ever
};

// False: not the text of a stat file. The program's name (field 2) may hold blanks and brackets.
bool parse_stat(std::string_view text, ProcessStat& stat);
// False: no such process.
bool read_stat(pid_t pid, ProcessStat& stat);
// The start time of `pid`, or 0 when there is no such process.
std::int64_t start_of(pid_t pid);

// True while the process that began at `start` lives; a zombie does not.
bool is_running(pid_t pid, std::int64_t start);

// A growing list of pids in memory of malloc.
class PidList {
 public:
  PidList() = default;
  ~PidList();
  PidList(const PidList&) = delete;
  PidList& operator=(const PidList&) = delete;
  void add(pid_t pid);  // each once
  bool has(pid_t pid) const;
  const pid_t* begin() const { return data_; }
  const pid_t* end() const { return data_ + size_; }
  std::size_t size() const { return size_; }

 private:
  pid_t* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t room_ = 0;
};

// All processes of the host at one moment, in memory of malloc.
class ProcessTable {
 public:
  ProcessTable();  // reads /proc
  ~ProcessTable();
  ProcessTable(const ProcessTable&) = delete;
  ProcessTable& operator=(const ProcessTable&) = delete;
  // All living descendants of `ancestor` (zombies left out), the ancestor not included.
  void add_descendants(pid_t ancestor, PidList& pids) const;
  // What is left of a job whose shim is gone: its main process if that still is the one that began
  // at `start`, its session, and all that descends from these. (The kernel gives a number to no
  // other process while a session of that number lives.)
  void add_orphans(pid_t main, std::int64_t start, PidList& pids) const;

 private:
  void add_children(PidList& family, PidList& pids) const;
  ProcessStat* rows_ = nullptr;
  std::size_t size_ = 0;
};

// All pids named in the cgroup.procs of a cgroup folder. False: the folder is not there.
bool add_members(const char* cgroup_folder, PidList& pids);

// The id of this boot, 36 characters and a NUL, or "" when the kernel does not tell.
struct BootId {
  char text[40] = "";
};
BootId read_boot_id();

}  // namespace takt::shim
