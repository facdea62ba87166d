#include "core/schedule/links.h"

#include <algorithm>
#include <map>

namespace takt::schedule {

Links::Links(const Node& node, const std::vector<const DeviceState*>& devices)
    : size_(devices.size()), count_(size_ * size_, 0) {
  std::map<DeviceUuid, std::size_t> position;
  for (std::size_t i = 0; i < size_; ++i) position[devices[i]->gpu->uuid] = i;
  for (const GpuLink& link : node.links) {
    if (link.kind != LinkKind::nvlink) continue;
    const auto a = position.find(link.a);
    const auto b = position.find(link.b);
    if (a == position.end() || b == position.end()) continue;
    const int n = std::max(1, link.nvlinks);
    count_[a->second * size_ + b->second] = n;
    count_[b->second * size_ + a->second] = n;
  }
}

int Links::within(const Positions& set) const {
  int sum = 0;
  for (std::size_t i = 0; i < set.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) sum += between(set[i], set[k]);
  return sum;
}

int Links::leaving(const Positions& set) const {
  int all = 0;
  for (const std::size_t i : set)
    for (std::size_t k = 0; k < size_; ++k) all += between(i, k);
  return all - 2 * within(set);
}

bool Links::connected(const Positions& set) const {
  return set.size() < 2 || earliest_connected(set, set.size()).size() == set.size();
}

Positions Links::earliest_connected(const Positions& order, std::size_t count) const {
  // With each further device of the order: does the part that it is linked to suffice?
  for (std::size_t last = 0; last < order.size(); ++last) {
    if (last + 1 < count) continue;
    Positions found = {order[last]};
    std::vector<bool> in(size_, false);
    in[order[last]] = true;
    bool grew = true;
    while (grew && found.size() < count) {
      grew = false;
      for (std::size_t i = 0; i < last && !grew; ++i) {
        if (in[order[i]]) continue;
        if (std::none_of(found.begin(), found.end(),
                         [&](std::size_t f) { return between(f, order[i]) > 0; }))
          continue;
        in[order[i]] = true;
        found.push_back(order[i]);
        grew = true;
      }
    }
    if (found.size() == count) return found;
  }
  return {};
}

}  // namespace takt::schedule
