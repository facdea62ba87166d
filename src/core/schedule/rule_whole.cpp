// Rule 1: whole GPUs. Of one model where the node has enough of one, since a gang runs at the pace
// of its slowest member.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/schedule/links.h"
#include "core/schedule/rules.h"

namespace takt::schedule {
namespace {

// Trying all sets costs 12,870 looks at most for 16 GPUs.
constexpr std::size_t kTryAllMax = 16;

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
int cost(const std::vector<bool>& hot, const Links& links, const Positions& set) {
  int sick = 0;
  for (const std::size_t i : set) sick += hot[i] ? 1 : 0;
  return sick * 100'000 + links.leaving(set) * 100 - links.within(set) * 1'000;
}

struct Choice {
  Positions set;  // empty: none is connected as asked
  int cost = 0;
  int links = 0;
  int hot = 0;
  // Between models: a gang runs over its links, so they come before the price (the order in which
  // models are looked at). A single GPU has none.
  auto key() const { return std::make_pair(hot, -links); }
};

// The best set of `count` of the free devices. Of more than kTryAllMax the first ones by index
// (neighbours stay together on every machine seen so far), hot ones last.
Choice best_set(const Node& node, std::size_t count, bool must_connect,
                const std::vector<const DeviceState*>& free) {
  const Links links(node, free);
  std::vector<bool> hot;
  for (const DeviceState* d : free) hot.push_back(throttled(*d->gpu));
  Choice best;
  const auto consider = [&](Positions set) {
    if (must_connect && !links.connected(set)) return;
    const int c = cost(hot, links, set);
    if (best.set.empty() || c < best.cost) best = {std::move(set), c, 0, 0};
  };
  if (free.size() > kTryAllMax) {
    Positions order;
    for (std::size_t i = 0; i < free.size(); ++i) order.push_back(i);
    std::stable_partition(order.begin(), order.end(), [&](std::size_t i) { return !hot[i]; });
    Positions set =
        must_connect ? links.earliest_connected(order, count)
                     : Positions(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));
    if (!set.empty()) consider(std::move(set));
  } else {
    std::vector<bool> pick(free.size(), false);
    std::fill(pick.begin(), pick.begin() + static_cast<std::ptrdiff_t>(count), true);
    do {
      Positions set;
      for (std::size_t i = 0; i < pick.size(); ++i)
        if (pick[i]) set.push_back(i);
      consider(std::move(set));
    } while (std::prev_permutation(pick.begin(), pick.end()));
  }
  std::sort(best.set.begin(), best.set.end());
  best.links = links.within(best.set);
  for (const std::size_t i : best.set) best.hot += hot[i] ? 1 : 0;
  return best;
}

// What is there for the request on one node, counted for the explanation.
struct Stock {
  std::size_t of_type = 0;
  std::size_t mig = 0;
  std::size_t large_enough = 0;
  Bytes largest;
  std::string largest_label;
  std::string holders;
};

Stock stock_of(const Request& request, const NodeState& node) {
  Stock stock;
  for (const DeviceState& d : node.devices) {
    if (!type_fits(request, *d.gpu)) continue;
    ++stock.of_type;
    stock.mig += d.mig() ? 1 : 0;
    if (d.mig()) continue;
    if (d.capacity > stock.largest || stock.largest_label.empty()) {
      stock.largest = d.capacity;
      stock.largest_label = d.label;
    }
    if (d.capacity >= request.spec->gpus.memory.value_or(Bytes{})) ++stock.large_enough;
    if (!d.closed && !d.empty()) stock.holders += (stock.holders.empty() ? "" : "; ") + held_by(d);
  }
  return stock;
}

struct FreeCount {
  std::size_t all = 0;
  std::size_t of_one_model = 0;  // of the model with the most
  bool unconnected = false;      // enough of one model, but not connected as asked
};

std::vector<Blocker> why_not(const Request& request, std::size_t count, const NodeState& node,
                             const FreeCount& free) {
  std::vector<Blocker> blockers;
  const Stock stock = stock_of(request, node);
  const std::string needed = describe_request(*request.spec);
  const std::string in_mig =
      stock.mig > 0 ? fmt::format("; {} of them in MIG mode, not a whole GPU", stock.mig) : "";
  if (request.spec->gpus.memory && stock.large_enough == 0 && stock.mig < stock.of_type) {
    blockers.push_back({BlockerKind::memory_short, needed,
                        fmt::format("{}the largest whole GPU is {} with {}", node.prefix,
                                    stock.largest_label, gib(stock.largest)),
                        "ask for less memory"});
  } else if (free.unconnected) {
    blockers.push_back(
        {BlockerKind::gpus_busy, fmt::format("{} GPUs connected by NVLink", count),
         fmt::format("{}no {} of the {} free ones are connected with each other by NVLink{}",
                     node.prefix, count, free.of_one_model,
                     stock.holders.empty() ? "" : ": " + stock.holders),
         "wait for connected ones, or leave `link: nvlink` out"});
  } else if (free.all >= count) {
    blockers.push_back({BlockerKind::gpus_busy, needed + " of one model",
                        fmt::format("{}{} free of {}, at most {} of one model{}{}", node.prefix,
                                    free.all, stock.of_type, free.of_one_model, in_mig,
                                    stock.holders.empty() ? "" : ": " + stock.holders),
                        "ask for fewer GPUs, or wait for more of one model"});
  } else if (!stock.holders.empty() || free.all < count) {
    blockers.push_back({BlockerKind::gpus_busy, needed,
                        fmt::format("{}{} free of {}{}{}", node.prefix, free.all, stock.of_type,
                                    in_mig, stock.holders.empty() ? "" : ": " + stock.holders),
                        stock.holders.empty()
                            ? "see the blockers of the single GPUs"
                            : "wait for one of these jobs, or ask for fewer GPUs"});
  }
  add_closed(blockers, request, node);
  return blockers;
}

using Set = std::vector<const DeviceState*>;

RuleAnswer placed_on(const Set& free, const Choice& choice) {
  RuleAnswer answer;
  answer.devices.emplace();
  std::string labels;
  bool one_model = true;
  for (const std::size_t i : choice.set) {
    const DeviceState& d = *free[i];
    answer.devices->push_back({DeviceKind::whole_gpu, d.gpu->uuid, d.gpu->uuid, d.capacity, 100});
    labels += (labels.empty() ? "" : ", ") + d.label;
    one_model = one_model && d.gpu->model == free[choice.set.front()]->gpu->model;
  }
  const std::size_t count = choice.set.size();
  answer.isolation = Isolation::strict;
  answer.because = fmt::format(
      "{} whole GPU{}{}: {}{}", count, count == 1 ? "" : "s",
      count == 1  ? ""
      : one_model ? " of one model"
                  : " of several models",
      labels, choice.links > 0 ? fmt::format(" ({} NVLinks inside)", choice.links) : "");
  answer.score = choice.cost;
  return answer;
}

std::vector<const Set*> cheaper_first(const std::map<std::string, Set>& by_model) {
  std::vector<const Set*> sets;
  for (const auto& [model, set] : by_model) sets.push_back(&set);
  std::stable_sort(sets.begin(), sets.end(), [](const Set* a, const Set* b) {
    return a->front()->capacity < b->front()->capacity;
  });
  return sets;
}

}  // namespace

