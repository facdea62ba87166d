// Devices are granted only where the newest report of a node that is heard of shows them healthy,
// with their processes told and none of a stranger. Newest is the newest: what is known never goes
// back.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/replay/checkers.h"
#include "core/replay/world.h"

namespace takt::replay {
namespace {

class Evidence final : public Checker {
 public:
  const char* name() const override { return "evidence"; }

  void synced(World&, const std::vector<control::Fact>& facts) override {
    for (const control::Fact& fact : facts)
      if (const auto* g = std::get_if<control::Granted>(&fact)) fresh_.push_back(*g);
  }

  // What a controller that died knew is gone with it.
  void recovered(World&) override { fresh_.clear(); }
  // What was known when it was decided is published with it.
  void published(World& world) override {
    no_way_back(world);
    for (const control::Granted& g : fresh_)
      if (!g.grant.devices.empty() || !g.grant.node.value.empty()) look(world, g);
    fresh_.clear();
  }

 private:
  void look(World& world, const control::Granted& g) {
    const auto& nodes = world.server.loop().cluster().nodes;
    const auto node = nodes.find(g.grant.node);
    const auto object = [&](const std::string& why) {
      world.fail(name(), fmt::format("attempt {} is granted {}", to_string(g.attempt), why));
    };
    if (node == nodes.end()) return object("a place on a node that has not reported");
    if (!node->second.reachable()) return object("a place on a node that is silent");
    for (const DeviceGrant& d : g.grant.devices) {
      const auto& gpus = node->second.report.node.gpus;
      const auto gpu =
          std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& x) { return x.uuid == d.gpu; });
      if (gpu == gpus.end()) return object("a GPU that its node does not have");
      if (gpu->health != GpuHealth::ok) return object("a GPU that is not healthy");
      if (!gpu->processes) return object("a GPU whose processes nobody can tell");
      for (const GpuProcess& p : *gpu->processes)
        if (p.foreign()) return object("a GPU that a stranger uses");
    }
  }

  // What a controller knows of a boot of a node only grows newer.
  void no_way_back(World& world) {
    for (const auto& [id, seen] : world.server.loop().cluster().nodes) {
      Known& known = known_[id];
      const Known now{world.server.lives(), seen.report.node.boot_id, seen.report.life,
                      seen.report.sequence};
      if (known.lives == now.lives && known.boot_id == now.boot_id &&
          std::pair(now.life, now.sequence) < std::pair(known.life, known.sequence))
        world.fail(name(), fmt::format("an older report of {} counts as its newest", id.value));
      known = now;
    }
  }

  struct Known {
    std::uint64_t lives = 0;
    std::string boot_id;
    std::uint64_t life = 0;
    std::uint64_t sequence = 0;
  };
  std::map<NodeId, Known> known_;
  std::vector<control::Granted> fresh_;
};

}  // namespace

std::unique_ptr<Checker> check_evidence() { return std::make_unique<Evidence>(); }

}  // namespace takt::replay
