#pragma once
// The rules a job spec must obey, whatever it was written in: YAML, a script, flags or JSON.
// Pure: says nothing about whether a machine can meet it (that is the scheduler's answer).
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/model/job_spec.h"
#include "core/model/policy.h"

namespace takt {

// One broken rule. `field` is the path as in a job file ("gpus.memory"); `sentence` names the value
// and what was expected, without the field in front. Values of `env` are never in it.
struct SpecProblem {
  std::string field;
  std::string sentence;
  bool operator==(const SpecProblem&) const = default;
};

// All broken rules, in the order of the fields; empty when there are none.
std::vector<SpecProblem> spec_problems(const JobSpec& spec, const Limits& limits);

// The same as one error (ErrorKind::invalid): a line "field: sentence" for each.
Result<void> validate(const JobSpec& spec, const Limits& limits);

// Sentences about what is recorded but not used for placement by this version (slo, min_speed,
// deadline, checkpoint). Not errors.
std::vector<std::string> spec_warnings(const JobSpec& spec);

// The workload's name when none is given: the file name of the first program in the command.
// "torchrun" for "CUDA_LAUNCH_BLOCKING=1 /opt/bin/torchrun train.py"; "job" when there is none.
std::string default_name(const std::vector<std::string>& argv, std::string_view command_text);

// Number of jobs that the spec becomes: the product of the array's lengths, or the replicas.
// Saturates at INT64_MAX.
std::int64_t job_count(const JobSpec& spec);

// "0-4" -> 0 1 2 3 4, "0-10:5" -> 0 5 10; anything else stays as it is, as the only element.
// An error when the range is backwards, has a step of 0 or more than `values_max` values.
Result<std::vector<std::string>> expand_range(std::string_view text, std::size_t values_max);

}  // namespace takt
