#include "crash/leftovers.h"

#include <fmt/core.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "crash/processes.h"

namespace takt::crash {
namespace {

namespace fs = std::filesystem;
using Kind = Violation::Kind;

// The emulator's daemon ends a second after its last client.
constexpr int kPatienceSeconds = 15;

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) entries.push_back(entry.path());
  return entries;
}

}  // namespace

Leftovers::Leftovers(fs::path folder)
    : folder_(std::move(folder)), mounts_(text_of("/proc/self/mountinfo")) {}

void Leftovers::look() {
  for (const fs::path& state : entries_of(folder_ / "run/jobs"))
    for (const fs::path& record : entries_of(state)) {
      std::istringstream fields(text_of(record / "job"));
      for (std::string line; std::getline(fields, line);) {
        if (line.rfind("cgroup=", 0) != 0) continue;
        const fs::path cgroup = line.substr(7);
        cgroup_parents_.insert(cgroup.parent_path());
        const std::string name = cgroup.filename();
        if (const auto at = name.find('-'); at != std::string::npos)
          cgroup_marks_.insert(name.substr(at));
      }
    }
}

Violations Leftovers::find(const nlohmann::json* jobs) const {
  Violations found;
  find_processes(found);
  for (const fs::path& cgroup : cgroups())
    found.push_back({Kind::left, "cgroup " + cgroup.string() + " is left behind"});
  if (text_of("/proc/self/mountinfo") != mounts_)
    found.push_back({Kind::left, "the mounts of this host are others than before"});
  find_files(jobs, found);
  return found;
}

void Leftovers::find_processes(Violations& found) const {
  (void)endtoend::eventually([&] { return processes_of(folder_).empty(); }, kPatienceSeconds);
  for (const Process& process : processes_of(folder_)) {
    std::string command;
    for (const std::string& word : process.words) command += word + " ";
    found.push_back(
        {Kind::left, fmt::format("process {} is left behind: {}", process.pid, command)});
  }
}

std::vector<fs::path> Leftovers::cgroups() const {
  std::vector<fs::path> left;
  for (const fs::path& parent : cgroup_parents_)
    for (const fs::path& entry : entries_of(parent))
      for (const std::string& mark : cgroup_marks_)
        if (entry.filename().string().find(mark) != std::string::npos) left.push_back(entry);
  return left;
}

void Leftovers::remove_cgroups() const {
  for (const fs::path& folder : cgroups()) ::rmdir(folder.c_str());
}

bool Leftovers::records_left() const {
  for (const fs::path& state : entries_of(folder_ / "run/jobs"))
    if (!entries_of(state).empty()) return true;
  return false;
}

void Leftovers::find_files(const nlohmann::json* jobs, Violations& found) const {
  const auto left = [&](const fs::path& path) {
    found.push_back({Kind::left, path.string() + " is left behind"});
  };
  for (const fs::path& state : entries_of(folder_ / "run/jobs"))
    for (const fs::path& record : entries_of(state)) left(record);
  for (const fs::path& entry : entries_of(folder_ / "run"))
    if (entry.filename() != "jobs" && entry.filename() != "lock") left(entry);
  if (fs::exists(folder_ / "takt.sock")) left(folder_ / "takt.sock");
  std::set<std::string> expected = {"logs"};
  for (const std::string file : {"journal", "archive", "telemetry"})
    for (const std::string end : {".db", ".db.lock"}) expected.insert(file + end);
  expected.insert("journal.db.tail");
  for (const fs::path& entry : entries_of(folder_ / "state"))
    if (expected.count(entry.filename()) == 0) left(entry);
  if (jobs == nullptr) return;
  std::set<std::string> logs;
  for (const nlohmann::json& job : *jobs)
    for (int attempt = 1; attempt <= job["attempts"].get<int>(); ++attempt)
      for (const char* end : {"out", "err"})
        logs.insert(fmt::format("{}.{}.{}", job["id"].get<long>(), attempt, end));
  for (const fs::path& entry : entries_of(folder_ / "state/logs"))
    if (logs.count(entry.filename()) == 0) left(entry);
}

}  // namespace takt::crash
