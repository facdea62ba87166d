// What the csv tables of a capture add to the fleet that -q gave.
#include <fmt/core.h>

#include "fleet/quantity.h"
#include "fleet/smi_fleet.h"

namespace takt::emulator {
namespace {

// How the number of a column becomes that of a reading.
struct Column {
  std::string_view name;
  Reading FleetGpu::*field;
  std::string_view unit;
  double scale;
};

constexpr Column kColumns[] = {
    {"memory.total", &FleetGpu::memory_total, "MiB", 1048576.0},
    {"memory.reserved", &FleetGpu::memory_reserved, "MiB", 1048576.0},
    {"memory.used", &FleetGpu::memory_used, "MiB", 1048576.0},
    {"memory.free", &FleetGpu::memory_free, "MiB", 1048576.0},
    {"utilization.gpu", &FleetGpu::utilization_gpu, "%", 1},
    {"utilization.memory", &FleetGpu::utilization_memory, "%", 1},
    {"temperature.gpu", &FleetGpu::temperature, "C", 1},
    {"fan.speed", &FleetGpu::fan, "%", 1},
    {"power.draw", &FleetGpu::power, "W", 1000},
    {"enforced.power.limit", &FleetGpu::power_limit, "W", 1000},
    {"clocks.current.graphics", &FleetGpu::clock_graphics, "MHz", 1},
    {"clocks.current.sm", &FleetGpu::clock_sm, "MHz", 1},
    {"clocks.current.memory", &FleetGpu::clock_memory, "MHz", 1},
    {"clocks.current.video", &FleetGpu::clock_video, "MHz", 1},
    {"clocks.max.sm", &FleetGpu::clock_sm_max, "MHz", 1},
    {"ecc.errors.corrected.volatile.total", &FleetGpu::ecc_corrected_volatile, "", 1},
    {"ecc.errors.corrected.aggregate.total", &FleetGpu::ecc_corrected_aggregate, "", 1},
    {"ecc.errors.uncorrected.volatile.total", &FleetGpu::ecc_uncorrected_volatile, "", 1},
    {"ecc.errors.uncorrected.aggregate.total", &FleetGpu::ecc_uncorrected_aggregate, "", 1},
};

Result<Reading> read_cell(const std::string& text, const Column& column, const std::string& place,
                          int line) {
  if (auto code = code_by_words(text)) return Reading(answer(*code));
  if (auto number = parse_scaled(text, column.unit, column.scale)) return Reading(*number);
  return fail(ErrorKind::invalid,
              fmt::format("{}: line {}: {} is '{}'; expected a number{}{} or [N/A]", place, line,
                          column.name, text, column.unit.empty() ? "" : " of ", column.unit));
}

FleetGpu* gpu_of_row(Fleet& fleet, const CsvTable& table, const CsvTable::Row& row,
                     std::size_t number, bool add) {
  const std::string* uuid = table.cell(row, "uuid");
  if (uuid == nullptr) uuid = table.cell(row, "gpu_uuid");
  const std::string* bus = table.cell(row, "pci.bus_id");
  if (bus == nullptr) bus = table.cell(row, "gpu_bus_id");
  for (auto& gpu : fleet.gpus)
    if ((bus == nullptr || gpu.bus_id == *bus) && (uuid == nullptr || gpu.uuid == *uuid))
      return &gpu;
  if (!add) return nullptr;
  FleetGpu gpu;
  gpu.measured = true;
  const std::string* name = table.cell(row, "name");
  gpu.name = name == nullptr ? "unknown GPU" : *name;
  gpu.uuid = uuid == nullptr ? fmt::format("GPU-00000000-0000-0000-0000-{:012d}", number) : *uuid;
  gpu.bus_id = bus == nullptr ? fmt::format("00000000:{:02X}:00.0", number + 1) : *bus;
  fleet.gpus.push_back(std::move(gpu));
  return &fleet.gpus.back();
}

Reading pstate_of(const std::string& text) {
  if (auto code = code_by_words(text)) return answer(*code);
  auto number =
      text.size() > 1 && text[0] == 'P' ? parse_scaled(text.substr(1), "", 1) : std::nullopt;
  return number && *number <= 15 ? Reading(*number) : answer(Code::unknown);
}

Reading mask_of(const std::string& text) {
  if (auto code = code_by_words(text)) return answer(*code);
  char* end = nullptr;
  std::uint64_t mask = std::strtoull(text.c_str(), &end, 16);
  return *end == '\0' ? Reading(mask) : answer(Code::unknown);
}

// A card that needs a reset prints memory.used as 0: the zero is not a measurement.
void spread_loss(FleetGpu& gpu) {
  for (Code code : {Code::reset_required, Code::gpu_is_lost}) {
    auto is = [&](const Reading& r) { return !r && r.error() == code; };
    if (!is(gpu.utilization_gpu) && !is(gpu.temperature)) continue;
    gpu.memory_total = gpu.memory_used = gpu.memory_free = gpu.memory_reserved = answer(code);
    (code == Code::reset_required ? gpu.fault.reset_required : gpu.fault.lost) = true;
  }
}

}  // namespace

Result<void> overlay_gpu_table(Fleet& fleet, const CsvTable& table, const std::string& place,
                               bool add) {
  std::size_t number = 0;
  for (const auto& row : table.rows) {
    FleetGpu* gpu = gpu_of_row(fleet, table, row, number++, add);
    if (gpu == nullptr) continue;
    for (const auto& column : kColumns) {
      const std::string* text = table.cell(row, column.name);
      if (text == nullptr) continue;
      auto reading = read_cell(*text, column, place, row.line);
      if (!reading) return tl::make_unexpected(reading.error());
      gpu->*column.field = *reading;
    }
    if (const auto* text = table.cell(row, "pstate")) gpu->performance_state = pstate_of(*text);
    const auto* reasons = table.cell(row, "clocks_event_reasons.active");
    if (reasons == nullptr) reasons = table.cell(row, "clocks_throttle_reasons.active");
    if (reasons != nullptr) gpu->event_reasons = mask_of(*reasons);
    if (const auto* text = table.cell(row, "driver_version");
        text != nullptr && fleet.driver_version.empty())
      fleet.driver_version = *text;
    spread_loss(*gpu);
  }
  return {};
}

Result<void> overlay_process_table(Fleet& fleet, const CsvTable& table, const std::string& place) {
  for (const auto& row : table.rows) {
    const std::string* pid_text = table.cell(row, "pid");
    if (pid_text == nullptr) return {};
    auto pid = parse_scaled(*pid_text, "", 1);
    if (!pid)
      return fail(ErrorKind::invalid, fmt::format("{}: line {}: pid is '{}'; expected a number",
                                                  place, row.line, *pid_text));
    FleetGpu* gpu = gpu_of_row(fleet, table, row, 0, false);
    if (gpu == nullptr) continue;
    FleetProcess* known = nullptr;
    for (auto& process : gpu->processes)
      if (process.pid == *pid) known = &process;
    if (known == nullptr) {
      gpu->processes.emplace_back();
      known = &gpu->processes.back();
      known->pid = static_cast<unsigned>(*pid);
    }
    if (const auto* name = table.cell(row, "process_name")) known->name = *name;
    if (const auto* memory = table.cell(row, "used_gpu_memory")) {
      auto bytes = parse_bytes(*memory);
      if (bytes) known->memory = *bytes;
    }
  }
  return {};
}

}  // namespace takt::emulator
