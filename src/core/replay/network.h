#pragma once
// What is under way between the controller and its engines. On a good day everything arrives at
// once and in order; on a bad one it is lost, late, doubled and in another order.
#include <cstdint>
#include <map>
#include <set>
#include <variant>
#include <vector>

#include "core/base/random.h"
#include "core/control/engine_contract.h"

namespace takt::replay {

struct Weather {
  int lost_percent = 0;
  int doubled_percent = 0;
  Duration late_max;     // each message is on its way for up to this long
  bool in_order = true;  // of one direction of one node
};

class Network {
 public:
  explicit Network(Random random) : random_(random) {}

  Weather weather;
  void cut(const NodeId& node, Instant until) { cut_until_[node] = until; }
  // What is under way arrives at once, and the same goes for what comes.
  void heal(Instant truth);

  void to_controller(control::NodeReport report, Instant truth);
  void to_node(const NodeId& node, const std::vector<control::Effect>& effects, Instant truth);
  // What has arrived by now, in the order of arrival.
  std::vector<control::NodeReport> reports(Instant truth);
  std::vector<control::Effect> effects(const NodeId& node, Instant truth);
  // A connection was closed: what was under way on it is gone.
  void drop(const NodeId& node);

 private:
  // Arrival, and a number that keeps those of one moment in order.
  using Place = std::pair<Instant, std::uint64_t>;
  bool is_cut(const NodeId& node, Instant truth) const;
  int copies();
  Place arrival(Instant truth, Instant& last);

  Random random_;
  std::map<Place, control::NodeReport> reports_;
  std::map<NodeId, std::map<Place, control::Effect>> effects_;
  std::map<NodeId, Instant> cut_until_;
  std::map<NodeId, Instant> last_report_;
  std::map<NodeId, Instant> last_effect_;
  std::uint64_t number_ = 0;
};

}  // namespace takt::replay
