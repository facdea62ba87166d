#pragma once
// From the tree of `nvidia-smi -q` or `-q -x` (document.h) to a fleet, and what csv tables of the
// same machine add.
#include <string>
#include <vector>

#include "fleet/document.h"
#include "fleet/fleet.h"

namespace takt::emulator {

// An error names place, line and field. At least one GPU is expected.
Result<Fleet> fleet_of_document(const Entry& document, const std::string& place);

// A table of `nvidia-smi --query-... --format=csv`; names are lower case without their unit
// ("memory.used [MiB]" -> "memory.used").
struct CsvTable {
  std::vector<std::string> columns;
  struct Row {
    int line = 0;
    std::vector<std::string> cells;
  };
  std::vector<Row> rows;

  const std::string* cell(const Row& row, std::string_view column) const;
};
Result<CsvTable> parse_csv(std::string_view text, const std::string& place, int first_line = 1);

// Values of --query-gpu win over those of -q: both are of the same machine, the table is later.
// Rows are matched by uuid and bus id; a row of an unknown GPU adds it where `add` is set.
Result<void> overlay_gpu_table(Fleet& fleet, const CsvTable& table, const std::string& place,
                               bool add);
// --query-compute-apps: names, and processes that -q did not list.
Result<void> overlay_process_table(Fleet& fleet, const CsvTable& table, const std::string& place);

// Gives MIG devices what the capture does not say but their sizes do: slices, a UUID where none was
// printed (a stable one, made of the GPU's and the instance ids), the number of instances possible.
void complete_migs(FleetGpu& gpu);

}  // namespace takt::emulator
