#include "fleet/smi_fleet.h"

#include <fmt/core.h>

#include <charconv>

#include "fleet/quantity.h"

namespace takt::emulator {
namespace {

using Names = std::initializer_list<std::string_view>;

// Reads entries of one document and keeps the first problem.
class Reader {
 public:
  explicit Reader(std::string place) : place_(std::move(place)) {}

  const std::optional<Error>& problem() const { return problem_; }

  // One that is absent is not supported by that card or driver.
  Reading number(const Entry* group, Names names, std::string_view unit, double scale) {
    const Entry* entry = group == nullptr ? nullptr : group->first_child(names);
    return entry == nullptr ? answer(Code::not_supported) : value(*entry, unit, scale);
  }

  Reading value(const Entry& entry, std::string_view unit, double scale) {
    if (auto code = code_by_words(entry.value)) return answer(*code);
    if (auto parsed = parse_scaled(entry.value, unit, scale)) return *parsed;
    complain(entry, unit.empty() ? "a number" : fmt::format("a number of {}", unit));
    return answer(Code::unknown);
  }

  Reading bytes(const Entry* group, Names names) {
    const Entry* entry = group == nullptr ? nullptr : group->first_child(names);
    if (entry == nullptr) return answer(Code::not_supported);
    if (auto code = code_by_words(entry->value)) return answer(*code);
    if (auto parsed = parse_bytes(entry->value)) return *parsed;
    complain(*entry, "a size such as '81559 MiB'");
    return answer(Code::unknown);
  }

  Reading hexadecimal(const Entry* group, Names names) {
    const Entry* entry = group == nullptr ? nullptr : group->first_child(names);
    if (entry == nullptr) return answer(Code::not_supported);
    if (auto code = code_by_words(entry->value)) return answer(*code);
    std::string_view digits = entry->value;
    if (digits.rfind("0x", 0) == 0) digits.remove_prefix(2);
    std::uint64_t out = 0;
    auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), out, 16);
    if (bad == std::errc() && end == digits.data() + digits.size()) return out;
    complain(*entry, "a hexadecimal number");
    return answer(Code::unknown);
  }

  Reading on_off(const Entry* group, Names names) {
    const Entry* entry = group == nullptr ? nullptr : group->first_child(names);
    if (entry == nullptr) return answer(Code::not_supported);
    if (entry->value == "Enabled" || entry->value == "Active" || entry->value == "Yes") return 1;
    if (entry->value == "Disabled" || entry->value == "Not Active" || entry->value == "No")
      return 0;
    if (auto code = code_by_words(entry->value)) return answer(*code);
    complain(*entry, "Enabled or Disabled, Active or Not Active");
    return answer(Code::unknown);
  }

  void complain(const Entry& entry, const std::string& expected) {
    if (problem_) return;
    problem_ =
        Error{ErrorKind::invalid, fmt::format("{}: line {}: {} is '{}'; expected {} or N/A", place_,
                                              entry.line, entry.name, entry.value, expected)};
  }

 private:
  std::string place_;
  std::optional<Error> problem_;
};

std::string text_of(const Entry* group, Names names) {
  const Entry* entry = group == nullptr ? nullptr : group->first_child(names);
  return entry == nullptr ? std::string() : entry->value;
}

void read_memory(Reader& r, const Entry& gpu, FleetGpu& out) {
  const Entry* fb = gpu.child("fb_memory_usage");
  out.memory_total = r.bytes(fb, {"total"});
  out.memory_reserved = r.bytes(fb, {"reserved"});
  out.memory_used = r.bytes(fb, {"used"});
  out.memory_free = r.bytes(fb, {"free"});
}

void read_power(Reader& r, const Entry& gpu, FleetGpu& out) {
  const Entry* power = gpu.first_child({"gpu_power_readings", "power_readings"});
  out.power = r.number(
      power, {"power_draw", "instant_power_draw", "average_power_draw", "instantaneous_power_draw"},
      "W", 1000);
  out.power_limit =
      r.number(power, {"enforced_power_limit", "current_power_limit", "power_limit"}, "W", 1000);
}

