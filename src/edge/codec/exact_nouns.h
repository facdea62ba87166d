#pragma once
// The nouns that journal records and agent frames share, described for exact_json.h. Internal.
// A change here changes both formats: raise the versions of the records that hold the noun (with an
// upcaster) and `agent_protocol`.
#include "core/control/engine_contract.h"
#include "core/model/grant.h"
#include "core/model/job_spec.h"
#include "edge/codec/exact_json.h"

namespace takt::codec::exact {

inline constexpr Word<Tier> tier_words[] = {{Tier::serving, "serving"},
                                            {Tier::training, "training"},
                                            {Tier::batch, "batch"},
                                            {Tier::experimental, "experimental"}};
inline constexpr auto& words(Tag<Tier>) { return tier_words; }

inline constexpr Word<Isolation> isolation_words[] = {{Isolation::strict, "strict"},
                                                      {Isolation::limited, "limited"},
                                                      {Isolation::watched, "watched"}};
inline constexpr auto& words(Tag<Isolation>) { return isolation_words; }

inline constexpr Word<LinkNeed> link_need_words[] = {{LinkNeed::any, "any"},
                                                     {LinkNeed::nvlink, "nvlink"}};
inline constexpr auto& words(Tag<LinkNeed>) { return link_need_words; }

inline constexpr Word<RetryCause> retry_words[] = {{RetryCause::node_lost, "node-lost"},
                                                   {RetryCause::preempted, "preempted"},
                                                   {RetryCause::oom, "oom"},
                                                   {RetryCause::failed, "failed"}};
inline constexpr auto& words(Tag<RetryCause>) { return retry_words; }

inline constexpr Word<DeviceKind> device_kind_words[] = {{DeviceKind::whole_gpu, "gpu"},
                                                         {DeviceKind::mig_instance, "mig"},
                                                         {DeviceKind::share, "share"}};
inline constexpr auto& words(Tag<DeviceKind>) { return device_kind_words; }

inline constexpr Word<ExitCause> exit_words[] = {{ExitCause::exited, "exited"},
                                                 {ExitCause::signalled, "signalled"},
                                                 {ExitCause::start_failed, "start-failed"},
                                                 {ExitCause::lost, "lost"}};
inline constexpr auto& words(Tag<ExitCause>) { return exit_words; }

template <class V, class T>
void fields(V& v, T& x, Tag<AttemptId>) {
  v("job", x.job);
  v("number", x.number);
}

template <class V, class T>
void fields(V& v, T& x, Tag<GpuRequest>) {
  v("count", x.count);
  v("memory", x.memory);
  v("compute_percent", x.compute_percent);
  v("types", x.types);
  v("link", x.link);
  v("distributed", x.distributed);
  v("from_profile", x.from_profile);
}

template <class V, class T>
void fields(V& v, T& x, Tag<ServiceLevel>) {
  v("ttft_p95", x.ttft_p95);
  v("tpot_p95", x.tpot_p95);
  v("latency_p95", x.latency_p95);
}

template <class V, class T>
void fields(V& v, T& x, Tag<CheckpointSpec>) {
  v("signal", x.signal);
  v("grace", x.grace);
}

template <class V, class T>
void fields(V& v, T& x, Tag<RetrySpec>) {
  v("on", x.on);
  v("max", x.max);
}

template <class V, class T>
void fields(V& v, T& x, Tag<EnvironmentVariable>) {
  v("name", x.name);
  v("value", x.value);
  v("secret", x.secret);
}

template <class V, class T>
void fields(V& v, T& x, Tag<JobSpec>) {
  v("name", x.name);
  v("argv", x.argv);
  v("command_text", x.command_text);
  v("tier", x.tier);
  v("gpus", x.gpus);
  v("nodes", x.nodes);
  v("slo", x.slo);
  v("min_speed", x.min_speed);
  v("deadline", x.deadline);
  v("isolation", x.isolation);
  v("cpus", x.cpus);
  v("memory", x.memory);
  v("time", x.time);
  v("kill_after", x.kill_after);
  v("checkpoint", x.checkpoint);
  v("retry", x.retry);
  v("workdir", x.workdir);
  v("env", x.env);
  v("array", x.array);
  v("replicas", x.replicas);
  v("wait_for_capacity", x.wait_for_capacity);
}

template <class V, class T>
void fields(V& v, T& x, Tag<DeviceGrant>) {
  v("kind", x.kind);
  v("uuid", x.uuid);
  v("gpu", x.gpu);
  v("memory", x.memory);
  v("compute_percent", x.compute_percent);
}

template <class V, class T>
void fields(V& v, T& x, Tag<Grant>) {
  v("node", x.node);
  v("devices", x.devices);
  v("cpus", x.cpus);
  v("memory", x.memory);
  v("isolation", x.isolation);
  v("domain", x.domain);
}

template <class V, class T>
void fields(V& v, T& x, Tag<ExitStatus>) {
  v("cause", x.cause);
  v("code", x.code);
  v("signal", x.signal);
  v("oom", x.oom);
  v("message", x.message);
  v("cpu_time", x.cpu_time);
  v("memory_peak", x.memory_peak);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::Identity>) {
  v("uid", x.uid);
  v("gid", x.gid);
  v("groups", x.groups);
  v("user", x.user);
  v("home", x.home);
}

}  // namespace takt::codec::exact
