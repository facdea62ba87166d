#pragma once
// The options of `#SBATCH` lines: which takt follows, which it only notes, which it must refuse.
// Names and meanings: the sbatch manual page of Slurm. Internal.
#include <string>
#include <string_view>
#include <vector>

#include "core/base/quantities.h"
#include "core/model/job_spec.h"
#include "edge/codec/yaml_value.h"

namespace takt::codec {

// One option as it stands in the file: "--mem=8G", "-c 4". A flag has no value.
struct SbatchOption {
  int line = 1;
  std::string name;  // long form, without dashes: "mem"
  std::string value;
  bool has_value = false;
};

// The options of one header line (what follows "#SBATCH"). A text that is no option is a fault.
std::vector<SbatchOption> split_sbatch_line(std::string_view rest, int line, YamlFaults& faults);

// Puts the options into `spec`. Later ones win, as in Slurm.
void apply_sbatch_options(const std::vector<SbatchOption>& options, std::size_t array_tasks_max,
                          JobSpec& spec, std::vector<std::string>& warnings, YamlFaults& faults);

// Slurm's time limits: "30" (minutes), "MM:SS", "HH:MM:SS", "D-HH", "D-HH:MM", "D-HH:MM:SS".
Result<Duration> parse_slurm_time(std::string_view text);
// Slurm's sizes: a number of MiB, or with K, M, G or T by 1024.
Result<Bytes> parse_slurm_memory(std::string_view text);

}  // namespace takt::codec
