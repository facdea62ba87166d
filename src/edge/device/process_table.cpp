#include "edge/device/process_table.h"

#include <fmt/core.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <utility>

namespace takt::device {
namespace {

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

// The number after `key` at the start of a line of `text`.
std::optional<std::uint64_t> number_after(const std::string& text, const std::string& key) {
  std::size_t at = text.compare(0, key.size(), key) == 0 ? 0 : text.find("\n" + key);
  if (at == std::string::npos) return std::nullopt;
  at = text.find_first_of("0123456789", at + key.size());
  if (at == std::string::npos) return std::nullopt;
  std::uint64_t value = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), value);
  return value;
}

// proc(5): "pid (comm) state ppid ..."; comm may hold spaces and parentheses, so it ends at the
// last one. Field 4 is the parent, field 22 the start in clock ticks after boot.
bool parse_stat(const std::string& text, ProcessInfo& info) {
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return false;
  info.name = text.substr(open + 1, close - open - 1);
  std::istringstream rest(text.substr(close + 1));
  std::string field;
  for (int number = 3; number <= 22; ++number) {
    if (!(rest >> field)) return false;
    if (number == 4) info.parent = std::atoll(field.c_str());
    if (number == 22) info.start_ticks = std::strtoull(field.c_str(), nullptr, 10);
  }
  return true;
}

class ProcProcessTable final : public ProcessTable {
 public:
  explicit ProcProcessTable(std::string root) : root_(std::move(root)) {
    const auto stat = read_file(root_ + "/stat");
    boot_seconds_ = stat ? number_after(*stat, "btime ") : std::nullopt;
    const long ticks = sysconf(_SC_CLK_TCK);
    ticks_per_second_ = ticks > 0 ? ticks : 100;
  }

  Measured<ProcessInfo> find(std::int64_t pid) const override {
    const std::string folder = fmt::format("{}/{}", root_, pid);
    ProcessInfo info;
    info.pid = pid;
    const auto stat = read_file(folder + "/stat");
    const auto status = read_file(folder + "/status");
    const auto uid = status ? number_after(*status, "Uid:") : std::nullopt;
    if (!stat || !uid || !parse_stat(*stat, info))
      return missing(MissingKind::not_found,
                     fmt::format("no process {} in {} (it ended, or it belongs to another PID "
                                 "namespace)",
                                 pid, root_));
    info.uid = static_cast<std::uint32_t>(*uid);
    info.started =
        Instant{static_cast<std::int64_t>(boot_seconds_.value_or(0)) * 1'000'000 +
                static_cast<std::int64_t>(info.start_ticks) * 1'000'000 / ticks_per_second_};
    return info;
  }

  std::vector<ProcessInfo> snapshot() const override {
    std::vector<ProcessInfo> all;
    std::error_code error;
    for (std::filesystem::directory_iterator at(root_, error), end; !error && at != end;
         at.increment(error)) {
      const std::string name = at->path().filename();
      std::int64_t pid = 0;
      const auto [stop, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
      if (bad != std::errc() || stop != name.data() + name.size()) continue;
      if (auto info = find(pid)) all.push_back(*std::move(info));
    }
    std::sort(all.begin(), all.end(),
              [](const ProcessInfo& a, const ProcessInfo& b) { return a.pid < b.pid; });
    return all;
  }

  std::string user_name(std::uint32_t uid) const override {
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = names_.find(uid); known != names_.end()) return known->second;
    }
    std::array<char, 4096> buffer{};
    passwd entry{};
    passwd* found = nullptr;
    std::string name = std::to_string(uid);
    if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
      name = entry.pw_name;
    const std::lock_guard lock(mutex_);
    return names_.emplace(uid, name).first->second;
  }

 private:
  std::string root_;
  std::optional<std::uint64_t> boot_seconds_;
  std::int64_t ticks_per_second_ = 100;
  mutable std::mutex mutex_;
  mutable std::map<std::uint32_t, std::string> names_;  // a directory service may be slow
};

}  // namespace

std::shared_ptr<const ProcessTable> proc_process_table(std::string root) {
  return std::make_shared<ProcProcessTable>(std::move(root));
}

std::vector<std::int64_t> ancestors(const std::vector<ProcessInfo>& processes, std::int64_t pid) {
  std::map<std::int64_t, std::int64_t> parent_of;
  for (const ProcessInfo& process : processes) parent_of[process.pid] = process.parent;
  std::vector<std::int64_t> found;
  // A snapshot is not taken in one instant, so a cycle is possible when a pid was used again.
  std::set<std::int64_t> seen{pid};
  for (auto at = parent_of.find(pid); at != parent_of.end(); at = parent_of.find(found.back())) {
    if (at->second <= 0 || !seen.insert(at->second).second) break;
    found.push_back(at->second);
  }
  return found;
}

std::vector<std::int64_t> descendants(const std::vector<ProcessInfo>& processes, std::int64_t pid) {
  std::multimap<std::int64_t, std::int64_t> children_of;
  for (const ProcessInfo& process : processes) children_of.emplace(process.parent, process.pid);
  std::set<std::int64_t> found;
  std::vector<std::int64_t> open{pid};
  while (!open.empty()) {
    const std::int64_t parent = open.back();
    open.pop_back();
    const auto [first, last] = children_of.equal_range(parent);
    for (auto child = first; child != last; ++child)
      if (child->second != pid && found.insert(child->second).second) open.push_back(child->second);
  }
  return {found.begin(), found.end()};
}

}  // namespace takt::device
