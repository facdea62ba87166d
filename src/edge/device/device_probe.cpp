#include "edge/device/device_probe.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include "edge/device/gpu_slot.h"
#include "edge/device/host_facts.h"
#include "edge/device/topology.h"

namespace takt::device {
namespace {

using Clock = std::chrono::steady_clock;

// What later steps get even when an earlier one used up the whole deadline: the GPUs after a slow
// start of the driver, the host's own facts after a GPU that hangs.
constexpr auto kShortestGpuWait = std::chrono::milliseconds(300);
constexpr auto kShortestHostWait = std::chrono::milliseconds(100);

struct Opened {
  std::shared_ptr<NvmlLibrary> library;
  std::shared_ptr<XidWatch> xids;
};

Result<Opened> open_driver(const std::string& path) {
  auto library = NvmlLibrary::open(path);
  if (!library) return tl::make_unexpected(library.error());
  auto xids = std::make_shared<XidWatch>(*library);
  return Opened{*std::move(library), std::move(xids)};
}

// Name, owner and start of a process; Missing where the host does not tell.
struct ProcessFacts {
  Measured<ProcessInfo> info = missing(MissingKind::not_found);
  std::string user;
};
using ProcessFactsByPid = std::map<std::int64_t, ProcessFacts>;

ProcessFactsByPid look_up(const ProcessTable& table, const std::set<std::int64_t>& pids) {
  ProcessFactsByPid found;
  for (const std::int64_t pid : pids) {
    ProcessFacts& facts = found[pid];
    facts.info = table.find(pid);
    if (facts.info) facts.user = table.user_name(facts.info->uid);
  }
  return found;
}

class NvmlProbe final : public DeviceProbe {
 public:
  explicit NvmlProbe(ProbeOptions options)
      : options_(std::move(options)), host_(read_host_facts()) {
    if (!options_.processes) options_.processes = proc_process_table();
    if (options_.node_name.empty()) options_.node_name = host_.name;
    driver_worker_.set_patience(seconds(1));
    start_opening();
  }
  ~NvmlProbe() override { close(); }

  Node read(Instant now) override { return read(now, Detail::all); }
  Node read_presence(Instant now) override { return read(now, Detail::presence); }

 private:
  Node read(Instant now, Detail detail) {
    const auto end = Clock::now() + deadline();
    Node node;
    node.id = NodeId(options_.node_name);
    node.boot_id = host_.boot_id;
    node.cpus = host_.cpus;
    node.memory = host_.memory;
    node.driver_problem = ensure_open(end);
    if (!opened_) return node;
    node.emulated = opened_->library->emulated();
    node.driver_version = opened_->library->driver_version();
    const std::vector<GpuReading> readings =
        read_gpus(now, detail, std::max(end, Clock::now() + kShortestGpuWait), node);
    node.links = links(readings, end);
    describe_processes(node, end);
    if (driver_gone(readings)) {
      node.driver_problem =
          "the NVIDIA driver stopped answering (it was unloaded or updated); takt opens it again "
          "with the next poll.";
      close();
    }
    return node;
  }

  std::chrono::microseconds deadline() const {
    return std::chrono::microseconds(options_.deadline.us);
  }

  void start_opening() {
    auto answer = std::make_shared<Pending<Result<Opened>>>();
    asked_at_ = Clock::now();
    const bool posted = driver_worker_.post(
        [answer, path = options_.nvml_path] { answer->give(open_driver(path)); });
    if (posted) opening_ = std::move(answer);
  }

  // Empty when the driver is open.
  std::string ensure_open(Clock::time_point end) {
    if (opened_) return {};
    if (!opening_) start_opening();
    std::optional<Result<Opened>> answer;
    if (opening_) answer = opening_->take(std::min(end, asked_at_ + deadline()));
    if (!answer)
      return fmt::format(
          "the NVIDIA driver has not finished starting for {:.1f} s (deadline {:.1f} s); takt goes "
          "on "
          "waiting. If this stays, look at \"dmesg | grep -i nvrm\" and at what nvidia-smi does.",
          std::chrono::duration<double>(Clock::now() - asked_at_).count(),
          static_cast<double>(options_.deadline.us) / 1e6);
    opening_.reset();
    if (!*answer) return answer->error().message;
    opened_ = **std::move(answer);
    const unsigned count = opened_->library->device_count();
    for (unsigned i = 0; i < count; ++i)
      slots_.push_back(std::make_unique<GpuSlot>(opened_->library, opened_->xids, i));
    if (count > 0) return {};
    const std::string version = opened_->library->driver_version();
    close();  // GPUs that are added are seen only by a fresh start
    return fmt::format(
        "the NVIDIA driver {} works but shows no GPU. Check lspci, and the device files and cgroup "
        "that takt may use.",
        version);
  }

