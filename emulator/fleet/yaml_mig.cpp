#include "fleet/yaml_mig.h"

#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <vector>

namespace takt::emulator {
namespace {

struct MigFill {
  std::vector<bool> taken;
  unsigned compute = 0;
};

bool free_at(const MigFill& fill, unsigned start, unsigned size) {
  for (unsigned s = start; s < start + size; ++s)
    if (s >= fill.taken.size() || fill.taken[s]) return false;
  return true;
}

void add_instance(FleetGpu& gpu, const GpuModel& model, const MigProfile& profile, unsigned start,
                  MigFill& fill) {
  for (unsigned s = start; s < start + profile.memory_slices; ++s) fill.taken[s] = true;
  fill.compute += profile.compute_slices;
  FleetMig mig;
  mig.gpu_instance = static_cast<unsigned>(gpu.migs.size()) + 1;
  mig.compute_slices = profile.compute_slices;
  mig.memory_slices = profile.memory_slices;
  mig.start = start;
  mig.multiprocessors = mig_multiprocessors(model, profile.compute_slices);
  mig.copy_engines = std::max(1u, profile.compute_slices);
  // An instance's memory is a little less than its slices: 9984 of 81559/8 MiB on an H100's
  // 1g.10gb.
  std::uint64_t slice_mib = model.memory_mib * 98 / 100 / model.mig_memory;
  mig.memory_total = slice_mib * profile.memory_slices * kMiB;
  mig.memory_reserved = 0;
  mig.memory_used = 0;
  gpu.migs.push_back(std::move(mig));
}

std::string profile_names(const std::vector<MigProfile>& profiles) {
  std::string out;
  for (const auto& p : profiles) out += (out.empty() ? "" : ", ") + p.name;
  return out;
}

void read_instance(const YAML::Node& node, const std::string& where, Problems& problems,
                   FleetGpu& gpu, const GpuModel& model, MigFill& fill) {
  auto profiles = mig_profiles(model);
  std::string wanted;
  std::optional<unsigned> start;
  if (node.IsScalar()) {
    wanted = node.Scalar();
  } else {
    Fields f(node, where, problems, {"profile", "start"});
    wanted = f.text("profile").value_or("");
    if (auto s = f.whole("start", 0, 7)) start = static_cast<unsigned>(*s);
  }
  auto found = std::find_if(profiles.begin(), profiles.end(),
                            [&](const auto& p) { return p.name == wanted; });
  if (found == profiles.end()) {
    problems.add(node, where,
                 fmt::format("is profile '{}'; expected one of {}'s: {}", wanted, model.key,
                             profile_names(profiles)));
    return;
  }
  if (fill.compute + found->compute_slices > model.mig_compute) {
    problems.add(node, where,
                 fmt::format("does not fit: {} of {} compute slices are taken", fill.compute,
                             model.mig_compute));
    return;
  }
  for (unsigned at : found->starts) {
    if (start && *start != at) continue;
    if (!free_at(fill, at, found->memory_slices)) continue;
    add_instance(gpu, model, *found, at, fill);
    return;
  }
  problems.add(
      node, where,
      fmt::format("({}) has no free legal place{}; expected a start that no other instance "
                  "covers",
                  wanted, start ? fmt::format(" at {}", *start) : ""));
}

}  // namespace

void read_mig(const YAML::Node& node, const std::string& where, Problems& problems, FleetGpu& gpu,
              const GpuModel& model) {
  Fields f(node, where, problems, {"mode", "pending", "instances"});
  auto mode = [&](const char* key) {
    return f.value<std::uint64_t>(key, "enabled or disabled",
                                  [](const std::string& raw) -> std::optional<std::uint64_t> {
                                    if (raw == "enabled") return 1;
                                    if (raw == "disabled") return 0;
                                    return std::nullopt;
                                  });
  };
  auto instances = f.list("instances");
  auto current = mode("mode");
  gpu.mig_current = current.value_or(instances.empty() ? 0 : 1);
  gpu.mig_pending = mode("pending").value_or(*gpu.mig_current);
  if (model.mig_sms == 0) {
    f.problems().add(node, where, fmt::format("is not offered by {}", model.key));
    return;
  }
  if (*gpu.mig_current == 0 && !instances.empty())
    f.problems().add(f.node("instances"), f.path("instances"), "need mode: enabled");
  MigFill fill{std::vector<bool>(model.mig_memory, false), 0};
  for (std::size_t i = 0; i < instances.size(); ++i)
    read_instance(instances[i], fmt::format("{}[{}]", f.path("instances"), i), f.problems(), gpu,
                  model, fill);
  if (*gpu.mig_current == 1)
    gpu.utilization_gpu = gpu.utilization_memory = answer(Code::not_supported);
}

}  // namespace takt::emulator
