#pragma once
// The fields of a job file, read into a draft: shared by YAML files and `#TAKT` headers. Internal.
#include <string>

#include "edge/codec/job_spec_yaml.h"
#include "edge/codec/yaml_value.h"

namespace takt::codec {

enum class RunField { expected, refused };  // refused: the script itself is what runs

// Reads every field of the mapping `root` into `spec`; what is wrong goes into fields.faults.
void read_job_fields(const YamlValue& root, RunField run, const YamlContext& context,
                     YamlFields& fields, JobSpec& spec);

// Checks the rules of job_spec_rules.h, with the lines that `fields` knows, and gives the result.
Result<ParsedJob> finish_job(JobSpec spec, std::vector<std::string> warnings, YamlFields& fields,
                             const YamlContext& context);

// `path` if it is absolute, else below `base`.
std::string resolve_workdir(const std::string& base, const std::string& path);

}  // namespace takt::codec
