#include "core/schedule/place.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/schedule/rules.h"

namespace takt::schedule {
namespace {

std::string gib(Bytes b) {
  return fmt::format("{:.1f} GiB", static_cast<double>(b.value) / (1 << 30));
}

std::string types_of(const GpuRequest& gpus) {
  std::string text;
  for (const std::string& t : gpus.types) text += (text.empty() ? " (" : ", ") + t;
  return text.empty() ? text : text + ")";
}

// The ordered rule list. The first rule that answers wins; a rule that applies but finds nothing
// adds its blockers and hands on.
RuleAnswer apply_rules(const Request& request, const NodeState& node) {
  const GpuRequest& gpus = request.spec->gpus;
  if (gpus.count) return whole_gpus(request, *gpus.count, node);
  if (request.isolation == Isolation::strict) {
    RuleAnswer mig = mig_instance(request, node);
    if (mig.devices) return mig;
    RuleAnswer whole = whole_gpu_for_memory(request, node);
    if (whole.devices) return whole;
    mig.blockers.insert(mig.blockers.end(), whole.blockers.begin(), whole.blockers.end());
    return mig;
  }
  return share(request, node);
}

int cpus_needed(const JobSpec& spec) {
  const bool no_gpu = !spec.gpus.count && !spec.gpus.memory;
  return std::max(spec.cpus, no_gpu ? 1 : 0);
}

std::optional<Blocker> host_short(const JobSpec& spec, const NodeState& node) {
  const int cpus = cpus_needed(spec);
  if (cpus > node.cpus_free)
    return Blocker{BlockerKind::cpus_short, fmt::format("{} CPU{}", cpus, cpus == 1 ? "" : "s"),
                   fmt::format("{} free of {} on {}", std::max(0, node.cpus_free), node.node->cpus,
                               node.node->id.value),
                   "wait for a job to end, or ask for fewer CPUs"};
  if (spec.memory && *spec.memory > node.memory_free)
    return Blocker{BlockerKind::cpus_short, gib(*spec.memory) + " of host memory",
                   fmt::format("{} free of {} on {}", gib(node.memory_free), gib(node.node->memory),
                               node.node->id.value),
                   "wait for a job to end, or ask for less memory"};
  return std::nullopt;
}

RuleAnswer no_gpu_answer() {
  RuleAnswer answer;
  answer.devices.emplace();
  answer.because = "no GPU asked: it runs on the CPUs, with no GPU visible";
  answer.score = 0;
  return answer;
}

// What one node answers, host resources included.
RuleAnswer try_node(const Request& request, const NodeState& node) {
  RuleAnswer answer;
  if (!node.reachable) {
    answer.blockers.push_back({BlockerKind::no_agent, "a node that answers",
                               node.node->id.value + " has not reported lately",
                               "look at the host; `takt doctor` says what the server last heard"});
    return answer;
  }
  const auto shortage = host_short(*request.spec, node);
  const GpuRequest& gpus = request.spec->gpus;
  answer = !gpus.count && !gpus.memory ? no_gpu_answer() : apply_rules(request, node);
  if (shortage) {
    answer.devices.reset();
    answer.blockers.push_back(*shortage);
  }
  return answer;
}

Blocker no_gpu_blocker(const Request& request, const std::vector<const Node*>& nodes) {
  std::string why = "no node has a GPU";
  for (const Node* node : nodes)
    if (!node->driver_problem.empty()) why = node->id.value + ": " + node->driver_problem;
  return {BlockerKind::no_gpu, describe_request(*request.spec), why,
          "run `takt doctor`; without a GPU only jobs that ask for none can run"};
}

}  // namespace

std::string describe_request(const JobSpec& spec) {
  const GpuRequest& gpus = spec.gpus;
  if (gpus.count)
    return fmt::format("{} GPU{}{}", *gpus.count, *gpus.count == 1 ? "" : "s", types_of(gpus));
  if (gpus.memory) return gib(*gpus.memory) + " on one device" + types_of(gpus);
  return "no GPU";
}

std::optional<Blocker> never_fits(const Request& request, const std::vector<SeenNode>& nodes,
                                  const Policy& policy) {
  // The same rules on the same machines, were nobody on them and all of them well.
  Snapshot empty;
  empty.nodes = nodes;
  std::vector<const Node*> hosts;
  std::vector<const Gpu*> gpus;
  std::vector<const Gpu*> fitting;
  for (SeenNode& seen : empty.nodes) {
    seen.reachable = true;
    for (Gpu& gpu : seen.node.gpus) {
      gpu.health = GpuHealth::ok;
      gpu.processes = std::vector<GpuProcess>{};
      gpu.memory_used = Bytes{0};
    }
  }
  for (const SeenNode& seen : empty.nodes) {
    hosts.push_back(&seen.node);
    for (const Gpu& gpu : seen.node.gpus) {
      gpus.push_back(&gpu);
      if (type_fits(request, gpu)) fitting.push_back(&gpu);
    }
  }
  const bool wants_gpu = request.spec->gpus.count || request.spec->gpus.memory;
  if (wants_gpu && gpus.empty()) return no_gpu_blocker(request, hosts);
  if (wants_gpu && fitting.empty()) return no_such_type(request, gpus);
  const Ledger ledger(empty, policy);
  std::vector<Blocker> blockers;
  for (const NodeState& node : ledger.nodes()) {
    RuleAnswer answer = try_node(request, node);
    if (answer.devices) return std::nullopt;
    blockers.insert(blockers.end(), answer.blockers.begin(), answer.blockers.end());
  }
  if (blockers.empty()) return std::nullopt;
  return Blocker{BlockerKind::larger_than_cluster, blockers.front().needed,
                 "even with all machines empty: " + blockers.front().available,
                 "ask for less, or submit it with --wait-for-capacity"};
}

Verdict place(const Request& request, const Ledger& ledger, const Policy& policy) {
  (void)policy;
  std::vector<Blocker> blockers;
  std::vector<const Gpu*> all;
  std::vector<const Gpu*> fitting;
  std::vector<const Node*> hosts;
  for (const NodeState& node : ledger.nodes()) {
    hosts.push_back(node.node);
    for (const DeviceState& device : node.devices) {
      all.push_back(device.gpu);
      if (type_fits(request, *device.gpu)) fitting.push_back(device.gpu);
    }
  }
  const bool wants_gpu = request.spec->gpus.count || request.spec->gpus.memory;
  if (hosts.empty())
    return Unavailable{{{BlockerKind::no_agent, describe_request(*request.spec),
                         "no node has reported yet", "wait a moment; `takt doctor` says more"}},
                       {}};
  if (wants_gpu && all.empty()) return Infeasible{{no_gpu_blocker(request, hosts)}, {}};
  if (wants_gpu && fitting.empty()) return Infeasible{{no_such_type(request, all)}, {}};

  std::optional<RuleAnswer> best;
  const NodeState* best_node = nullptr;
  for (const NodeState& node : ledger.nodes()) {
    RuleAnswer answer = try_node(request, node);
    if (!answer.devices) {
      blockers.insert(blockers.end(), answer.blockers.begin(), answer.blockers.end());
      continue;
    }
    if (!best || *answer.score < *best->score) {
      best = std::move(answer);
      best_node = &node;
    }
  }
  if (!best) return Unavailable{std::move(blockers), {"asked: " + describe_request(*request.spec)}};
  Placed placed;
  placed.grant.node = best_node->node->id;
  placed.grant.devices = *best->devices;
  placed.grant.cpus = cpus_needed(*request.spec);
  placed.grant.memory = request.spec->memory.value_or(Bytes{});
  placed.grant.isolation = best->isolation;
  placed.grant.domain = best->domain;
  placed.decision = {"asked: " + describe_request(*request.spec), best->because,
                     "isolation: " + to_string(best->isolation)};
  return placed;
}

}  // namespace takt::schedule