bool one_model_can(const Request& request, std::size_t count, const NodeState& node) {
  std::map<std::string, std::size_t> by_model;
  for (const DeviceState& d : node.devices)
    if (type_fits(request, *d.gpu) && !d.mig() &&
        d.capacity >= request.spec->gpus.memory.value_or(Bytes{}) &&
        ++by_model[d.gpu->model] >= count)
      return true;
  return false;
}

RuleAnswer whole_gpus(const Request& request, int count, const NodeState& node) {
  const auto wanted = static_cast<std::size_t>(count);
  // By model, cheaper first: with the least memory that the request accepts. All together only
  // where the node could never give that many of one model.
  const bool mixed = !one_model_can(request, wanted, node);
  std::map<std::string, Set> by_model;
  FreeCount free_count;
  for (const DeviceState& device : node.devices) {
    if (!type_fits(request, *device.gpu) || !usable_whole(request, device)) continue;
    if (request.spec->gpus.memory && device.capacity < *request.spec->gpus.memory) continue;
    Set& free = by_model[mixed ? std::string() : device.gpu->model];
    free.push_back(&device);
    ++free_count.all;
    free_count.of_one_model = std::max(free_count.of_one_model, free.size());
  }
  const bool must_connect = request.spec->gpus.link == LinkNeed::nvlink && wanted > 1;
  const Set* best_group = nullptr;
  Choice best;
  for (const Set* group : cheaper_first(by_model)) {
    const Set& free = *group;
    if (free.size() < wanted) continue;
    Choice choice = best_set(*node.node, wanted, must_connect, free);
    if (choice.set.empty()) {
      free_count.unconnected = true;
    } else if (best_group == nullptr || choice.key() < best.key()) {
      best_group = &free;
      best = std::move(choice);
    }
  }
  if (best_group != nullptr) return placed_on(*best_group, best);
  RuleAnswer answer;
  answer.blockers = why_not(request, wanted, node, free_count);
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
