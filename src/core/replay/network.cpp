#include "core/replay/network.h"

#include <algorithm>

namespace takt::replay {

namespace {

template <class Map>
void hurry(Map& under_way, Instant truth) {
  Map all;
  for (auto& [place, message] : under_way)
    all.emplace(std::pair(std::min(place.first, truth), all.size()), std::move(message));
  under_way = std::move(all);
}

}  // namespace

void Network::heal(Instant truth) {
  weather = {};
  cut_until_.clear();
  last_report_.clear();
  last_effect_.clear();
  hurry(reports_, truth);
  for (auto& [node, effects] : effects_) hurry(effects, truth);
}

bool Network::is_cut(const NodeId& node, Instant truth) const {
  const auto it = cut_until_.find(node);
  return it != cut_until_.end() && truth < it->second;
}

int Network::copies() {
  if (random_.chance(weather.lost_percent)) return 0;
  return random_.chance(weather.doubled_percent) ? 2 : 1;
}

Network::Place Network::arrival(Instant truth, Instant& last) {
  Instant at = truth + random_.between({}, weather.late_max);
  if (weather.in_order) at = std::max(at, last);
  last = std::max(at, last);
  return {at, ++number_};
}

void Network::to_controller(control::NodeReport report, Instant truth) {
  if (is_cut(report.node.id, truth)) return;
  for (int i = copies(); i > 0; --i) {
    const Place place = arrival(truth, last_report_[report.node.id]);
    if (i == 1) {
      reports_.emplace(place, std::move(report));
      return;
    }
    reports_.emplace(place, report);
  }
}

void Network::to_node(const NodeId& node, const std::vector<control::Effect>& effects,
                      Instant truth) {
  if (is_cut(node, truth)) return;
  for (const control::Effect& effect : effects)
    for (int i = copies(); i > 0; --i)
      effects_[node].emplace(arrival(truth, last_effect_[node]), effect);
}

std::vector<control::NodeReport> Network::reports(Instant truth) {
  std::vector<control::NodeReport> arrived;
  while (!reports_.empty() && reports_.begin()->first.first <= truth) {
    arrived.push_back(std::move(reports_.begin()->second));
    reports_.erase(reports_.begin());
  }
  return arrived;
}

std::vector<control::Effect> Network::effects(const NodeId& node, Instant truth) {
  std::vector<control::Effect> arrived;
  auto& waiting = effects_[node];
  while (!waiting.empty() && waiting.begin()->first.first <= truth) {
    arrived.push_back(std::move(waiting.begin()->second));
    waiting.erase(waiting.begin());
  }
  return arrived;
}

void Network::drop(const NodeId& node) {
  effects_[node].clear();
  std::erase_if(reports_, [&](const auto& entry) { return entry.second.node.id == node; });
}

}  // namespace takt::replay
