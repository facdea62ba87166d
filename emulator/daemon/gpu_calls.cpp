#include "daemon/gpu_calls.h"

#include <algorithm>
#include <map>

namespace takt::emulator {
namespace {

constexpr std::uint64_t kNone = 0xFFFFFFFFFFFFFFFFULL;
constexpr std::uint64_t kNoInstance = 0xFFFFFFFFULL;
constexpr std::uint64_t kNvLinksMax = 18;

Reply refused(Code code) { return {code, {}, {}}; }

Reply single(const Reading& reading) {
  if (!reading) return refused(reading.error());
  return {Code::success, {*reading}, {}};
}

std::uint64_t percent(double share) { return static_cast<std::uint64_t>(share * 100 + 0.5); }

// Readings of the whole card; a MIG handle has none of them.
bool needs_whole_card(const std::string& call) {
  static constexpr std::string_view calls[] = {"utilizationrates",
                                               "temperature",
                                               "powerusage",
                                               "enforcedpowerlimit",
                                               "totalenergyconsumption",
                                               "clockinfo",
                                               "currentclockseventreasons",
                                               "currentclocksthrottlereasons",
                                               "performancestate",
                                               "fanspeed",
                                               "totaleccerrors",
                                               "pciethroughput",
                                               "processutilization",
                                               "migmode",
                                               "maxmigdevicecount",
                                               "nvlinkstate",
                                               "nvlinkremotepciinfo",
                                               "topologycommonancestor"};
  return std::find(std::begin(calls), std::end(calls), call) != std::end(calls);
}

}  // namespace

const FleetMig* GpuCalls::mig() const {
  return request.mig < 0 ? nullptr : &card().migs[static_cast<std::size_t>(request.mig)];
}

bool GpuCalls::in_use() const {
  Activity a = gpu.clients_.sum(-1);
  return a.busy > 0 || a.sm > 0 || a.dram > 0;
}

Reply GpuCalls::answer() {
  if (mig() != nullptr && needs_whole_card(request.call)) return refused(Code::not_supported);
  using Method = Reply (GpuCalls::*)();
  // Beside each call: the numbers (and texts) of its reply, where there is more than one number.
  static const std::map<std::string, Method, std::less<>> table = {
      {"handlebyindex", &GpuCalls::nothing},
      {"handlebyuuid", &GpuCalls::nothing},
      {"migdevicehandlebyindex", &GpuCalls::nothing},
      {"registerevents", &GpuCalls::nothing},
      {"uuid", &GpuCalls::uuid},
      {"index", &GpuCalls::index},
      {"name", &GpuCalls::name},
      {"minornumber", &GpuCalls::minor_number},
      {"numanodeid", &GpuCalls::numa_node},
      {"pciinfo", &GpuCalls::pci_info},              // domain bus device id subsystem; bus id
      {"memoryinfo", &GpuCalls::memory_info},        // total reserved free used
      {"utilizationrates", &GpuCalls::utilization},  // gpu memory
      {"temperature", &GpuCalls::temperature},
      {"powerusage", &GpuCalls::power_usage},
      {"enforcedpowerlimit", &GpuCalls::power_limit},
      {"totalenergyconsumption", &GpuCalls::energy},
      {"clockinfo", &GpuCalls::clock},
      {"currentclockseventreasons", &GpuCalls::event_reasons},
      {"currentclocksthrottlereasons", &GpuCalls::event_reasons},
      {"performancestate", &GpuCalls::performance_state},
      {"fanspeed", &GpuCalls::fan_speed},
      {"totaleccerrors", &GpuCalls::ecc_errors},
      {"pciethroughput", &GpuCalls::pcie_throughput},
      {"computerunningprocesses", &GpuCalls::compute_processes},    // pid memory GI CI, ...
      {"graphicsrunningprocesses", &GpuCalls::graphics_processes},  // the same
      {"processutilization", &GpuCalls::process_utilization},       // pid time SM memory, ...
      {"migmode", &GpuCalls::mig_mode},                             // current pending
      {"maxmigdevicecount", &GpuCalls::mig_max},
      {"migs", &GpuCalls::mig_uuids},
      {"gpuinstanceid", &GpuCalls::gpu_instance},
      {"computeinstanceid", &GpuCalls::compute_instance},
      {"attributes", &GpuCalls::attributes},  // SMs, copy engines, slices of GI and CI, MiB
      {"gpuinstancebyid", &GpuCalls::instance_placement},  // start size slices
      {"gpuinstancegetinfo", &GpuCalls::instance_placement},
      {"topologycommonancestor", &GpuCalls::topology},
      {"nvlinkstate", &GpuCalls::nvlink_state},
      {"nvlinkremotepciinfo", &GpuCalls::nvlink_remote},  // as pciinfo
      {"gpmquerydevicesupport", &GpuCalls::gpm_support},
      {"gpmsampleget", &GpuCalls::gpm_sample},
      {"xids", &GpuCalls::xids},
  };
  auto method = table.find(request.call);
  return method == table.end() ? refused(Code::function_not_found) : (this->*method->second)();
}

Reply GpuCalls::nothing() { return {}; }
Reply GpuCalls::uuid() { return {Code::success, {}, {mig() ? mig()->uuid : card().uuid}}; }
Reply GpuCalls::index() { return {Code::success, {gpu.index_}, {}}; }
Reply GpuCalls::name() { return {Code::success, {}, {card().name}}; }
Reply GpuCalls::minor_number() { return single(card().minor); }
Reply GpuCalls::numa_node() { return single(card().numa_node); }
Reply GpuCalls::power_usage() { return single(power()); }
Reply GpuCalls::power_limit() { return single(card().power_limit); }
Reply GpuCalls::fan_speed() { return single(card().fan); }
Reply GpuCalls::compute_processes() { return processes(false); }
Reply GpuCalls::graphics_processes() { return processes(true); }
Reply GpuCalls::mig_max() { return {Code::success, {card().mig_max}, {}}; }
Reply GpuCalls::gpm_support() { return {Code::success, {card().gpm ? 1ULL : 0ULL}, {}}; }
Reply GpuCalls::nvlink_state() { return nvlink(false); }
Reply GpuCalls::nvlink_remote() { return nvlink(true); }

Reply GpuCalls::mig_uuids() {
  Reply reply{Code::success, {card().mig_current.value_or(0)}, {}};
  for (const auto& m : card().migs) reply.texts.push_back(m.uuid);
  return reply;
}

Reply GpuCalls::gpu_instance() {
  if (mig() == nullptr) return refused(Code::invalid_argument);
  return {Code::success, {mig()->gpu_instance}, {}};
}

Reply GpuCalls::compute_instance() {
  if (mig() == nullptr) return refused(Code::invalid_argument);
  return {Code::success, {mig()->compute_instance}, {}};
}

Reply GpuCalls::pci_of(const FleetGpu& other) const {
  unsigned domain = 0, bus = 0, device = 0;
  if (std::sscanf(other.bus_id.c_str(), "%x:%x:%x", &domain, &bus, &device) != 3)
    return refused(Code::unknown);
  return {
      Code::success,
      {domain, bus, device, other.pci_device_id.value_or(0), other.pci_subsystem_id.value_or(0)},
      {other.bus_id}};
}

Reply GpuCalls::pci_info() { return pci_of(card()); }

// Argument: 2 for the second version, which tells what the driver reserves. In the first, `used`
// includes that. Where the fleet does not know `reserved`, only the first version is answered.
Reply GpuCalls::memory_info() {
  const FleetMig* m = mig();
  const Reading& total = m ? m->memory_total : card().memory_total;
  const Reading& reserved = m ? m->memory_reserved : card().memory_reserved;
  const Reading& used = m ? m->memory_used : card().memory_used;
  const Reading& free = m ? m->memory_free : card().memory_free;
  if (!used) return refused(used.error());
  std::uint64_t held = gpu.clients_.memory(request.mig);
  std::uint64_t spoken_for = *used + reserved.value_or(0);
  std::uint64_t all = 0;
  if (total)
    all = *total;
  else if (free)
    all = spoken_for + *free;  // a table that shows used and free only
  else
    return refused(total.error());
  std::uint64_t left = free ? *free : (all > spoken_for ? all - spoken_for : 0);
  left = left > held ? left - held : 0;
  if (argument(0) != 2)
    return {Code::success, {all, 0, left, *used + held + reserved.value_or(0)}, {}};
  if (!reserved)
    return refused(reserved.error() == Code::not_supported ? Code::not_supported
                                                           : reserved.error());
  return {Code::success, {all, *reserved, left, *used + held}, {}};
}

Reply GpuCalls::utilization() {
  if (!card().utilization_gpu) return refused(card().utilization_gpu.error());
  Activity a = gpu.clients_.sum(-1);
  auto on_top = [](const Reading& base, double share) {
    return std::min<std::uint64_t>(100, base.value_or(0) + percent(share));
  };
  return {Code::success,
          {on_top(card().utilization_gpu, a.busy), on_top(card().utilization_memory, a.dram)},
          {}};
}

Reading GpuCalls::power() const {
  if (!card().power || !card().power_limit || *card().power_limit < *card().power)
    return card().power;
  Activity a = gpu.clients_.sum(-1);
  double share = 0.55 * a.sm + 0.2 * a.tensor + 0.2 * a.dram;
  auto headroom = static_cast<double>(*card().power_limit - *card().power);
  return *card().power + static_cast<std::uint64_t>(headroom * share);
}

void GpuCalls::settle_energy() {
  if (now_us <= gpu.energy_until_us_) return;
  double seconds = static_cast<double>(now_us - gpu.energy_until_us_) / 1e6;
  gpu.energy_until_us_ = now_us;
  if (auto milliwatts = power()) gpu.extra_energy_mj_ += static_cast<double>(*milliwatts) * seconds;
}

Reply GpuCalls::energy() {
  if (!card().energy) return refused(card().energy.error());
  settle_energy();
  return {Code::success, {*card().energy + static_cast<std::uint64_t>(gpu.extra_energy_mj_)}, {}};
}

Reply GpuCalls::temperature() {
  if (!card().temperature) return refused(card().temperature.error());
  constexpr double kFullLoadCelsius = 78;
  auto base = static_cast<double>(*card().temperature);
  double rise = std::max(0.0, kFullLoadCelsius - base) * gpu.clients_.sum(-1).sm;
  return {Code::success, {static_cast<std::uint64_t>(base + rise + 0.5)}, {}};
}

Reply GpuCalls::clock() {
  const Reading* clocks[] = {&card().clock_graphics, &card().clock_sm, &card().clock_memory,
                             &card().clock_video};
  if (argument(0) > 3) return refused(Code::invalid_argument);
  const Reading& now = *clocks[argument(0)];
  if (now && argument(0) < 2 && in_use() && card().clock_sm_max)
    return {Code::success, {std::max(*now, *card().clock_sm_max)}, {}};
  return single(now);
}

Reply GpuCalls::event_reasons() {
  if (!card().event_reasons) return refused(card().event_reasons.error());
  std::uint64_t idle = in_use() ? 1 : 0;
  return {Code::success, {*card().event_reasons & ~idle}, {}};
}

Reply GpuCalls::performance_state() {
  if (card().performance_state && in_use()) return {Code::success, {0}, {}};
  return single(card().performance_state);
}

// Arguments: 0 corrected, 1 uncorrected; 0 since the driver was loaded, 1 ever.
Reply GpuCalls::ecc_errors() {
  bool uncorrected = argument(0) == 1;
  if (argument(1) == 1)
    return single(uncorrected ? card().ecc_uncorrected_aggregate : card().ecc_corrected_aggregate);
  return single(uncorrected ? card().ecc_uncorrected_volatile : card().ecc_corrected_volatile);
}

// Argument: 0 sent by the GPU, 1 received. KB/s.
Reply GpuCalls::pcie_throughput() {
  const Reading& base = argument(0) == 0 ? card().pcie_tx : card().pcie_rx;
  if (!base) return refused(base.error());
  Activity a = gpu.clients_.sum(-1);
  double bytes = argument(0) == 0 ? a.pcie_tx : a.pcie_rx;
  return {Code::success, {*base + static_cast<std::uint64_t>(bytes / 1000)}, {}};
}

Reply GpuCalls::processes(bool graphics) {
  Reply reply;
  const FleetMig* only = mig();
  for (const auto& p : card().processes) {
    if (graphics ? !p.graphics : !p.compute) continue;
    if (only &&
        (p.gpu_instance != only->gpu_instance || p.compute_instance != only->compute_instance))
      continue;
    reply.numbers.insert(reply.numbers.end(),
                         {p.pid, p.memory.value_or(kNone), p.gpu_instance.value_or(kNoInstance),
                          p.compute_instance.value_or(kNoInstance)});
  }
  if (graphics) return reply;
  for (const auto& share : gpu.clients_.shares()) {
    const Client& c = *share.client;
    if (only && c.mig != request.mig) continue;
    const FleetMig* m = c.mig < 0 ? nullptr : &card().migs[static_cast<std::size_t>(c.mig)];
    reply.numbers.insert(reply.numbers.end(), {c.pid, c.memory, m ? m->gpu_instance : kNoInstance,
                                               m ? m->compute_instance : kNoInstance});
  }
  return reply;
}

// Only processes that do something are listed; none at all is NVML's NOT_FOUND.
Reply GpuCalls::process_utilization() {
  if (card().mig_current.value_or(0) == 1) return refused(Code::not_supported);
  Reply reply;
  double clients_sm = 0;
  for (const auto& share : gpu.clients_.shares()) clients_sm += share.sm;
  for (const auto& share : gpu.clients_.shares())
    if (share.sm > 0 || share.dram > 0)
      reply.numbers.insert(reply.numbers.end(),
                           {share.client->pid, now_us, percent(share.sm), percent(share.dram)});
  // Processes of the fleet share what the clients leave.
  double left = std::max(0.0, 1 - clients_sm) * 100;
  for (const auto& p : card().processes)
    if (p.sm.value_or(0) > 0)
      reply.numbers.insert(reply.numbers.end(),
                           {p.pid, now_us, std::min(*p.sm, static_cast<std::uint64_t>(left)),
                            p.memory_util.value_or(0)});
  return reply.numbers.empty() ? refused(Code::not_found) : reply;
}

Reply GpuCalls::mig_mode() {
  if (!card().mig_current) return refused(card().mig_current.error());
  return {
      Code::success, {*card().mig_current, card().mig_pending.value_or(*card().mig_current)}, {}};
}

Reply GpuCalls::attributes() {
  if (mig() == nullptr) return refused(Code::not_supported);
  const FleetMig& m = *mig();
  if (!m.memory_total) return refused(m.memory_total.error());
  auto slices = m.compute_slices.value_or(0);
  return {Code::success,
          {m.multiprocessors.value_or(0), m.copy_engines.value_or(0), slices, slices,
           *m.memory_total / kMiB},
          {}};
}

// Argument: the GPU instance's id.
Reply GpuCalls::instance_placement() {
  for (const auto& m : card().migs) {
    if (m.gpu_instance != argument(0)) continue;
    if (!m.start || !m.memory_slices)
      return refused(m.start ? m.memory_slices.error() : m.start.error());
    return {Code::success, {*m.start, *m.memory_slices, m.compute_slices.value_or(0)}, {}};
  }
  return refused(Code::not_found);
}

// Argument: index of the other GPU.
Reply GpuCalls::topology() {
  auto other = argument(0);
  if (other >= gpu.fleet_.gpus.size()) return refused(Code::invalid_argument);
  if (other == gpu.index_) return {Code::success, {0}, {}};
  auto a = static_cast<unsigned>(std::min<std::uint64_t>(other, gpu.index_));
  auto b = static_cast<unsigned>(std::max<std::uint64_t>(other, gpu.index_));
  if (auto known = gpu.fleet_.topology.find({a, b}); known != gpu.fleet_.topology.end())
    return {Code::success, {static_cast<std::uint64_t>(known->second)}, {}};
  if (card().measured) return refused(Code::not_supported);  // the capture does not say
  bool near = card().numa_node.value_or(0) == gpu.fleet_.gpus[other].numa_node.value_or(0);
  return {
      Code::success, {static_cast<std::uint64_t>(near ? Topology::node : Topology::system)}, {}};
}

// Argument: number of the link. Links to GPUs of the fleet come first, then those to a switch.
Reply GpuCalls::nvlink(bool remote) {
  if (card().nvlinks.empty() && card().nvlinks_to_switch == 0) return refused(Code::not_supported);
  std::uint64_t link = argument(0);
  if (link >= kNvLinksMax) return refused(Code::invalid_argument);
  for (const auto& to : card().nvlinks) {
    if (link >= to.count) {
      link -= to.count;
      continue;
    }
    return remote ? pci_of(gpu.fleet_.gpus[to.peer]) : Reply{Code::success, {1}, {}};
  }
  bool to_switch = link < card().nvlinks_to_switch;
  if (!remote) return {Code::success, {to_switch ? 1ULL : 0ULL}, {}};
  FleetGpu nvswitch;
  nvswitch.bus_id = "00000000:C0:00.0";
  return to_switch ? pci_of(nvswitch) : refused(Code::not_supported);
}

// time, then graphics, SM, tensor, DRAM in microseconds of full activity, then PCIe bytes sent and
// received: all since the daemon started.
Reply GpuCalls::gpm_sample() {
  if (!card().gpm) return refused(Code::not_supported);
  Totals t = gpu.clients_.totals(request.mig, now_us);
  auto whole = [](double value) { return static_cast<std::uint64_t>(value + 0.5); };
  return {Code::success,
          {t.time_us, whole(t.busy_us), whole(t.sm_us), whole(t.tensor_us), whole(t.dram_us),
           whole(t.pcie_tx_bytes), whole(t.pcie_rx_bytes)},
          {}};
}

// Argument: how many were seen. Codes of those that are due since.
Reply GpuCalls::xids() {
  Reply reply;
  double running = static_cast<double>(now_us - gpu.started_us_) / 1e6;
  const auto& all = card().fault.xids;
  for (std::size_t i = argument(0); i < all.size() && all[i].at_seconds <= running; ++i)
    reply.numbers.push_back(all[i].code);
  return reply;
}

}  // namespace takt::emulator