// Bits of the public nvmlClocksEventReason constants.
struct ReasonBit {
  std::string_view name;
  std::uint64_t bit;
};
constexpr ReasonBit kReasons[] = {
    {"idle", 0x1},
    {"applications_clocks_setting", 0x2},
    {"sw_power_cap", 0x4},
    {"hw_slowdown", 0x8},
    {"sync_boost", 0x10},
    {"sw_thermal_slowdown", 0x20},
    {"hw_thermal_slowdown", 0x40},
    {"hw_power_brake_slowdown", 0x80},
    {"display_clock_setting", 0x100},
    {"display_clocks_setting", 0x100},
    {"gpu_idle", 0x1},
};

void collect_reasons(Reader& r, const Entry& group, std::uint64_t& mask, std::optional<Code>& code,
                     bool& any) {
  for (const auto& entry : group.children) {
    std::string_view name = entry.name;
    for (std::string_view prefix : {"clocks_event_reason_", "clocks_throttle_reason_"})
      if (name.rfind(prefix, 0) == 0) name.remove_prefix(prefix.size());
    for (const auto& reason : kReasons) {
      if (name != reason.name) continue;
      Entry copy{entry.name, entry.value, {}, entry.line, {}};
      Entry wrap{{}, {}, {}, entry.line, {copy}};
      Reading on = r.on_off(&wrap, {std::string_view(copy.name)});
      if (!on)
        code = on.error();
      else if (*on == 1)
        mask |= reason.bit;
      if (on) any = true;
    }
    collect_reasons(r, entry, mask, code, any);
  }
}

Reading read_reasons(Reader& r, const Entry& gpu) {
  const Entry* group = gpu.first_child({"clocks_event_reasons", "clocks_throttle_reasons"});
  if (group == nullptr) return answer(Code::not_supported);
  if (group->children.empty()) {
    auto code = code_by_words(group->value);
    return answer(code.value_or(Code::not_supported));
  }
  std::uint64_t mask = 0;
  std::optional<Code> code;
  bool any = false;
  collect_reasons(r, *group, mask, code, any);
  if (!any) return answer(code.value_or(Code::not_supported));
  return mask;
}

// Totals are given by older schemas; newer ones give the parts, which are added. A part that is not
// available leaves the total unavailable: a sum over the others would pretend to be complete.
Reading ecc_sum(Reader& r, const Entry* group, Names names) {
  std::uint64_t sum = 0;
  std::optional<Code> code;
  bool any = false;
  for (auto name : names) {
    if (group == nullptr || group->child(name) == nullptr) continue;
    Reading part = r.number(group, {name}, "", 1);
    if (!part)
      code = part.error();
    else
      sum += *part;
    any = true;
  }
  if (!any || code) return answer(code.value_or(Code::not_supported));
  return sum;
}

Reading ecc_total(Reader& r, const Entry* period, std::string_view old_name, Names parts) {
  const Entry* old = period == nullptr ? nullptr : period->child(old_name);
  if (old != nullptr) return r.number(old, {"total"}, "", 1);
  return ecc_sum(r, period, parts);
}

void read_ecc(Reader& r, const Entry& gpu, FleetGpu& out) {
  const Entry* ecc = gpu.child("ecc_errors");
  const Entry* now = ecc == nullptr ? nullptr : ecc->child("volatile");
  const Entry* ever = ecc == nullptr ? nullptr : ecc->child("aggregate");
  const Names corrected = {"sram_correctable", "dram_correctable"};
  const Names uncorrected = {"sram_uncorrectable", "sram_uncorrectable_parity",
                             "sram_uncorrectable_secded", "sram_uncorrectable_sec_ded",
                             "dram_uncorrectable"};
  out.ecc_corrected_volatile = ecc_total(r, now, "single_bit", corrected);
  out.ecc_uncorrected_volatile = ecc_total(r, now, "double_bit", uncorrected);
  out.ecc_corrected_aggregate = ecc_total(r, ever, "single_bit", corrected);
  out.ecc_uncorrected_aggregate = ecc_total(r, ever, "double_bit", uncorrected);
}

