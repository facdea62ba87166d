// A fleet as a person writes it. The format is described in emulator/README.md and shown by
// emulator/fleets/*.yaml.
#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "fleet/document.h"
#include "fleet/gpu_models.h"
#include "fleet/quantity.h"
#include "fleet/read_fleet.h"
#include "fleet/smi_fleet.h"
#include "fleet/yaml_fault.h"
#include "fleet/yaml_fields.h"
#include "fleet/yaml_mig.h"

namespace takt::emulator {
namespace {

constexpr unsigned kGpusMax = 64;
constexpr std::uint64_t kNumberMax = 1'000'000'000;

std::optional<std::uint64_t> bytes_field(Fields& f, const char* key) {
  return f.value<std::uint64_t>(key, "a size such as 12GiB or 46068MiB",
                                [](const std::string& raw) { return parse_bytes(raw); });
}

std::uint64_t name_hash(const std::string& text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

// The same fleet file gives the same UUIDs at every start, and another fleet gives others.
std::string gpu_uuid(const std::string& fleet, std::size_t index) {
  auto a = name_hash(fmt::format("{}#{}", fleet, index));
  auto b = name_hash(fmt::format("{}@{}", index, fleet));
  return fmt::format("GPU-{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}", a >> 32, (a >> 16) & 0xffff,
                     a & 0xfff, (b >> 48) & 0xfff, b & 0xffffffffffffULL);
}

FleetGpu gpu_of_model(const GpuModel& model) {
  FleetGpu gpu;
  gpu.name = model.name;
  gpu.pci_device_id = model.pci_device;
  gpu.pci_subsystem_id = 0x000010DE;
  gpu.memory_total = model.memory_mib * kMiB;
  gpu.memory_reserved = model.reserved_mib * kMiB;
  gpu.memory_used = 0;
  gpu.utilization_gpu = gpu.utilization_memory = 0;
  gpu.temperature = 32;
  gpu.fan = model.fan ? Reading(30) : answer(Code::not_supported);
  gpu.power = model.power_watts * 1000 / 10;
  gpu.power_limit = model.power_watts * 1000;
  gpu.energy = 0;
  gpu.clock_graphics = gpu.clock_sm = 210;
  gpu.clock_memory = model.memory_clock_mhz;
  gpu.clock_video = 600;
  gpu.clock_sm_max = model.clock_mhz;
  gpu.event_reasons = 0x1;
  gpu.performance_state = 8;
  gpu.pcie_tx = gpu.pcie_rx = 0;
  if (!model.fan) {
    gpu.ecc_corrected_volatile = gpu.ecc_uncorrected_volatile = 0;
    gpu.ecc_corrected_aggregate = gpu.ecc_uncorrected_aggregate = 0;
  }
  if (model.mig_sms != 0) gpu.mig_current = gpu.mig_pending = 0;
  gpu.mig_max = model.mig_sms != 0 ? model.mig_compute : 0;
  gpu.gpm = model.gpm;
  return gpu;
}

void read_process(const YAML::Node& node, const std::string& where, Problems& problems,
                  FleetGpu& gpu) {
  Fields f(node, where, problems, {"pid", "name", "memory", "sm", "kind", "instance"});
  FleetProcess p;
  p.pid = static_cast<unsigned>(f.whole("pid", 1, 4194304).value_or(0));
  if (p.pid == 0 && !f.has("pid"))
    problems.add(node, f.path("pid"), "is missing; expected a process id");
  p.name = f.text("name").value_or("");
  if (auto memory = bytes_field(f, "memory")) p.memory = *memory;
  auto sm = f.value<double>("sm", "a share such as 0.6 or 60%",
                            [](const std::string& raw) { return parse_ratio(raw); });
  p.sm = static_cast<std::uint64_t>(sm.value_or(0) * 100 + 0.5);
  p.memory_util = 0;
  auto kind = f.text("kind").value_or("compute");
  if (kind != "compute" && kind != "graphics" && kind != "both")
    problems.add(f.node("kind"), f.path("kind"),
                 "is '" + kind + "'; expected compute, graphics or both");
  p.compute = kind != "graphics";
  p.graphics = kind != "compute";
  FleetMig* mig = nullptr;
  if (auto i = f.whole("instance", 0, 15)) {
    if (*i < gpu.migs.size())
      mig = &gpu.migs[*i];
    else
      problems.add(f.node("instance"), f.path("instance"),
                   fmt::format("is {}; expected one of the {} instances", *i, gpu.migs.size()));
  }
  if (mig != nullptr) {
    p.gpu_instance = mig->gpu_instance;
    p.compute_instance = mig->compute_instance;
  }
  std::uint64_t bytes = p.memory.value_or(0);
  Reading& used = mig != nullptr ? mig->memory_used : gpu.memory_used;
  std::uint64_t room =
      mig != nullptr ? *mig->memory_total : *gpu.memory_total - *gpu.memory_reserved;
  if (*used + bytes > room)
    problems.add(node, f.path("memory"),
                 fmt::format("does not fit: {} MiB are free", (room - *used) / kMiB));
  else
    *used += bytes;
  if (mig != nullptr && *used <= room) gpu.memory_used = *gpu.memory_used + bytes;
  if (gpu.utilization_gpu)
    gpu.utilization_gpu = std::min<std::uint64_t>(100, *gpu.utilization_gpu + *p.sm);
  gpu.processes.push_back(std::move(p));
}

void read_state(Fields& f, FleetGpu& gpu) {
  if (auto n = f.whole("temperature", 0, 150)) gpu.temperature = *n;
  if (auto n = f.whole("fan", 0, 100)) gpu.fan = *n;
  if (auto n = f.whole("numa", 0, 1023)) gpu.numa_node = *n;
  if (auto n = f.whole("ecc_uncorrected", 0, kNumberMax))
    gpu.ecc_uncorrected_volatile = gpu.ecc_uncorrected_aggregate = *n;
  auto watts =
      f.value<std::uint64_t>("power_limit", "watts such as 300W",
                             [](const std::string& raw) { return parse_scaled(raw, "W", 1000); });
  if (watts) gpu.power_limit = *watts;
  for (const auto& item : f.list("throttle")) {
    auto bit = item.IsScalar() ? throttle_bit(item.Scalar()) : std::nullopt;
    if (bit)
      gpu.event_reasons = (*gpu.event_reasons & ~std::uint64_t{1}) | *bit;
    else
      f.problems().add(item, f.path("throttle"),
                       "names no reason; expected some of: " + throttle_names());
  }
}

void read_gpus(const YAML::Node& node, const std::string& where, Problems& problems, Fleet& fleet) {
  Fields f(node, where, problems,
           {"model", "name", "count", "memory", "reserved", "uuid", "numa", "mig", "processes",
            "temperature", "fan", "power_limit", "throttle", "ecc_uncorrected", "fault"});
  auto key = f.text("model");
  if (!key) {
    problems.add(node, f.path("model"), "is missing; expected one of: " + gpu_model_keys());
    return;
  }
  const GpuModel* model = gpu_model(*key);
  if (model == nullptr) {
    problems.add(f.node("model"), f.path("model"),
                 fmt::format("is '{}'; expected one of: {}", *key, gpu_model_keys()));
    return;
  }
  std::uint64_t count = f.whole("count", 1, kGpusMax).value_or(1);
  FleetGpu gpu = gpu_of_model(*model);
  if (auto name = f.text("name")) gpu.name = *name;
  if (auto bytes = bytes_field(f, "memory")) gpu.memory_total = *bytes;
  if (auto bytes = bytes_field(f, "reserved")) gpu.memory_reserved = *bytes;
  if (*gpu.memory_total <= *gpu.memory_reserved) {
    problems.add(f.node("memory"), f.path("memory"),
                 fmt::format("is not more than the {} MiB the driver reserves",
                             *gpu.memory_reserved / kMiB));
    return;
  }
  read_state(f, gpu);
  if (f.has("mig")) read_mig(f.node("mig"), f.path("mig"), problems, gpu, *model);
  auto processes = f.list("processes");
  for (std::size_t i = 0; i < processes.size(); ++i)
    read_process(processes[i], fmt::format("{}[{}]", f.path("processes"), i), problems, gpu);
  if (f.has("fault")) gpu.fault = read_fault(f.node("fault"), f.path("fault"), problems);
  if (auto uuid = f.text("uuid")) {
    gpu.uuid = *uuid;
    if (count > 1)
      problems.add(f.node("uuid"), f.path("uuid"), "is given for several GPUs; expected count: 1");
    if (uuid->rfind("GPU-", 0) != 0)
      problems.add(f.node("uuid"), f.path("uuid"), "is '" + *uuid + "'; expected GPU-...");
  }
  for (std::uint64_t i = 0; i < count && fleet.gpus.size() < kGpusMax; ++i)
    fleet.gpus.push_back(gpu);
}

// Identities of the fleet's GPUs: everything that depends on the place in the list.
void number_gpus(Fleet& fleet) {
  for (std::size_t i = 0; i < fleet.gpus.size(); ++i) {
    FleetGpu& gpu = fleet.gpus[i];
    if (gpu.uuid.empty()) gpu.uuid = gpu_uuid(fleet.name, i);
    gpu.minor = i;
    gpu.bus_id = fmt::format("00000000:{:02X}:00.0", 0x10 + i);
    gpu.memory_free = *gpu.memory_total - *gpu.memory_reserved - *gpu.memory_used;
    for (auto& mig : gpu.migs) mig.memory_free = *mig.memory_total - *mig.memory_used;
    complete_migs(gpu);
  }
}

void read_link(const YAML::Node& node, const std::string& where, Problems& problems, Fleet& fleet) {
  Fields f(node, where, problems, {"between", "kind", "count"});
  std::vector<unsigned> members;
  for (const auto& item : f.list("between")) {
    auto n = item.IsScalar() ? parse_scaled(item.Scalar(), "", 1) : std::nullopt;
    if (!n || *n >= fleet.gpus.size()) {
      problems.add(
          item, f.path("between"),
          fmt::format("names no GPU; expected indices from 0 to {}", fleet.gpus.size() - 1));
      return;
    }
    members.push_back(static_cast<unsigned>(*n));
  }
  if (members.size() < 2) {
    problems.add(node, f.path("between"), "has less than two GPUs; expected for example [0, 1]");
    return;
  }
  std::string kind = f.text("kind").value_or("");
  auto level = topology_of(kind);
  if (kind != "nvlink" && !level)
    problems.add(node, f.path("kind"),
                 "is '" + kind + "'; expected nvlink, pix, pxb, phb, node or sys");
  auto count = static_cast<unsigned>(f.whole("count", 1, 18).value_or(4));
  for (unsigned a : members)
    for (unsigned b : members) {
      if (a == b) continue;
      if (kind == "nvlink")
        fleet.gpus[a].nvlinks.push_back({b, count});
      else if (level && a < b)
        fleet.topology[{a, b}] = *level;
    }
}

void check_links(const YAML::Node& node, Problems& problems, const Fleet& fleet) {
  for (std::size_t i = 0; i < fleet.gpus.size(); ++i) {
    unsigned sum = 0;
    for (const auto& link : fleet.gpus[i].nvlinks) sum += link.count;
    if (sum > 18)
      problems.add(node, "links",
                   fmt::format("give GPU {} {} NVLinks; expected at most 18", i, sum));
  }
}

void read_driver(Fields& top, Fleet& fleet) {
  fleet.driver_version = "550.90.07";
  fleet.cuda_version = 12040;
  if (!top.has("driver")) return;
  YAML::Node node = top.node("driver");
  std::string state = "ok";
  YAML::Node state_node = node;
  if (node.IsScalar()) {
    state = node.Scalar();
  } else {
    Fields f(node, "driver", top.problems(), {"version", "cuda", "state"});
    fleet.driver_version = f.text("version").value_or(fleet.driver_version);
    if (auto cuda = f.text("cuda")) {
      auto version = cuda_version_of(*cuda);
      if (version)
        fleet.cuda_version = *version;
      else
        f.problems().add(f.node("cuda"), "driver.cuda",
                         "is '" + *cuda + "'; expected a version such as 12.4");
    }
    if (f.has("state")) state_node.reset(f.node("state"));  // = would change the document
    state = f.text("state").value_or("ok");
  }
  if (state == "ok")
    fleet.driver = DriverState::ok;
  else if (state == "absent")
    fleet.driver = DriverState::absent;
  else if (state == "too-old")
    fleet.driver = DriverState::too_old;
  else if (state == "version-mismatch")
    fleet.driver = DriverState::version_mismatch;
  else
    top.problems().add(state_node, "driver",
                       "is '" + state + "'; expected ok, absent, too-old or version-mismatch");
  bool named = node.IsMap() &&
               Fields(node, "driver", top.problems(), {"version", "cuda", "state"}).has("version");
  if (fleet.driver == DriverState::too_old && !named) fleet.driver_version = "418.226.00";
}

}  // namespace

Result<Fleet> fleet_of_yaml(const std::string& text, const std::string& place) {
  YAML::Node root;
  try {
    root = YAML::Load(text);
  } catch (const YAML::Exception& e) {
    return fail(ErrorKind::invalid,
                fmt::format("{}: line {}: {}; expected a fleet in YAML, or what nvidia-smi -q "
                            "(or -q -x) printed",
                            place, e.mark.line + 1, e.msg));
  }
  Problems problems(place);
  Fleet fleet;
  try {
    Fields top(root, "", problems, {"name", "driver", "gpus", "links"});
    if (problems.first()) return tl::make_unexpected(*problems.first());
    fleet.name = top.text("name").value_or("");
    read_driver(top, fleet);
    auto gpus = top.list("gpus");
    for (std::size_t i = 0; i < gpus.size(); ++i)
      read_gpus(gpus[i], fmt::format("gpus[{}]", i), problems, fleet);
    if (!problems.first() && fleet.gpus.empty() && fleet.driver != DriverState::absent)
      problems.add(root, "gpus", "is empty or missing; expected a list of GPUs ('- model: L40S')");
    number_gpus(fleet);
    auto links = top.list("links");
    for (std::size_t i = 0; i < links.size(); ++i)
      read_link(links[i], fmt::format("links[{}]", i), problems, fleet);
    check_links(top.node("links"), problems, fleet);
  } catch (const YAML::Exception& e) {
    return fail(ErrorKind::invalid, fmt::format("{}: line {}: {}", place, e.mark.line + 1, e.msg));
  }
  if (problems.first()) return tl::make_unexpected(*problems.first());
  return fleet;
}

}  // namespace takt::emulator
