#pragma once
// NVLink between the GPUs of one node, by position in a list of devices: how well a set of them
// talks with itself.
#include <cstddef>
#include <vector>

#include "core/model/device.h"
#include "core/schedule/ledger.h"

namespace takt::schedule {

// Positions in the list that the Links were made for.
using Positions = std::vector<std::size_t>;

class Links {
 public:
  Links(const Node& node, const std::vector<const DeviceState*>& devices);

  // Number of NVLink connections within the set: what a gang's all-reduce runs over.
  int within(const Positions& set) const;
  // From the set to all the rest of the list.
  int leaving(const Positions& set) const;
  // Every device reaches every other one without leaving the set. One device does.
  bool connected(const Positions& set) const;
  // `count` connected devices that come as early in `order` as possible; empty when there are none.
  Positions earliest_connected(const Positions& order, std::size_t count) const;

 private:
  int between(std::size_t a, std::size_t b) const { return count_[a * size_ + b]; }
  std::size_t size_;
  std::vector<int> count_;  // size_ x size_, symmetric
};

}  // namespace takt::schedule
