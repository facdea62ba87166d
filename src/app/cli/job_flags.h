#pragma once
// From the flags of `run` and `submit` to fields of a job spec.
#include "app/cli/commands.h"
#include "core/base/result.h"
#include "core/model/job_spec.h"

namespace takt::cli {

// Flags win over what the spec already says. All mistakes are named at once.
Result<void> apply_flags(const JobFlags& flags, JobSpec& spec);

// The caller's environment, as a job inherits it; what looks like a secret is marked. Variables
// that the spec sets keep the spec's value.
void inherit_environment(JobSpec& spec);

// An Error where the folder that we are in was removed: a job cannot run there.
Result<std::string> current_folder();

}  // namespace takt::cli
