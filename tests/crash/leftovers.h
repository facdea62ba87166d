#pragma once
// What one private takt has left behind when all its jobs are over and its server was stopped.
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "crash/checks.h"

namespace takt::crash {

class Leftovers {
 public:
  // Of the takt whose state/, run/ and witnesses are in the folder; the host as it is now.
  explicit Leftovers(std::filesystem::path folder);
  // Remembers the cgroups of the attempts that are on record at present.
  void look();
  // Processes, cgroups, mounts and files. `jobs`: what `takt ps --all --limit 0 --json` showed;
  // null: what jobs printed is not looked at.
  Violations find(const nlohmann::json* jobs) const;
  bool records_left() const;
  // After a campaign that went wrong.
  void remove_cgroups() const;

 private:
  void find_processes(Violations& found) const;
  std::vector<std::filesystem::path> cgroups() const;
  void find_files(const nlohmann::json* jobs, Violations& found) const;

  const std::filesystem::path folder_;
  const std::string mounts_;
  std::set<std::filesystem::path> cgroup_parents_;
  std::set<std::string> cgroup_marks_;  // with which takt tells its own from another's
};

}  // namespace takt::crash
