// Rule 1: whole GPUs. Of one model where the node has enough of one, since a gang runs at the pace
// of its slowest member.
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

// What the node has of the asked types, whoever is on it.
struct Stock {
  int of_type = 0;
  int in_mig_mode = 0;
  std::map<std::string, int> by_model;  // whole GPUs only
  int most_of_one_model() const {
    int most = 0;
    for (const auto& [model, n] : by_model) most = std::max(most, n);
    return most;
  }
};

Stock stock_of(const Request& request, const NodeState& node) {
  Stock stock;
  for (const DeviceState& d : node.devices) {
    if (!type_fits(request, *d.gpu)) continue;
    ++stock.of_type;
    if (d.mig())
      ++stock.in_mig_mode;
    else
      ++stock.by_model[d.gpu->model];
  }
  return stock;
}

std::vector<Blocker> why_not(const Request& request, int count, const NodeState& node,
                             const Stock& stock, std::size_t most_free) {
  std::vector<Blocker> blockers;
  std::string holders;
  for (const DeviceState& d : node.devices) {
    if (!type_fits(request, *d.gpu) || d.closed || d.empty() || d.mig()) continue;
    holders += (holders.empty() ? "" : "; ") + held_by(d);
  }
  const std::string in_mig =
      stock.in_mig_mode > 0
          ? fmt::format("; {} of them in MIG mode, not a whole GPU", stock.in_mig_mode)
          : "";
  if (!holders.empty() || static_cast<int>(most_free) < count)
    blockers.push_back({BlockerKind::gpus_busy, describe_request(*request.spec),
                        fmt::format("{} free of {}{}{}{}", most_free, stock.of_type, in_mig,
                                    holders.empty() ? "" : ": ", holders),
                        holders.empty() ? "see the blockers of the single GPUs"
                                        : "wait for one of these jobs, or ask for fewer GPUs"});
  add_closed(blockers, request, node);
  return blockers;
}

using Set = std::vector<const DeviceState*>;

// The free GPUs that a gang may be made of: by model, or all together where the node could never
// give that many of one model.
std::vector<Set> candidates(const Request& request, int count, const NodeState& node,
                            const Stock& stock) {
  const bool mixed = stock.most_of_one_model() < count;
  std::map<std::pair<std::int64_t, std::string>, Set> groups;
  for (const DeviceState& device : node.devices) {
    if (!type_fits(request, *device.gpu) || !usable_whole(request, device)) continue;
    if (request.spec->gpus.memory && device.capacity < *request.spec->gpus.memory) continue;
    if (mixed)
      groups[{0, ""}].push_back(&device);
    else
      groups[{device.capacity.value, device.gpu->model}].push_back(&device);
  }
  std::vector<Set> sets;  // cheaper first: the model with the least memory
  for (auto& [key, set] : groups) sets.push_back(std::move(set));
  return sets;
}

RuleAnswer placed_on(const Set& set, int links, int set_cost) {
  RuleAnswer answer;
  answer.devices.emplace();
  bool one_model = true;
  for (const DeviceState* d : set) {
    answer.devices->push_back(
        {DeviceKind::whole_gpu, d->gpu->uuid, d->gpu->uuid, d->capacity, 100});
    one_model = one_model && d->gpu->model == set.front()->gpu->model;
  }
  answer.isolation = Isolation::strict;
  answer.because =
      fmt::format("{} whole GPU{}{}: {}{}", set.size(), set.size() == 1 ? "" : "s",
                  set.size() == 1 ? ""
                  : one_model     ? " of one model"
                                  : " of several models",
                  labels(set), links > 0 ? fmt::format(" ({} NVLinks inside)", links) : "");
  answer.score = set_cost;
  return answer;
}

}  // namespace

RuleAnswer whole_gpus(const Request& request, int count, const NodeState& node) {
  const Stock stock = stock_of(request, node);
  std::size_t most_free = 0;
  std::optional<RuleAnswer> best;
  for (const Set& free : candidates(request, count, node, stock)) {
    most_free = std::max(most_free, free.size());
    if (static_cast<int>(free.size()) < count) continue;
    const Set set = best_set(*node.node, count, free);
    const int links = nvlinks_within(*node.node, set);
    if (request.spec->gpus.link == LinkNeed::nvlink && count > 1 && links == 0) continue;
    const int set_cost = cost(*node.node, set, free);
    // A gang runs over its links, so they come before the price; a single GPU has none.
    if (!best || set_cost < *best->score) best = placed_on(set, links, set_cost);
  }
  if (best) return *best;
  RuleAnswer answer;
  answer.blockers = why_not(request, count, node, stock, most_free);
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
