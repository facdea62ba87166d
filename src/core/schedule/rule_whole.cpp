// Rule 1: whole GPUs. All of one model, since a gang runs at the pace of its slowest member.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/schedule/rules.h"

namespace takt::schedule {
namespace {

// Number of NVLink connections inside a set: what a gang's all-reduce runs over.
int nvlinks_within(const Node& node, const std::vector<const DeviceState*>& set) {
  int sum = 0;
  auto in_set = [&](const DeviceUuid& uuid) {
    return std::any_of(set.begin(), set.end(),
                       [&](const DeviceState* d) { return d->gpu->uuid == uuid; });
  };
  for (const GpuLink& link : node.links)
    if (link.kind == LinkKind::nvlink && in_set(link.a) && in_set(link.b))
      sum += std::max(1, link.nvlinks);
  return sum;
}

bool throttled(const Gpu& gpu) {
  if (!gpu.throttle_reasons) return false;
  return std::any_of(
      gpu.throttle_reasons->begin(), gpu.throttle_reasons->end(), [](const std::string& r) {
        return r.find("thermal") != std::string::npos || r.find("slowdown") != std::string::npos ||
               r.find("brake") != std::string::npos;
      });
}

// Lower is better. NVLinks inside count for us; links torn between the set and the free rest count
// against us (they would be missing for the next gang); a throttling GPU slows the whole gang.
int cost(const Node& node, const std::vector<const DeviceState*>& set,
         const std::vector<const DeviceState*>& all_free) {
  std::vector<const DeviceState*> rest;
  for (const DeviceState* d : all_free)
    if (std::find(set.begin(), set.end(), d) == set.end()) rest.push_back(d);
  const int inside = nvlinks_within(node, set);
  const int torn = nvlinks_within(node, all_free) - inside - nvlinks_within(node, rest);
  int sick = 0;
  for (const DeviceState* d : set) sick += throttled(*d->gpu) ? 1 : 0;
  return sick * 100'000 + torn * 100 - inside * 1'000;
}

// The best set of `count`, by trying all of them: 12,870 at most for 16 GPUs. Above that the first
// `count` by index, which keeps neighbours together on every machine seen so far.
std::vector<const DeviceState*> best_set(const Node& node, int count,
                                         const std::vector<const DeviceState*>& free) {
  const int n = static_cast<int>(free.size());
  std::vector<const DeviceState*> best(free.begin(), free.begin() + count);
  if (n > 16 || n == count) return best;
  int best_cost = cost(node, best, free);
  std::vector<bool> pick(static_cast<std::size_t>(n), false);
  std::fill(pick.begin(), pick.begin() + count, true);
  while (std::prev_permutation(pick.begin(), pick.end())) {
    std::vector<const DeviceState*> set;
    for (int i = 0; i < n; ++i)
      if (pick[static_cast<std::size_t>(i)]) set.push_back(free[static_cast<std::size_t>(i)]);
    const int c = cost(node, set, free);
    if (c < best_cost) {
      best_cost = c;
      best = set;
    }
  }
  return best;
}

std::string labels(const std::vector<const DeviceState*>& set) {
  std::string text;
  for (const DeviceState* d : set) text += (text.empty() ? "" : ", ") + d->label;
  return text;
}

std::vector<Blocker> why_not(const Request& request, int count, const NodeState& node,
                             std::size_t most_free) {
  std::vector<Blocker> blockers;
  std::string holders;
  int of_type = 0;
  int mig = 0;
  for (const DeviceState& d : node.devices) {
    if (!type_fits(request, *d.gpu)) continue;
    ++of_type;
    mig += d.mig() ? 1 : 0;
    if (d.closed || d.empty() || d.mig()) continue;
    holders += (holders.empty() ? "" : "; ") + held_by(d);
  }
  const std::string in_mig =
      mig > 0 ? fmt::format("; {} of them in MIG mode, not a whole GPU", mig) : "";
  if (!holders.empty() || static_cast<int>(most_free) < count)
    blockers.push_back({BlockerKind::gpus_busy, describe_request(*request.spec),
                        fmt::format("{} free of {}{}{}{}", most_free, of_type, in_mig,
                                    holders.empty() ? "" : ": ", holders),
                        holders.empty() ? "see the blockers of the single GPUs"
                                        : "wait for one of these jobs, or ask for fewer GPUs"});
  add_closed(blockers, request, node);
  return blockers;
}

}  // namespace

RuleAnswer whole_gpus(const Request& request, int count, const NodeState& node) {
  // Cheaper first: the model with the least memory that the request accepts.
  std::map<std::pair<std::int64_t, std::string>, std::vector<const DeviceState*>> by_model;
  for (const DeviceState& device : node.devices) {
    if (!type_fits(request, *device.gpu) || !usable_whole(request, device)) continue;
    if (request.spec->gpus.memory && device.capacity < *request.spec->gpus.memory) continue;
    by_model[{device.capacity.value, device.gpu->model}].push_back(&device);
  }
  RuleAnswer answer;
  std::size_t most_free = 0;
  for (const auto& [key, free] : by_model) {
    most_free = std::max(most_free, free.size());
    if (static_cast<int>(free.size()) < count) continue;
    const auto set = best_set(*node.node, count, free);
    const int links = nvlinks_within(*node.node, set);
    if (request.spec->gpus.link == LinkNeed::nvlink && count > 1 && links == 0) continue;
    answer.devices.emplace();
    for (const DeviceState* d : set)
      answer.devices->push_back(
          {DeviceKind::whole_gpu, d->gpu->uuid, d->gpu->uuid, d->capacity, 100});
    answer.isolation = Isolation::strict;
    answer.because =
        fmt::format("{} whole GPU{} of one model: {}{}", count, count == 1 ? "" : "s", labels(set),
                    links > 0 ? fmt::format(" ({} NVLinks inside)", links) : "");
    answer.score = cost(*node.node, set, free);
    return answer;
  }
  answer.blockers = why_not(request, count, node, most_free);
  return answer;
}

RuleAnswer whole_gpu_for_memory(const Request& request, const NodeState& node) {
  RuleAnswer answer = whole_gpus(request, 1, node);
  if (answer.devices)
    answer.because =
        fmt::format("strict isolation without a fitting MIG instance: {}", answer.because);
  return answer;
}

}  // namespace takt::schedule
