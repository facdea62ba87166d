#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "app/report/report.h"
#include "app/report/table.h"
#include "app/report/text.h"
#include "app/report/words.h"
#include "core/model/quantity_text.h"

namespace takt::report {
namespace {

// Collects why numbers of a GPU are missing, so that a cell can be a plain "n/a" and the reason
// stands once below the GPU.
class Gaps {
 public:
  void add(const std::string& what, const Missing& why) {
    std::string& names = by_reason_[to_string(why)];
    names += (names.empty() ? "" : ", ") + what;
  }
  std::string sentence() const {
    std::string out;
    for (const auto& [reason, names] : by_reason_)
      out += (out.empty() ? "" : "; ") + names + " n/a (" + reason + ")";
    return out;
  }

 private:
  std::map<std::string, std::string> by_reason_;
};

template <class T>
std::string cell(const Measured<T>& value, const std::string& what, const char* unit, Gaps& gaps) {
  if (value) return fmt::format("{:.0f}{}", static_cast<double>(*value), unit);
  gaps.add(what, value.error());
  return "n/a";
}

std::string memory_cell(const Measured<Bytes>& used, const Measured<Bytes>& total, Gaps& gaps) {
  if (!used) gaps.add("memory used", used.error());
  if (!total) gaps.add("memory total", total.error());
  return (used ? format_size(*used) : std::string("n/a")) + " of " +
         (total ? format_size(*total) : std::string("n/a"));
}

std::string power_cell(const Gpu& gpu, Gaps& gaps) {
  const std::string power = cell(gpu.power_watts, "power", " W", gaps);
  if (!gpu.power_watts || !gpu.power_limit_watts) return power;
  return fmt::format("{:.0f} of {:.0f} W", *gpu.power_watts, *gpu.power_limit_watts);
}

// Reasons that hold the clocks below what the work would want. Idling and clocks that somebody set
// are reasons for the driver too, and no trouble.
std::string throttling(const std::vector<std::string>& reasons) {
  std::string out;
  for (const std::string& reason : reasons) {
    const bool harmless_reason = reason == "gpu_idle" || reason == "applications_clocks_setting" ||
                                 reason == "display_clock_setting" || reason == "sync_boost";
    if (!harmless_reason) out += (out.empty() ? "" : ", ") + reason;
  }
  return out;
}

Cell state_cell(const Gpu& gpu, Gaps& gaps) {
  if (gpu.health != GpuHealth::ok) return {to_string(gpu.health), Colour::red};
  if (!gpu.throttle_reasons) {
    gaps.add("throttling", gpu.throttle_reasons.error());
    return {"ok"};
  }
  if (throttling(*gpu.throttle_reasons).empty()) return {"ok", Colour::green};
  return {"throttled", Colour::yellow};
}

std::string process_sentence(const GpuProcess& p, Instant now) {
  const auto or_reason = [](const Measured<std::string>& value, const char* what) {
    return value ? *value : std::string(what) + " " + not_available(value.error());
  };
  std::string out =
      fmt::format("pid {}, {}, {}", p.pid, or_reason(p.user, "user"), or_reason(p.name, "program"));
  out += ", " + (p.memory ? format_size(*p.memory) : "memory " + not_available(p.memory.error()));
  if (p.sm_percent) out += fmt::format(", SM {} %", *p.sm_percent);
  out += p.started ? ", for " + format_duration(std::max(now - *p.started, Duration{}))
                   : ", age " + not_available(p.started.error());
  return out + (p.attempt ? ": job " + to_string(*p.attempt) : ": not started by takt");
}

void add_processes(Table& table, const Gpu& gpu, const std::optional<DeviceUuid>& instance,
                   const std::string& lead, Instant now) {
  if (!gpu.processes) return;
  for (const GpuProcess& p : *gpu.processes)
    if (p.mig_instance == instance)
      table.line(lead, process_sentence(p, now), p.foreign() ? Colour::yellow : Colour::none);
}

// A process whose instance is not listed: shown below the GPU, never lost.
void add_strays(Table& table, const Gpu& gpu, Instant now) {
  if (!gpu.processes) return;
  for (const GpuProcess& p : *gpu.processes) {
    if (!p.mig_instance) continue;
    const bool listed =
        std::any_of(gpu.mig.instances.begin(), gpu.mig.instances.end(),
                    [&](const MigInstance& i) { return i.uuid == *p.mig_instance; });
    if (!listed)
      table.line("     · ", process_sentence(p, now) + ", on " + p.mig_instance->value,
                 p.foreign() ? Colour::yellow : Colour::none);
  }
}

void add_mig(Table& table, const Gpu& gpu, Instant now) {
  if (gpu.mig.enabled && gpu.mig.pending && *gpu.mig.enabled != *gpu.mig.pending)
    table.line("     ", fmt::format("MIG becomes {} with the next reset of the GPU",
                                    *gpu.mig.pending ? "on" : "off"));
  if (gpu.mig.enabled && *gpu.mig.enabled && gpu.mig.instances.empty())
    table.line("     ", "MIG is on and there is no instance on it");
  for (const MigInstance& i : gpu.mig.instances) {
    const std::string start = i.start < 0 ? "?" : std::to_string(i.start);
    const std::string used = i.memory_used ? format_size(*i.memory_used)
                                           : "memory used " + not_available(i.memory_used.error());
    const std::string total =
        i.memory_total ? format_size(*i.memory_total) : not_available(i.memory_total.error());
    table.line("     └ ", fmt::format("{} at slice {}, {} of {}, {}", i.profile, start, used, total,
                                      i.uuid.value));
    add_processes(table, gpu, i.uuid, "        · ", now);
  }
}

void add_gpu(Table& table, const Gpu& gpu, Instant now) {
  Gaps gaps;
  const bool mig_on = gpu.mig.enabled && *gpu.mig.enabled;
  const std::string memory = memory_cell(gpu.memory_used, gpu.memory_total, gaps);
  const std::string util = cell(gpu.utilization_percent, "utilisation", " %", gaps);
  const std::string temperature = cell(gpu.temperature_celsius, "temperature", " °C", gaps);
  const std::string power = power_cell(gpu, gaps);
  const Cell state = state_cell(gpu, gaps);
  if (!gpu.processes) gaps.add("processes", gpu.processes.error());
  table.row({{std::to_string(gpu.index)},
             {gpu.model + (mig_on ? " (MIG)" : "")},
             {memory},
             {util},
             {temperature},
             {power},
             state});
  if (gpu.health != GpuHealth::ok)
    table.line("     ", gpu.health_reason.empty() ? "not handed out" : gpu.health_reason,
               Colour::red);
  if (gpu.health == GpuHealth::ok && gpu.throttle_reasons) {
    const std::string reasons = throttling(*gpu.throttle_reasons);
    if (!reasons.empty()) table.line("     ", "clocks held down by " + reasons, Colour::yellow);
  }
  if (!gpu.xids.empty()) {
    const XidEvent& last = gpu.xids.back();
    table.line(
        "     ",
        fmt::format(
            "XID {} {} ago{}", last.code, format_duration(std::max(now - last.at, Duration{})),
            gpu.xids.size() > 1 ? fmt::format(", {} in all", gpu.xids.size()) : std::string()));
  }
  const std::string missing_numbers = gaps.sentence();
  if (!missing_numbers.empty()) table.line("     ", missing_numbers, Colour::dim);
  add_processes(table, gpu, std::nullopt, "     · ", now);
  add_strays(table, gpu, now);
  add_mig(table, gpu, now);
}

std::string node_text(const control::NodeView& view, Instant now, const Screen& screen) {
  const std::size_t width = width_of(screen);
  const Node& node = view.node;
  std::string head = fmt::format("{}: {}", node.id.value,
                                 counted(static_cast<long long>(node.gpus.size()), "GPU"));
  if (node.emulated) head += ", EMULATED";
  if (node.cpus > 0) head += fmt::format(", {} CPUs", node.cpus);
  if (node.memory.value > 0) head += ", " + format_size(node.memory) + " of memory";
  if (!node.driver_version.empty()) head += ", driver " + node.driver_version;
  std::string out = paint(paragraph("", harmless(head), width), Colour::bold, screen);
  if (!view.reachable)
    out +=
        paint(paragraph("  ",
                        fmt::format("not reachable: the last report is {} old and so is all below",
                                    format_duration(std::max(now - view.seen, Duration{}))),
                        width),
              Colour::red, screen);
  if (!node.driver_problem.empty())
    out += paint(paragraph("  ", harmless(node.driver_problem), width), Colour::red, screen);
  for (const std::string& note : node.notes) out += paragraph("  note: ", harmless(note), width);
  if (node.gpus.empty()) {
    if (node.driver_problem.empty()) out += "  no NVIDIA GPU here\n";
    return out;
  }
  Table table({{"GPU", 0, 0, true},
               {"MODEL", 12},
               {"MEMORY"},
               {"UTIL", 0, 1, true},
               {"TEMP", 0, 3, true},
               {"POWER", 0, 4, true},
               {"STATE", 6}});
  for (const Gpu& gpu : node.gpus) add_gpu(table, gpu, now);
  return out + table.print(screen);
}

}  // namespace

std::string gpus_table(const std::vector<control::NodeView>& nodes, Instant now,
                       const Screen& screen) {
  if (nodes.empty())
    return "no node has reported yet: the agent is starting, or it could not be started (see takt "
           "doctor)\n";
  std::string out;
  for (const control::NodeView& node : nodes)
    out += (out.empty() ? "" : "\n") + node_text(node, now, screen);
  return out;
}

}  // namespace takt::report
