#include "edge/launch/cgroup_tree.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "edge/launch/shim/fields.h"
#include "edge/launch/shim/processes.h"

namespace takt::launch {
namespace {

constexpr char tree_name[] = "takt";
// Where the agent's own processes go when their cgroup has to hand controllers on (v2 allows either
// processes or children with controllers).
constexpr char self_name[] = "takt.self";
constexpr int names_max = 100;
constexpr std::size_t proc_file_bytes_max = std::size_t{4} << 20;

std::optional<std::string> read_text(const std::string& path) {
  const shim::Blob blob = shim::read_whole(AT_FDCWD, path.c_str(), proc_file_bytes_max);
  if (blob.data == nullptr) return std::nullopt;
  std::string text(blob.text());
  std::free(blob.data);
  return text;
}

// Kernel files are there or not; they are never made here. Returns 0 or errno.
int write_text(const std::string& path, const std::string& text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = shim::write_all(fd, text);
  close(fd);
  return error;
}

std::vector<std::string> split(std::string_view text, std::string_view separators) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = text.find_first_of(separators);
    if (end != 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return words;
}

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// mountinfo writes blanks and backslashes in paths as \ooo.
std::string unescape(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool octal = text[i] == '\\' && i + 3 < text.size();
    if (octal) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                 (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

struct CgroupMount {
  bool v2 = false;
  std::string root;   // which cgroup is shown at ...
  std::string point;  // ... this folder
  std::vector<std::string> options;
};

// man 5 proc: id parent major:minor root point options [optional...] - type source super-options
std::optional<CgroupMount> parse_mount(const std::string& line) {
  const std::vector<std::string> words = split(line, " ");
  const auto dash = std::find(words.begin(), words.end(), "-");
  if (words.size() < 9 || words.end() - dash < 4) return std::nullopt;
  if (dash[1] != "cgroup" && dash[1] != "cgroup2") return std::nullopt;
  return CgroupMount{dash[1] == "cgroup2", unescape(words[3]), unescape(words[4]),
                     split(dash[3], ",")};
}

// The folder where `cgroup` is seen through the mount, or nothing.
std::optional<std::string> folder_of(const CgroupMount& mount, const std::string& cgroup) {
  const std::string root = mount.root == "/" ? "" : mount.root;
  if (cgroup.compare(0, root.size(), root) != 0) return std::nullopt;
  const std::string below = cgroup.substr(root.size());
  if (!below.empty() && below[0] != '/') return std::nullopt;
  if (below.find("/..") != std::string::npos) return std::nullopt;  // outside of our namespace
  return below == "/" ? mount.point : mount.point + below;
}

bool is_delegated(const std::string& folder) {
  char value[8] = "";
  for (const char* name : {"trusted.delegate", "user.delegate"}) {
    if (getxattr(folder.c_str(), name, value, sizeof value - 1) > 0 && value[0] == '1') return true;
  }
  return false;
}

}  // namespace

std::vector<CgroupHierarchy> find_hierarchies(std::string_view self_cgroup,
                                              std::string_view mountinfo,
                                              const std::string& parent) {
  std::vector<CgroupMount> mounts;
  for (const std::string& line : split(mountinfo, "\n")) {
    if (auto mount = parse_mount(line)) mounts.push_back(std::move(*mount));
  }
  std::vector<CgroupHierarchy> found;
  for (const std::string& line : split(self_cgroup, "\n")) {
    // hierarchy-id:controllers:path; v2 has no controllers here
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    CgroupHierarchy hierarchy;
    hierarchy.controllers = split(line.substr(first + 1, second - first - 1), ",");
    hierarchy.v2 = hierarchy.controllers.empty();
    const std::string path = parent.empty() ? line.substr(second + 1) : parent;
    for (const CgroupMount& mount : mounts) {
      const bool same =
          hierarchy.v2 ? mount.v2 : !mount.v2 && contains(mount.options, hierarchy.controllers[0]);
      const auto folder = same ? folder_of(mount, path) : std::nullopt;
      if (!folder) continue;
      hierarchy.own = *folder;
      found.push_back(hierarchy);
      break;
    }
  }
  return found;
}

std::unique_ptr<CgroupTree> CgroupTree::open(const Options& options) {
  std::unique_ptr<CgroupTree> tree(new CgroupTree(options));
  if (!options.enabled) {
    tree->tell("they are switched off");
    return tree;
  }
  const auto self_cgroup = read_text(options.root + "/proc/self/cgroup");
  const auto mountinfo = read_text(options.root + "/proc/self/mountinfo");
  if (!self_cgroup || !mountinfo) {
    tree->tell("/proc/self/cgroup or /proc/self/mountinfo cannot be read");
    return tree;
  }
  std::string problem = "no cgroup file system is mounted";
  for (CgroupHierarchy& hierarchy : find_hierarchies(*self_cgroup, *mountinfo, options.parent)) {
    hierarchy.own = options.root + hierarchy.own;
    // Started again from where an earlier agent had moved to: the tree is beside it.
    const std::string suffix = std::string("/") + self_name;
    if (hierarchy.own.ends_with(suffix)) {
      hierarchy.own.resize(hierarchy.own.size() - suffix.size());
    }
    const std::vector<std::string> useful = {"memory", "pids", "cpuacct", "freezer"};
    const bool of_use =
        hierarchy.v2 || std::any_of(useful.begin(), useful.end(), [&](const std::string& name) {
          return contains(hierarchy.controllers, name);
        });
    if (of_use && tree->prepare(hierarchy, problem)) tree->hierarchies_.push_back(hierarchy);
  }
  tree->choose();
  tree->tell(problem);
  return tree;
}

// Returns 0 or errno.
int CgroupTree::make_folder(const std::string& folder) const {
  if (mkdir(folder.c_str(), 0755) != 0) return errno;
  if (options_.populate) options_.populate(folder);
  return 0;
}

// A name that exists is never shared: it is another agent's, or left over from one.
int CgroupTree::make_attempt_folder(const CgroupHierarchy& hierarchy, const std::string& name,
                                    std::string& folder) const {
  const std::string above = hierarchy.own + "/" + tree_name;
  int error = EEXIST;
  for (int i = 1; i <= names_max && (error == EEXIST || error == ENOENT); ++i) {
    // Another agent may have removed the empty tree: it is made again.
    if (make_folder(above) == 0 && hierarchy.v2) {
      for (const std::string& controller : hierarchy.controllers) {
        (void)write_text(above + "/cgroup.subtree_control", "+" + controller);
      }
    }
    folder = above + "/" + name + (i == 1 ? "" : fmt::format("-{}", i));
    error = make_folder(folder);
  }
  return error;
}

// Makes `<own>/takt` and hands it what it needs. False: no rights there.
bool CgroupTree::prepare(CgroupHierarchy& hierarchy, std::string& problem) {
  const std::string folder = hierarchy.own + "/" + tree_name;
  const int error = make_folder(folder);
  if (error != 0 && error != EEXIST) {
    problem = fmt::format("{} cannot be made: {}", folder, std::strerror(error));
    return false;
  }
  if (access((folder + "/cgroup.procs").c_str(), W_OK) != 0) {
    problem = fmt::format("{}/cgroup.procs cannot be written: {}", folder, std::strerror(errno));
    return false;
  }
  if (hierarchy.v2) prepare_controllers(hierarchy);
  return true;
}

void CgroupTree::prepare_controllers(CgroupHierarchy& hierarchy) {
  const std::string below = hierarchy.own + "/" + tree_name;
  const auto offered = read_text(hierarchy.own + "/cgroup.controllers");
  const std::vector<std::string> all = split(offered.value_or(""), " \n");
  for (const char* name : {"memory", "pids"}) {
    if (!contains(all, name)) continue;
    const std::string order = std::string("+") + name;
    int error = write_text(hierarchy.own + "/cgroup.subtree_control", order);
    if (error == EBUSY && leave_own_cgroup(hierarchy)) {
      error = write_text(hierarchy.own + "/cgroup.subtree_control", order);
    }
    if (error == 0) error = write_text(below + "/cgroup.subtree_control", order);
    if (error == 0) {
      hierarchy.controllers.push_back(name);
    } else if (std::string_view(name) == "memory") {
      notes_.push_back(fmt::format(
          "memory limits of jobs are not in force: the cgroup {} cannot hand on its memory "
          "controller "
          "({}): start takt as a systemd service with Delegate=yes, or in a cgroup of its own",
          hierarchy.own, std::strerror(error)));
    }
  }
}

// Only from a cgroup that is ours: delegated by systemd, or without anybody else in it.
bool CgroupTree::leave_own_cgroup(const CgroupHierarchy& hierarchy) {
  shim::PidList pids;
  shim::add_members(hierarchy.own.c_str(), pids);
  const bool alone = pids.size() == 1 && pids.has(getpid());
  if (!alone && !is_delegated(hierarchy.own)) return false;
  const std::string folder = hierarchy.own + "/" + self_name;
  const int made = make_folder(folder);
  if (made != 0 && made != EEXIST) return false;
  for (const pid_t pid : pids) {
    const int error = write_text(folder + "/cgroup.procs", std::to_string(pid));
    if (error != 0 && error != ESRCH) return false;
  }
  moved_ = true;
  return true;
}

void CgroupTree::choose() {
  const auto with = [&](const char* name) {
    for (std::size_t i = 0; i < hierarchies_.size(); ++i) {
      if (contains(hierarchies_[i].controllers, name)) return static_cast<int>(i);
    }
    return -1;
  };
  for (std::size_t i = 0; i < hierarchies_.size(); ++i) {
    if (hierarchies_[i].v2) members_ = static_cast<int>(i);
  }
  cpu_ = members_ >= 0 ? members_ : with("cpuacct");  // cpu.stat is in every v2 cgroup
  memory_ = with("memory");
  for (const char* name : {"freezer", "pids", "memory", "cpuacct"}) {
    if (members_ < 0) members_ = with(name);
  }
}

void CgroupTree::tell(const std::string& problem) {
  if (members_ < 0) {
    notes_.push_back(
        fmt::format("no cgroups for jobs ({}): memory limits are not in force, and what a job "
                    "leaves behind is found "
                    "by its process tree only; run the agent as root, or as a systemd service with "
                    "Delegate=yes",
                    problem));
  } else if (memory_ < 0 && notes_.empty()) {
    notes_.push_back(fmt::format(
        "memory limits of jobs are not in force: no memory controller is usable here ({}); run "
        "the agent as root and enable the controller in the kernel",
        problem));
  }
}

CgroupTree::~CgroupTree() {
  for (const CgroupHierarchy& hierarchy : hierarchies_) {
    const bool empty = rmdir((hierarchy.own + "/" + tree_name).c_str()) == 0;
    if (!hierarchy.v2 || !moved_ || !empty) continue;
    // Back to where we came from; fails, rightly, while shims of running jobs stay.
    for (const std::string& name : hierarchy.controllers) {
      (void)write_text(hierarchy.own + "/cgroup.subtree_control", "-" + name);
    }
    (void)write_text(hierarchy.own + "/cgroup.procs", std::to_string(getpid()));
    (void)rmdir((hierarchy.own + "/" + self_name).c_str());
  }
}

namespace {

int limit_memory_v1(const std::string& folder, Bytes limit) {
  const std::string bytes = std::to_string(limit.value);
  const int error = write_text(folder + "/memory.limit_in_bytes", bytes);
  if (error != 0) return error;
  // Without it the job would go on in swap. It exists only with swap accounting.
  const int swap_error = write_text(folder + "/memory.memsw.limit_in_bytes", bytes);
  return swap_error == ENOENT ? 0 : swap_error;
}

int limit_memory_v2(const std::string& folder, Bytes limit) {
  const int error = write_text(folder + "/memory.max", std::to_string(limit.value));
  if (error != 0) return error;
  const int swap_error = write_text(folder + "/memory.swap.max", "0");
  if (swap_error != 0 && swap_error != ENOENT) return swap_error;
  // The whole job ends together: half a job is of no use and holds its devices.
  const int group_error = write_text(folder + "/memory.oom.group", "1");
  return group_error == ENOENT ? 0 : group_error;
}

}  // namespace

Result<AttemptCgroups> CgroupTree::create(const std::string& name, Bytes memory_limit) const {
  AttemptCgroups made;
  std::string problem;
  for (std::size_t i = 0; i < hierarchies_.size() && problem.empty(); ++i) {
    const int index = static_cast<int>(i);
    if (index != members_ && index != memory_ && index != cpu_) continue;
    const CgroupHierarchy& hierarchy = hierarchies_[i];
    std::string folder;
    const int unmade = make_attempt_folder(hierarchy, name, folder);
    if (unmade != 0) {
      problem = fmt::format("cgroup {} cannot be made: {}", folder, std::strerror(unmade));
      break;
    }
    made.join.push_back(folder);
    if (index == members_) {
      made.members = folder;
      made.kill_file = access((folder + "/cgroup.kill").c_str(), F_OK) == 0;
    }
    if (index == cpu_) (hierarchy.v2 ? made.cpu_v2 : made.cpu_v1) = folder;
    if (index != memory_) continue;
    (hierarchy.v2 ? made.memory_v2 : made.memory_v1) = folder;
    if (memory_limit.value <= 0) continue;
    const int error = hierarchy.v2 ? limit_memory_v2(folder, memory_limit)
                                   : limit_memory_v1(folder, memory_limit);
    if (error != 0) {
      problem = fmt::format("memory limit of {} bytes cannot be set in {}: {}", memory_limit.value,
                            folder, std::strerror(error));
    }
  }
  if (problem.empty()) return made;
  for (const std::string& folder : made.join) (void)remove_cgroup(folder);
  return fail(ErrorKind::io, problem + ": restart the agent, or run it with more rights");
}

std::vector<std::string> CgroupTree::folders_of(const std::string& name) const {
  const auto is_one = [&](const std::string& found) {
    if (found == name) return true;
    if (!found.starts_with(name + "-")) return false;
    return found.find_first_not_of("0123456789", name.size() + 1) == std::string::npos;
  };
  std::vector<std::string> folders;
  for (const CgroupHierarchy& hierarchy : hierarchies_) {
    std::error_code error;
    std::filesystem::directory_iterator it(hierarchy.own + "/" + tree_name, error);
    for (; !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
      if (is_one(it->path().filename().string())) folders.push_back(it->path().string());
    }
  }
  return folders;
}

bool kill_cgroup(const std::string& folder) {
  return !folder.empty() && write_text(folder + "/cgroup.kill", "1") == 0;
}

bool remove_cgroup(const std::string& folder) {
  if (rmdir(folder.c_str()) == 0 || errno == ENOENT) return true;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.is_directory(error)) remove_cgroup(entry.path().string());
  }
  return rmdir(folder.c_str()) == 0;
}

}  // namespace takt::launch
