// Whole capture files: sections "# <state> :: <what>" with the output of one command each.
#include <fmt/core.h>

#include <map>
#include <set>

#include "fleet/quantity.h"
#include "fleet/read_fleet.h"
#include "fleet/smi_fleet.h"

namespace takt::emulator {
namespace {

struct Section {
  std::string text;
  int first_line = 1;
};

// Keyed by "state :: first words" ("load :: query (-q)").
std::map<std::string, Section> sections_of(std::string_view text) {
  std::map<std::string, Section> sections;
  Section* open = nullptr;
  bool heading = false;
  int number = 0;
  while (!text.empty()) {
    auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    if (line.rfind("########", 0) == 0) {
      if (!heading) open = nullptr;
      heading = false;
      continue;
    }
    auto mark = line.find(" :: ");
    if (line.rfind("# ", 0) == 0 && mark != std::string_view::npos && open == nullptr) {
      open = &sections[trimmed(line.substr(2))];
      heading = true;
      continue;
    }
    if (heading || open == nullptr) continue;  // "# $ nvidia-smi ..." and what stands between
    if (open->text.empty()) open->first_line = number;
    open->text += line;
    open->text += '\n';
  }
  return sections;
}

const Section* section(const std::map<std::string, Section>& all, const std::string& start) {
  auto at = all.lower_bound(start);
  return at != all.end() && at->first.rfind(start, 0) == 0 ? &at->second : nullptr;
}

// "  MIG 3g.40gb     Device  0: (UUID: MIG-...)" of nvidia-smi -L.
void take_list(Fleet& fleet, const Section& list) {
  FleetGpu* gpu = nullptr;
  std::string_view text = list.text;
  std::size_t next = 0;
  while (!text.empty()) {
    auto end = text.find('\n');
    std::string line = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    auto uuid_at = line.find("(UUID: ");
    if (uuid_at == std::string::npos) continue;
    std::string uuid = line.substr(uuid_at + 7, line.find(')', uuid_at) - uuid_at - 7);
    if (line.rfind("GPU ", 0) == 0) {
      gpu = next < fleet.gpus.size() ? &fleet.gpus[next] : nullptr;
      ++next;
    } else if (gpu != nullptr && line.rfind("MIG ", 0) == 0) {
      auto device = line.find("Device");
      auto colon = line.find(':', device == std::string::npos ? 0 : device);
      if (device == std::string::npos || colon == std::string::npos) continue;
      auto index = parse_scaled(line.substr(device + 6, colon - device - 6), "", 1);
      if (!index || *index >= gpu->migs.size()) continue;
      FleetMig& mig = gpu->migs[*index];
      mig.uuid = uuid;
      auto g = line.find('g');
      if (auto slices = parse_scaled(line.substr(4, g - 4), "", 1)) mig.compute_slices = *slices;
    }
  }
}

// "GPU0  X  NV18 ...  0-19  0  N/A" of nvidia-smi topo -m. The header may be underlined by escapes.
void take_topology(Fleet& fleet, const Section& topology) {
  std::vector<std::vector<std::string>> rows;
  std::string_view text = topology.text;
  while (!text.empty()) {
    auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.rfind("GPU", 0) != 0) continue;
    std::vector<std::string> words;
    std::string word;
    for (char c : std::string(line) + "\t") {
      if (c != '\t') {
        word += c;
        continue;
      }
      words.push_back(trimmed(word));
      word.clear();
    }
    rows.push_back(std::move(words));
  }
  const std::map<std::string, Topology> words = {{"PIX", Topology::single},
                                                 {"PXB", Topology::multiple},
                                                 {"PHB", Topology::hostbridge},
                                                 {"NODE", Topology::node},
                                                 {"SYS", Topology::system}};
  std::size_t count = std::min(rows.size(), fleet.gpus.size());
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < count && b + 1 < rows[a].size(); ++b) {
      const std::string& link = rows[a][b + 1];
      if (auto known = words.find(link); known != words.end() && a < b)
        fleet.topology[{static_cast<unsigned>(a), static_cast<unsigned>(b)}] = known->second;
      if (link.rfind("NV", 0) == 0)
        if (auto n = parse_scaled(link.substr(2), "", 1))
          fleet.gpus[a].nvlinks.push_back({static_cast<unsigned>(b), static_cast<unsigned>(*n)});
    }
    // Columns after the GPUs: CPU affinity, NUMA affinity.
    if (rows[a].size() > rows.size() + 2)
      if (auto numa = parse_scaled(rows[a][rows.size() + 2], "", 1))
        fleet.gpus[a].numa_node = *numa;
  }
}

// Links of nvidia-smi nvlink -s that no other GPU of the fleet accounts for lead to a switch.
void take_nvlinks(Fleet& fleet, const Section& links) {
  std::size_t next = 0;
  FleetGpu* gpu = nullptr;
  std::string_view text = links.text;
  while (!text.empty()) {
    auto end = text.find('\n');
    std::string line = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.rfind("GPU ", 0) == 0)
      gpu = next < fleet.gpus.size() ? &fleet.gpus[next++] : nullptr;
    else if (gpu != nullptr && line.rfind("Link ", 0) == 0 &&
             line.find("GB/s") != std::string::npos)
      ++gpu->nvlinks_to_switch;
  }
  for (auto& each : fleet.gpus)
    for (const auto& link : each.nvlinks)
      each.nvlinks_to_switch -= std::min(each.nvlinks_to_switch, link.count);
}

// The version that nvidia-smi --version prints: "NVML version  : 590.48".
std::string nvml_version(const Section& version, const std::string& place) {
  auto document = parse_smi_text(version.text, place, version.first_line);
  const Entry* entry = document ? document->child("nvml_version") : nullptr;
  return entry == nullptr ? std::string() : entry->value;
}

}  // namespace

Result<Fleet> fleet_of_capture(const std::string& text, const std::string& place,
                               const std::string& state) {
  auto sections = sections_of(text);
  const Section* query = section(sections, state + " :: query (-q)");
  if (query == nullptr)
    return fail(
        ErrorKind::invalid,
        fmt::format("{}: no section '{} :: query (-q)'; expected the output of nvidia-smi -q there",
                    place, state));
  auto document = parse_smi_text(query->text, place, query->first_line);
  if (!document) return tl::make_unexpected(document.error());
  auto fleet = fleet_of_document(*document, place);
  if (!fleet) return fleet;
  if (const Section* list = section(sections, "capabilities :: list (-L)"))
    take_list(*fleet, *list);
  if (const Section* topo = section(sections, "capabilities :: topo -m"))
    take_topology(*fleet, *topo);
  if (const Section* links = section(sections, "capabilities :: nvlink -s"))
    take_nvlinks(*fleet, *links);
  if (const Section* version = section(sections, "capabilities :: version"))
    fleet->nvml_version = nvml_version(*version, place);
  if (const Section* csv = section(sections, state + " :: query-gpu (csv")) {
    auto table = parse_csv(csv->text, place, csv->first_line);
    if (!table) return tl::make_unexpected(table.error());
    if (auto done = overlay_gpu_table(*fleet, *table, place, false); !done)
      return tl::make_unexpected(done.error());
  }
  if (const Section* csv = section(sections, state + " :: query-compute-apps")) {
    auto table = parse_csv(csv->text, place, csv->first_line);
    if (!table) return tl::make_unexpected(table.error());
    if (auto done = overlay_process_table(*fleet, *table, place); !done)
      return tl::make_unexpected(done.error());
  }
  return fleet;
}

}  // namespace takt::emulator
