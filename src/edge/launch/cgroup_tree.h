#pragma once
// The cgroups of attempts: `<own cgroup>/takt/<name>` in each hierarchy that is of use, by
// explicit absolute paths. Works with v1, v2 and hybrid hosts; a cgroup2 mount without controllers
// still lists and kills processes. Mounts of the host are never changed.
//
// Layouts: man 7 cgroups, Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst of the kernel.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/quantities.h"
#include "core/base/result.h"

namespace takt::launch {

// One hierarchy and our place in it.
struct CgroupHierarchy {
  bool v2 = false;
  std::vector<std::string> controllers;  // v1: of the mount; v2: what our cgroup may hand on
  std::string own;                       // absolute folder of our own cgroup
  bool operator==(const CgroupHierarchy&) const = default;
};

// From the texts of /proc/self/cgroup and /proc/self/mountinfo. Hierarchies whose mount does not
// show our cgroup are left out. `parent`: instead of our own place ("" keeps it). v2 controllers
// are not in these texts: they stay empty here.
std::vector<CgroupHierarchy> find_hierarchies(std::string_view self_cgroup,
                                              std::string_view mountinfo,
                                              const std::string& parent);

// What one attempt joins, and where its numbers are. Folders; "" where the host has none.
struct AttemptCgroups {
  std::vector<std::string> join;
  std::string members;     // its cgroup.procs lists the processes
  bool kill_file = false;  // members has cgroup.kill
  std::string memory_v1;
  std::string memory_v2;
  std::string cpu_v1;
  std::string cpu_v2;
  bool operator==(const AttemptCgroups&) const = default;
};

class CgroupTree {
 public:
  struct Options {
    std::string root;    // put in front of every path read or written: a fake host for tests
    std::string parent;  // see LauncherOptions::cgroup_parent
    bool enabled = true;
    // Fake hosts: puts into a new folder the files that the kernel would.
    std::function<void(const std::string& folder)> populate;
  };
  // Never fails: what cannot be used is told in notes().
  static std::unique_ptr<CgroupTree> open(const Options& options);
  // Removes the empty folders that it made above the attempts'.
  ~CgroupTree();
  CgroupTree(const CgroupTree&) = delete;
  CgroupTree& operator=(const CgroupTree&) = delete;

  // Makes the attempt's cgroups, under `name` or, where another agent has that, `name`-2 and so on;
  // `memory_limit` of 0: none. An error means that a limit would not be in force, and nothing is
  // left behind.
  Result<AttemptCgroups> create(const std::string& name, Bytes memory_limit) const;
  // The folders that were ever made for the attempt under `name` and are still there: also those of
  // an agent that was killed before it could write down where they are.
  std::vector<std::string> folders_of(const std::string& name) const;
  bool limits_memory() const { return memory_ >= 0; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  explicit CgroupTree(Options options) : options_(std::move(options)) {}
  int make_folder(const std::string& folder) const;
  int make_attempt_folder(const CgroupHierarchy& hierarchy, const std::string& name,
                          std::string& folder) const;
  bool prepare(CgroupHierarchy& hierarchy, std::string& problem);
  void prepare_controllers(CgroupHierarchy& hierarchy);
  bool leave_own_cgroup(const CgroupHierarchy& hierarchy);
  void choose();
  void tell(const std::string& problem);

  const Options options_;
  std::vector<CgroupHierarchy> hierarchies_;  // usable ones: `<own>/takt` is there and ours
  int members_ = -1;                          // indices into hierarchies_, or -1
  int memory_ = -1;
  int cpu_ = -1;
  bool moved_ = false;  // this process sits in `<own>/takt.self`
  std::vector<std::string> notes_;
};

// KILL to all in the cgroup at once; false where the kernel has no cgroup.kill.
bool kill_cgroup(const std::string& folder);
// Removes a cgroup and those that the job made below it. True when it is gone.
bool remove_cgroup(const std::string& folder);

}  // namespace takt::launch
