#pragma once
// The launch order as the shim reads it. All strings point into one blob and end in NUL.
#include <sys/types.h>

#include <cstdint>

#include "edge/launch/shim/fields.h"

namespace takt::shim {

inline constexpr int cgroups_max = 8;

struct Spec {
  Blob blob;
  const char* attempt = "";
  const char* generation = "0";
  uid_t uid = 0;
  gid_t gid = 0;
  const char* user = "";
  bool switch_user = false;  // we are root: become `uid` with `groups`
  gid_t* groups = nullptr;
  std::size_t groups_size = 0;
  char** argv = nullptr;  // end in a null pointer, as execve wants them
  char** env = nullptr;
  std::size_t argv_size = 0;
  std::size_t env_size = 0;
  const char* workdir = "/";
  const char* stdout_path = "";
  const char* stderr_path = "";
  const char* logs_dir = "";       // stdout/stderr that begin with it are opened as the shim's user
  std::int64_t log_bytes_max = 0;  // of each of them; 0: no bound
  std::int64_t leftover_grace_us = 0;
  std::int64_t kill_patience_us = 10'000'000;
  // cgroup folders; absolute, "" where the host has none
  const char* cgroups[cgroups_max] = {};  // all that the job joins
  int cgroups_size = 0;
  const char* members = "";    // the one whose cgroup.procs is the list of the attempt's processes
  bool kill_file = false;      // `members` has cgroup.kill
  const char* memory_v1 = "";  // where memory use and OOM kills are counted
  const char* memory_v2 = "";
  const char* cpu_v1 = "";  // where CPU time is counted
  const char* cpu_v2 = "";
};

// Reads `spec` of a record folder. Null: fine; else the sentence why it cannot be used.
const char* read_spec(int folder, Spec& spec);
void free_spec(Spec& spec);
// The value of `name` in the job's environment, or null.
const char* find_env(const Spec& spec, const char* name);

}  // namespace takt::shim