void read_pci(Reader& r, const Entry& gpu, FleetGpu& out) {
  const Entry* pci = gpu.child("pci");
  out.bus_id = text_of(pci, {"pci_bus_id", "bus_id"});
  if (out.bus_id.empty()) out.bus_id = gpu.id;
  out.pci_device_id = r.hexadecimal(pci, {"pci_device_id", "device_id"});
  out.pci_subsystem_id = r.hexadecimal(pci, {"pci_sub_system_id", "sub_system_id"});
  out.pcie_tx = r.number(pci, {"tx_util", "tx_throughput"}, "KB/s", 1);
  out.pcie_rx = r.number(pci, {"rx_util", "rx_throughput"}, "KB/s", 1);
}

Reading read_pstate(Reader& r, const Entry& gpu) {
  const Entry* entry = gpu.child("performance_state");
  if (entry == nullptr) return answer(Code::not_supported);
  if (auto code = code_by_words(entry->value)) return answer(*code);
  if (entry->value.size() > 1 && entry->value[0] == 'P')
    if (auto n = parse_scaled(entry->value.substr(1), "", 1); n && *n <= 15) return *n;
  r.complain(*entry, "P0 to P15");
  return answer(Code::unknown);
}

FleetMig read_mig(Reader& r, const Entry& device) {
  FleetMig mig;
  mig.gpu_instance =
      static_cast<unsigned>(r.number(&device, {"gpu_instance_id"}, "", 1).value_or(0));
  mig.compute_instance =
      static_cast<unsigned>(r.number(&device, {"compute_instance_id"}, "", 1).value_or(0));
  mig.uuid = text_of(&device, {"mig_uuid", "uuid"});
  const Entry* attributes = device.child("device_attributes");
  const Entry* shared = attributes == nullptr ? nullptr : attributes->child("shared");
  mig.multiprocessors = r.number(shared, {"multiprocessor_count"}, "", 1);
  mig.copy_engines = r.number(shared, {"copy_engine_count"}, "", 1);
  const Entry* fb = device.first_child({"fb_memory_usage", "shared_fb_memory_usage"});
  mig.memory_total = r.bytes(fb, {"total"});
  mig.memory_reserved = r.bytes(fb, {"reserved"});
  mig.memory_used = r.bytes(fb, {"used"});
  mig.memory_free = r.bytes(fb, {"free"});
  return mig;
}

void read_migs(Reader& r, const Entry& gpu, FleetGpu& out) {
  const Entry* mode = gpu.child("mig_mode");
  if (mode != nullptr && mode->children.empty()) {
    out.mig_current = out.mig_pending =
        answer(code_by_words(mode->value).value_or(Code::not_supported));
  } else {
    out.mig_current = r.on_off(mode, {"current_mig", "current"});
    out.mig_pending = r.on_off(mode, {"pending_mig", "pending"});
  }
  if (const Entry* list = gpu.child("mig_devices"))
    for (const auto& device : list->children)
      if (device.name == "mig_device") out.migs.push_back(read_mig(r, device));
  for (const auto& device : gpu.children)
    if (device.name == "mig_device") out.migs.push_back(read_mig(r, device));
}

std::optional<unsigned> instance_of(const Reading& id) {
  return id ? std::optional<unsigned>(static_cast<unsigned>(*id)) : std::nullopt;
}

void read_process(Reader& r, const Entry& pid, const Entry& fields, const Reading& gi,
                  const Reading& ci, FleetGpu& out) {
  FleetProcess process;
  Reading number = r.value(pid, "", 1);
  if (!number) return;
  process.pid = static_cast<unsigned>(*number);
  std::string type = text_of(&fields, {"type"});
  process.graphics = type.find('G') != std::string::npos;
  process.compute = type.find('C') != std::string::npos || !process.graphics;
  process.name = text_of(&fields, {"process_name", "name"});
  process.memory = r.bytes(&fields, {"used_memory", "used_gpu_memory"});
  process.gpu_instance = instance_of(gi);
  process.compute_instance = instance_of(ci);
  out.processes.push_back(std::move(process));
}

