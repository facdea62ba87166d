#include "core/schedule/place.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/schedule/rules.h"

namespace takt::schedule {
namespace {

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
  RuleAnswer shared = share(request, node);
  if (shared.devices) return shared;
  // A MIG instance isolates more than was asked, never less: on machines of instances only it is
  // what a memory request gets.
  RuleAnswer mig = mig_instance(request, node);
  if (mig.devices) return mig;
  const bool shareable = std::any_of(
      node.devices.begin(), node.devices.end(),
      [&](const DeviceState& d) { return !d.mig() && !d.closed && type_fits(request, *d.gpu); });
  if (!shareable && !mig.blockers.empty()) shared.blockers.erase(shared.blockers.begin());
  shared.blockers.insert(shared.blockers.end(), mig.blockers.begin(), mig.blockers.end());
  return shared;
}

// Of CPUs and host memory. What is reserved for another job is free to those that end before.
void add_host_shortage(const Request& request, const NodeState& node,
                       std::vector<Blocker>& blockers) {
  const JobSpec& spec = *request.spec;
  int cpus_free = node.cpus_free;
  Bytes memory_free = node.memory_free;
  for (const HostShare& r : node.reserved) {
    if (request.would_end && *request.would_end <= *r.expected_end) continue;
    cpus_free -= r.cpus;
    memory_free -= r.memory;
  }
  const int cpus = cpus_needed(spec);
  if (cpus > cpus_free)
    blockers.push_back({BlockerKind::cpus_short,
                        fmt::format("{} CPU{}", cpus, cpus == 1 ? "" : "s"),
                        fmt::format("{} free of {} on {}", std::max(0, cpus_free), node.node->cpus,
                                    node.node->id.value),
                        "wait for a job to end, or ask for fewer CPUs"});
  if (spec.memory && *spec.memory > memory_free)
    blockers.push_back({BlockerKind::cpus_short, gib(*spec.memory) + " of host memory",
                        fmt::format("{} free of {} on {}", gib(std::max(Bytes{0}, memory_free)),
                                    gib(node.node->memory), node.node->id.value),
                        "wait for a job to end, or ask for less memory"});
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
  if (!wants_gpu(*request.spec)) {
    answer = no_gpu_answer();
  } else {
    // A node without the type has nothing to say: others have it.
    if (std::none_of(node.devices.begin(), node.devices.end(),
                     [&](const DeviceState& d) { return type_fits(request, *d.gpu); }))
      return answer;
    answer = apply_rules(request, node);
  }
  std::vector<Blocker> shortage;
  add_host_shortage(request, node, shortage);
  if (shortage.empty()) return answer;
  answer.devices.reset();
  answer.blockers.insert(answer.blockers.end(), shortage.begin(), shortage.end());
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

std::string gib(Bytes b) {
  return fmt::format("{:.1f} GiB", static_cast<double>(b.value) / (1 << 30));
}

bool wants_gpu(const JobSpec& spec) {
  return spec.gpus.count ? *spec.gpus.count > 0 : spec.gpus.memory.has_value();
}

int cpus_needed(const JobSpec& spec) { return std::max(spec.cpus, wants_gpu(spec) ? 0 : 1); }

std::string describe_request(const JobSpec& spec) {
  const GpuRequest& gpus = spec.gpus;
  if (!wants_gpu(spec)) return "no GPU";
  if (gpus.count)
    return fmt::format("{} GPU{}{}{}", *gpus.count, *gpus.count == 1 ? "" : "s",
                       gpus.memory ? " of at least " + gib(*gpus.memory) : "", types_of(gpus));
  return gib(*gpus.memory) + " on one device" + types_of(gpus);
}

namespace {

// A sick GPU may not tell its model or memory. Nobody can say then that it would never do, so it is
// taken for one like its neighbours.
void guess_unknown(std::vector<Gpu>& gpus) {
  for (Gpu& gpu : gpus)
    for (const Gpu& other : gpus) {
      if (gpu.model.empty()) gpu.model = other.model;
      if (!gpu.memory_total && other.memory_total && gpu.model == other.model)
        gpu.memory_total = other.memory_total;
    }
}

}  // namespace

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
    guess_unknown(seen.node.gpus);
  }
  for (const SeenNode& seen : empty.nodes) {
    hosts.push_back(&seen.node);
    for (const Gpu& gpu : seen.node.gpus) {
      gpus.push_back(&gpu);
      if (type_fits(request, gpu)) fitting.push_back(&gpu);
    }
  }
  const bool gpu_asked = wants_gpu(*request.spec);
  if (gpu_asked && gpus.empty()) return no_gpu_blocker(request, hosts);
  if (gpu_asked && fitting.empty()) return no_such_type(request, gpus);
  const Ledger ledger(empty, policy);
  std::vector<Blocker> blockers;
  for (const NodeState& node : ledger.nodes()) {
    RuleAnswer answer = try_node(request, node);
    if (answer.devices) return std::nullopt;
    blockers.insert(blockers.end(), answer.blockers.begin(), answer.blockers.end());
  }
  if (blockers.empty()) return std::nullopt;
  std::string available;
  for (const Blocker& b : blockers)
    if (b.needed == blockers.front().needed)
      available += (available.empty() ? "" : "; ") + b.available;
  return Blocker{BlockerKind::larger_than_cluster, blockers.front().needed,
                 "even with all machines empty: " + available,
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
  const bool gpu_asked = wants_gpu(*request.spec);
  if (hosts.empty())
    return Unavailable{{{BlockerKind::no_agent, describe_request(*request.spec),
                         "no node has reported yet", "wait a moment; `takt doctor` says more"}},
                       {}};
  if (gpu_asked && fitting.empty()) {
    // What no machine has is said first, and then what else is short.
    blockers.push_back(all.empty() ? no_gpu_blocker(request, hosts) : no_such_type(request, all));
    for (const NodeState& node : ledger.nodes()) add_host_shortage(request, node, blockers);
    return Infeasible{std::move(blockers), {}};
  }

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
