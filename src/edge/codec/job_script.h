#pragma once
// Job scripts: a shell or Python script with `#SBATCH` options and `#TAKT key: value` headers (the
// keys of a job file without `run`) -> JobSpec. The spec holds the script's text, so that a later
// change of the file changes nothing. `#TAKT` wins over `#SBATCH`. Options that takt does not know
// are named in the warnings; those that would change what the script computes are refused.
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "edge/codec/job_spec_yaml.h"

namespace takt::codec {

// `file` is the script's name, for messages and for `$0`; `arguments` follow it.
Result<ParsedJob> parse_job_script(std::string_view text, const std::string& file,
                                   const std::vector<std::string>& arguments,
                                   const YamlContext& context);

// True when a file is a script rather than YAML: it begins with "#!" or has a header line.
bool looks_like_script(std::string_view text);

}  // namespace takt::codec
