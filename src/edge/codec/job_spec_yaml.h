#pragma once
// Job files: strict YAML -> JobSpec. The grammar is in docs/job-spec.md. Unknown and repeated keys,
// wrong units and contradictions are refused, all at once where possible, one line each:
//   job.yaml: line 4: gpus.memory: '12 gibibyte' is not a size; expected ...
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/model/job_spec.h"
#include "core/model/policy.h"

namespace takt::codec {

// What a file does not say and its reader knows.
struct YamlContext {
  std::string workdir;  // absolute: where the submitter stands; a relative `workdir:` starts here
  Limits limits;
};

struct ParsedJob {
  JobSpec spec;                       // `tier` and `isolation` stay empty when not given
  std::vector<std::string> warnings;  // sentences: what was recorded but is not used
};

// `file` is only for messages.
Result<ParsedJob> parse_job_yaml(std::string_view text, const std::string& file,
                                 const YamlContext& context);

}  // namespace takt::codec
