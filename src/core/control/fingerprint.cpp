// Fingerprints of the parts of the state. What is derived (the sets of waiting and holding jobs,
// for instance) is not in them.
#include "core/base/fingerprint.h"

#include "core/control/state.h"

namespace takt::control {
namespace {

void add(Fingerprint& print, const std::vector<std::string>& texts) {
  print.add(std::uint64_t{texts.size()});
  for (const std::string& text : texts) print.add(std::string_view(text));
}

void add(Fingerprint& print, const Environment& environment) {
  print.add(std::uint64_t{environment.size()});
  for (const EnvironmentVariable& e : environment)
    print.add(std::string_view(e.name)).add(std::string_view(e.value)).add_number(e.secret);
}

void add(Fingerprint& print, const GpuRequest& gpus) {
  print.add_number(gpus.count.value_or(-1)).add(gpus.memory);
  print.add_number(gpus.compute_percent.value_or(-1));
  add(print, gpus.types);
  print.add_number(gpus.link).add_number(gpus.distributed).add_number(gpus.from_profile);
}

void add(Fingerprint& print, const JobSpec& spec) {
  print.add(std::string_view(spec.name));
  add(print, spec.argv);
  print.add(std::string_view(spec.command_text));
  print.add_number(spec.tier ? static_cast<int>(*spec.tier) : -1);
  add(print, spec.gpus);
  print.add_number(spec.nodes);
  if (spec.slo) print.add(spec.slo->ttft_p95).add(spec.slo->tpot_p95).add(spec.slo->latency_p95);
  print.add_number(spec.min_speed ? static_cast<std::int64_t>(*spec.min_speed * 1e6) : -1);
  print.add(std::string_view(spec.deadline.value_or("")));
  print.add_number(spec.isolation ? static_cast<int>(*spec.isolation) : -1);
  print.add_number(spec.cpus).add(spec.memory).add(spec.time).add(spec.kill_after);
  if (spec.checkpoint)
    print.add(std::string_view(spec.checkpoint->signal)).add(spec.checkpoint->grace);
  for (const RetryCause cause : spec.retry.on) print.add_number(cause);
  print.add_number(spec.retry.max).add(std::string_view(spec.workdir));
  add(print, spec.env);
  for (const auto& [name, values] : spec.array) {
    print.add(std::string_view(name));
    add(print, values);
  }
  print.add_number(spec.replicas).add_number(spec.wait_for_capacity);
}

void add(Fingerprint& print, const Grant& grant) {
  print.add(std::string_view(grant.node.value));
  for (const DeviceGrant& d : grant.devices)
    print.add_number(d.kind)
        .add(std::string_view(d.uuid.value))
        .add(std::string_view(d.gpu.value))
        .add(d.memory)
        .add_number(d.compute_percent);
  print.add_number(grant.cpus).add(grant.memory).add_number(grant.isolation);
  print.add(std::string_view(grant.domain));
}

void add(Fingerprint& print, const ExitStatus& exit) {
  print.add_number(exit.cause).add_number(exit.code).add_number(exit.signal).add_number(exit.oom);
  print.add(std::string_view(exit.message)).add(exit.cpu_time).add(exit.memory_peak);
}

void add(Fingerprint& print, const Attempt& a) {
  print.add(a.id).add(a.generation);
  add(print, a.grant);
  print.add(std::string_view(a.boot_id)).add(a.granted).add(a.started).add_number(a.pid);
  if (a.stop)
    print.add_number(a.stop->reason)
        .add(std::string_view(a.stop->detail))
        .add(a.stop->grace)
        .add(a.stop->at);
  if (a.exit) add(print, *a.exit);
  print.add(a.ended).add(std::string_view(a.kill_failed)).add_number(a.released);
}

}  // namespace

std::uint64_t fingerprint_of(const Environment& environment) {
  Fingerprint print;
  add(print, environment);
  return print.value();
}

std::uint64_t fingerprint_of(const Submission& s) {
  Fingerprint print;
  add(print, s.spec);
  print.add(s.environment).add_number(s.submitter.uid).add_number(s.submitter.gid);
  for (const std::uint32_t group : s.submitter.groups) print.add_number(group);
  print.add(std::string_view(s.submitter.user)).add(std::string_view(s.submitter.home));
  print.add(s.at).add(std::string_view(s.policy_revision)).add(s.group).add_number(s.group_size);
  print.add(std::string_view(s.request));
  return print.value();
}

std::uint64_t fingerprint_of(const Job& job) {
  Fingerprint print;
  print.add(job.id).add(job.submission_print).add_number(job.group_index);
  for (const auto& [name, value] : job.parameters)
    print.add(std::string_view(name)).add(std::string_view(value));
  print.add_number(job.attempts).add_number(job.kill_failures);
  if (job.attempt) add(print, *job.attempt);
  print.add_number(job.cancel_requested).add(std::string_view(job.cancelled_by));
  if (job.finished)
    print.add_number(job.finished->outcome)
        .add(std::string_view(job.finished->reason))
        .add(job.finished->at);
  if (job.hold) print.add(std::string_view(job.hold->by)).add(std::string_view(job.hold->reason));
  // Only the next attempt reads it; a snapshot keeps it only then.
  if (job.attempt && job.waiting()) print.add(job.not_before);
  return print.value();
}

std::uint64_t fingerprint_of(const std::string& user, const Usage& usage) {
  return Fingerprint{}.add(std::string_view(user)).add_number(usage.amount).add(usage.at).value();
}

namespace {

std::uint64_t whole(const State& state, std::uint64_t jobs, std::uint64_t usage) {
  Fingerprint print;
  print.add(std::string_view(state.identity)).add(state.next_job).add(state.next_generation);
  print.add(state.next_environment).add(std::string_view(state.clock.boot_id));
  print.add(state.clock.offset).add(jobs).add(usage);
  for (const auto& [number, kept] : state.environments) print.add(number).add(kept.print);
  return print.value();
}

}  // namespace

std::uint64_t fingerprint(const State& state) {
  return whole(state, state.jobs_print, state.usage_print);
}

std::uint64_t fingerprint_anew(const State& state) {
  std::uint64_t jobs = 0;
  for (const auto& [id, job] : state.jobs) {
    Job anew = job;
    anew.submission_print = fingerprint_of(*job.submission);
    jobs += fingerprint_of(anew);
  }
  std::uint64_t usage = 0;
  for (const auto& [user, amount] : state.usage) usage += fingerprint_of(user, amount);
  return whole(state, jobs, usage);
}

}  // namespace takt::control
