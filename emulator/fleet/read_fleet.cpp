#include "fleet/read_fleet.h"

#include <sys/stat.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "fleet/smi_fleet.h"

namespace takt::emulator {
namespace {

constexpr std::size_t kFleetBytesMax = 64 * 1024 * 1024;  // unpacked

// gzread passes plain files through.
Result<std::string> read_file(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0)
    return fail(ErrorKind::not_found,
                path + ": " + std::strerror(errno) +
                    "; expected a fleet file (YAML, or what nvidia-smi -q printed)");
  if (!S_ISREG(info.st_mode))
    return fail(ErrorKind::invalid, path + ": not a file; expected a fleet file");
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rbe"), gzclose);
  if (!file) return fail(ErrorKind::io, path + ": " + std::strerror(errno));
  std::string text;
  char buffer[65536];
  while (true) {
    int n = gzread(file.get(), buffer, sizeof buffer);
    if (n < 0)
      return fail(ErrorKind::invalid,
                  path + ": the gzip data is damaged; expected a whole .gz file");
    if (n == 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
    if (text.size() > kFleetBytesMax)
      return fail(ErrorKind::invalid, path + ": larger than 64 MiB; expected a fleet file");
  }
  int problem = Z_OK;
  gzerror(file.get(), &problem);
  if (problem == Z_BUF_ERROR)
    return fail(ErrorKind::invalid, path + ": the gzip data ends early; expected a whole .gz file");
  return text;
}

bool is_csv(const std::string& first_line) {
  return first_line.find(", ") != std::string::npos &&
         (first_line.find("utilization.gpu") != std::string::npos ||
          first_line.find("memory.used") != std::string::npos);
}

Result<Fleet> fleet_of_csv(const std::string& text, const std::string& place) {
  auto table = parse_csv(text, place);
  if (!table) return tl::make_unexpected(table.error());
  Fleet fleet;
  if (auto done = overlay_gpu_table(fleet, *table, place, true); !done)
    return tl::make_unexpected(done.error());
  if (fleet.gpus.empty())
    return fail(ErrorKind::invalid,
                place + ": line 2: no GPU in it; expected a row under the header");
  return fleet;
}

}  // namespace

Result<Fleet> fleet_of_text(const std::string& text, const std::string& place,
                            const std::string& state) {
  std::string head = text.substr(0, text.find('\n'));
  std::string start = trimmed(std::string_view(text).substr(0, 4096));
  if (start.empty())
    return fail(ErrorKind::invalid,
                place + ": line 1: empty; expected a fleet (YAML, or what nvidia-smi -q printed)");
  if (start.front() == '<') {
    auto document = parse_xml(text, place);
    if (!document) return tl::make_unexpected(document.error());
    return fleet_of_document(*document, place);
  }
  if (text.find("\n# capabilities :: ") != std::string::npos ||
      text.find("\n# idle :: ") != std::string::npos)
    return fleet_of_capture(text, place, state.empty() ? "idle" : state);
  if (text.find("NVSMI LOG") != std::string::npos) {
    auto document = parse_smi_text(text, place);
    if (!document) return tl::make_unexpected(document.error());
    return fleet_of_document(*document, place);
  }
  if (is_csv(head)) return fleet_of_csv(text, place);
  return fleet_of_yaml(text, place);
}

Result<Fleet> read_fleet(const std::string& selector) {
  FleetSelector chosen = selector_of(selector);
  auto text = read_file(chosen.path);
  if (!text) return tl::make_unexpected(text.error());
  auto fleet = fleet_of_text(*text, chosen.path, chosen.state);
  if (fleet && fleet->name.empty())
    fleet->name = std::filesystem::path(selector).filename().string();
  return fleet;
}

}  // namespace takt::emulator