// XML groups a process in <process_info>; the text form writes the instance ids before the process.
void read_processes(Reader& r, const Entry& gpu, FleetGpu& out) {
  const Entry* list = gpu.child("processes");
  if (list == nullptr) return;
  Reading gi = answer(Code::not_supported);
  Reading ci = answer(Code::not_supported);
  for (const auto& entry : list->children) {
    if (entry.name == "process_info") {
      const Entry* pid = entry.child("pid");
      if (pid != nullptr)
        read_process(r, *pid, entry, r.number(&entry, {"gpu_instance_id"}, "", 1),
                     r.number(&entry, {"compute_instance_id"}, "", 1), out);
    } else if (entry.name == "gpu_instance_id") {
      gi = r.value(entry, "", 1);
    } else if (entry.name == "compute_instance_id") {
      ci = r.value(entry, "", 1);
    } else if (entry.name == "process_id") {
      read_process(r, entry, entry, gi, ci, out);
    }
  }
}

FleetGpu read_gpu(Reader& r, const Entry& gpu) {
  FleetGpu out;
  out.measured = true;
  out.name = text_of(&gpu, {"product_name"});
  out.uuid = text_of(&gpu, {"uuid", "gpu_uuid"});
  out.minor = r.number(&gpu, {"minor_number"}, "", 1);
  read_pci(r, gpu, out);
  read_memory(r, gpu, out);
  const Entry* use = gpu.child("utilization");
  out.utilization_gpu = r.number(use, {"gpu_util", "gpu"}, "%", 1);
  out.utilization_memory = r.number(use, {"memory_util", "memory"}, "%", 1);
  out.temperature = r.number(gpu.child("temperature"), {"gpu_temp", "gpu_current_temp"}, "C", 1);
  out.fan = r.number(&gpu, {"fan_speed"}, "%", 1);
  read_power(r, gpu, out);
  const Entry* clocks = gpu.child("clocks");
  out.clock_graphics = r.number(clocks, {"graphics_clock", "graphics"}, "MHz", 1);
  out.clock_sm = r.number(clocks, {"sm_clock", "sm"}, "MHz", 1);
  out.clock_memory = r.number(clocks, {"mem_clock", "memory"}, "MHz", 1);
  out.clock_video = r.number(clocks, {"video_clock", "video"}, "MHz", 1);
  out.clock_sm_max = r.number(gpu.child("max_clocks"), {"sm_clock", "sm"}, "MHz", 1);
  out.event_reasons = read_reasons(r, gpu);
  out.performance_state = read_pstate(r, gpu);
  read_ecc(r, gpu, out);
  read_migs(r, gpu, out);
  read_processes(r, gpu, out);
  return out;
}

const Entry* log_of(const Entry& document) {
  const Entry* log = document.child("nvidia_smi_log");
  return log == nullptr ? &document : log;
}

// "12.4" -> 12040.
Reading cuda_of(const std::string& text) {
  auto version = parse_scaled(text, "", 1000);
  if (!version || code_by_words(text)) return answer(Code::not_supported);
  auto dot = text.find('.');
  auto major = parse_scaled(text.substr(0, dot), "", 1);
  auto minor = dot == std::string::npos ? std::optional<std::uint64_t>(0)
                                        : parse_scaled(text.substr(dot + 1), "", 1);
  if (!major || !minor) return answer(Code::not_supported);
  return *major * 1000 + *minor * 10;
}

}  // namespace

Result<Fleet> fleet_of_document(const Entry& document, const std::string& place) {
  Reader reader(place);
  const Entry* log = log_of(document);
  Fleet fleet;
  fleet.driver_version = text_of(log, {"driver_version"});
  fleet.cuda_version = cuda_of(text_of(log, {"cuda_version"}));
  for (const auto& entry : log->children) {
    if (entry.name != "gpu") continue;
    fleet.gpus.push_back(read_gpu(reader, entry));
    FleetGpu& gpu = fleet.gpus.back();
    if (gpu.uuid.empty())
      return fail(
          ErrorKind::invalid,
          fmt::format("{}: line {}: the GPU {} has no uuid; expected a field uuid (GPU UUID)",
                      place, entry.line, gpu.bus_id));
    complete_migs(gpu);
  }
  if (reader.problem()) return tl::make_unexpected(*reader.problem());
  if (fleet.gpus.empty())
    return fail(
        ErrorKind::invalid,
        fmt::format("{}: line {}: no GPU in it; expected at least one <gpu> of nvidia-smi -q -x or "
                    "'GPU <bus id>' of nvidia-smi -q",
                    place, log->line));
  return fleet;
}

}  // namespace takt::emulator
