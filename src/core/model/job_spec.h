#pragma once
// What a user asks for, exactly as asked. A spec never changes after it was accepted.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/ids.h"
#include "core/base/quantities.h"

namespace takt {

enum class Tier { serving, training, batch, experimental };  // by falling priority
enum class Isolation { strict, limited, watched };
enum class LinkNeed { any, nvlink };

// `gpus:` of a spec. With `count` whole GPUs are asked for. Without it and with `memory` (and
// perhaps `compute_percent`) a device that holds it: MIG instance, share or whole GPU. Neither: no
// GPU.
struct GpuRequest {
  std::optional<int> count;
  std::optional<Bytes> memory;  // on one device; with `distributed`, over all of them
  std::optional<int> compute_percent;
  std::vector<std::string> types;  // "h100", "a100": any of them; empty: any GPU
  LinkNeed link = LinkNeed::any;
  bool distributed = false;
  bool from_profile = false;  // `gpus: auto`
  bool operator==(const GpuRequest&) const = default;
  bool wants_share() const { return !count.has_value() && memory.has_value(); }
};

struct ServiceLevel {
  std::optional<Duration> ttft_p95;  // time to first token
  std::optional<Duration> tpot_p95;  // time per output token
  std::optional<Duration> latency_p95;
  bool operator==(const ServiceLevel&) const = default;
};

struct CheckpointSpec {
  std::string signal = "USR1";
  Duration grace = seconds(120);
  bool operator==(const CheckpointSpec&) const = default;
};

enum class RetryCause { node_lost, preempted, oom, failed };

struct RetrySpec {
  std::vector<RetryCause> on;
  int max = 0;
  bool operator==(const RetrySpec&) const = default;
};

struct EnvironmentVariable {
  std::string name;
  std::string value;
  bool secret = false;  // never shown, in no view and no log
  bool operator==(const EnvironmentVariable&) const = default;
};

struct JobSpec {
  std::string name;               // workload; empty until resolved to the program's name
  std::vector<std::string> argv;  // what is executed; `run:` becomes {"/bin/sh", "-c", text}
  std::string command_text;       // as the user wrote it, for people
  std::optional<Tier> tier;       // empty until resolved: experimental for run, batch for submit
  GpuRequest gpus;
  int nodes = 1;
  std::optional<ServiceLevel> slo;
  std::optional<double> min_speed;      // of the reference type, > 0
  std::optional<std::string> deadline;  // "07:00" or an ISO 8601 time
  std::optional<Isolation> isolation;   // empty until resolved by tier
  int cpus = 0;                         // 0: not asked
  std::optional<Bytes> memory;          // of the host
  std::optional<Duration> time;         // estimate; exceeding it never kills
  std::optional<Duration> kill_after;   // the hard stop
  std::optional<CheckpointSpec> checkpoint;
  RetrySpec retry;
  std::string workdir;  // absolute
  std::vector<EnvironmentVariable> env;
  std::map<std::string, std::vector<std::string>> array;  // parameter -> values
  int replicas = 1;                                       // serving only
  bool wait_for_capacity = false;  // accept though no machine can meet it today
  bool operator==(const JobSpec&) const = default;
};

std::string to_string(Tier tier);
std::string to_string(Isolation isolation);
std::string to_string(RetryCause cause);
std::optional<Tier> tier_from(const std::string& word);
std::optional<Isolation> isolation_from(const std::string& word);
std::optional<RetryCause> retry_cause_from(const std::string& word);

}  // namespace takt