  std::vector<GpuReading> read_gpus(Instant now, Detail detail, Clock::time_point end, Node& node) {
    for (const auto& slot : slots_) slot->start(now, detail);
    std::vector<GpuReading> readings;
    for (const auto& slot : slots_) {
      readings.push_back(slot->finish(end, options_.deadline));
      node.gpus.push_back(readings.back().gpu);
      if (!readings.back().note.empty()) node.notes.push_back(readings.back().note);
    }
    return readings;
  }

  std::vector<GpuLink> links(const std::vector<GpuReading>& readings, Clock::time_point end) {
    std::vector<LinkedGpu> all;
    std::vector<LinkedGpu> healthy;  // asking about a sick one may hang
    for (const GpuReading& r : readings) {
      all.push_back({r.gpu.uuid, r.gpu.pci_bus_id, r.nvlink_ends, r.handle});
      if (r.handle != nullptr && r.gpu.health == GpuHealth::ok) healthy.push_back(all.back());
    }
    if (!asking_levels_ && lacks_levels(healthy)) {
      auto answer = std::make_shared<Pending<AncestorLevels>>();
      const bool posted = topology_worker_.post([answer, library = opened_->library, healthy] {
        answer->give(ask_ancestors(*library, healthy));
      });
      if (posted) asking_levels_ = std::move(answer);
      levels_asked_at_ = Clock::now();
    }
    if (asking_levels_) {
      if (auto levels = asking_levels_->take(std::min(end, levels_asked_at_ + deadline()))) {
        for (auto& [pair, kind] : *levels) levels_[pair] = kind;
        asking_levels_.reset();
      }
    }
    return gpu_links(all, levels_);
  }

  bool lacks_levels(const std::vector<LinkedGpu>& gpus) const {
    for (std::size_t i = 0; i < gpus.size(); ++i)
      for (std::size_t j = i + 1; j < gpus.size(); ++j)
        if (!levels_.contains({gpus[i].uuid, gpus[j].uuid})) return true;
    return false;
  }

  void describe_processes(Node& node, Clock::time_point end) {
    std::set<std::int64_t> pids;
    for (const Gpu& gpu : node.gpus)
      if (gpu.processes)
        for (const GpuProcess& process : *gpu.processes) pids.insert(process.pid);
    if (pids.empty()) return;
    const auto answer = std::make_shared<Pending<ProcessFactsByPid>>();
    std::optional<ProcessFactsByPid> facts;
    if (process_worker_.post(
            [answer, table = options_.processes, pids] { answer->give(look_up(*table, pids)); }))
      facts = answer->take(std::max(end, Clock::now() + kShortestHostWait));
    std::size_t found = 0;
    for (Gpu& gpu : node.gpus) {
      if (!gpu.processes) continue;
      for (GpuProcess& process : *gpu.processes) found += describe(process, facts) ? 1 : 0;
    }
    if (facts && found == 0)
      node.notes.push_back(
          "none of the processes on the GPUs is to be found on this host: takt seems to run in a "
          "PID "
          "namespace of its own; run it in the host's.");
  }

  // True when the process was found.
  static bool describe(GpuProcess& process, const std::optional<ProcessFactsByPid>& facts) {
    if (!facts) {
      process.name = process.user = missing(MissingKind::timed_out, "the host did not answer");
      process.started = missing(MissingKind::timed_out, "the host did not answer");
      return false;
    }
    const ProcessFacts& known = facts->at(process.pid);
    if (!known.info) {
      process.name = process.user = tl::make_unexpected(known.info.error());
      process.started = tl::make_unexpected(known.info.error());
      return false;
    }
    process.name = known.info->name;
    process.user = known.user;
    process.started = known.info->started;
    return true;
  }

  // One GPU alone may be lost; when all that answer say so, it is the driver.
  static bool driver_gone(const std::vector<GpuReading>& readings) {
    return !readings.empty() && std::all_of(readings.begin(), readings.end(),
                                            [](const GpuReading& r) { return r.driver_gone; });
  }

  // Each GPU's reader ends in its own thread; the last reference to the library, whose end calls
  // the driver too, goes in the driver's thread.
  void close() {
    slots_.clear();
    levels_.clear();
    asking_levels_.reset();
    if (opened_)
      driver_worker_.post([opened = *std::exchange(opened_, std::nullopt)]() mutable {
        opened.xids.reset();
        opened.library.reset();
      });
  }

  ProbeOptions options_;
  HostFacts host_;
  std::optional<Opened> opened_;
  std::vector<std::unique_ptr<GpuSlot>> slots_;
  AncestorLevels levels_;
  std::shared_ptr<Pending<Result<Opened>>> opening_;
  std::shared_ptr<Pending<AncestorLevels>> asking_levels_;
  Clock::time_point asked_at_{};
  Clock::time_point levels_asked_at_{};
  Worker driver_worker_;
  Worker topology_worker_;
  Worker process_worker_;
};

}  // namespace

std::unique_ptr<DeviceProbe> DeviceProbe::open(ProbeOptions options) {
  return std::make_unique<NvmlProbe>(std::move(options));
}

}  // namespace takt::device
