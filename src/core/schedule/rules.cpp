#include "core/schedule/rules.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/model/gpu_facts.h"

namespace takt::schedule {

bool type_fits(const Request& request, const Gpu& gpu) {
  const auto& types = request.spec->gpus.types;
  return types.empty() || std::any_of(types.begin(), types.end(), [&](const std::string& word) {
           return type_matches(gpu.model, word);
         });
}

bool ends_before(const Request& request, const Holder& holder) {
  return holder.reserved && request.would_end && holder.expected_end &&
         *request.would_end <= *holder.expected_end;
}

bool usable_whole(const Request& request, const DeviceState& device) {
  if (device.closed || device.mig()) return false;
  return std::all_of(device.holders.begin(), device.holders.end(),
                     [&](const Holder& h) { return ends_before(request, h); });
}

std::string held_by(const DeviceState& device) {
  std::string text;
  for (const Holder& h : device.holders) {
    if (!text.empty()) text += ", ";
    if (h.reserved)
      text += fmt::format("reserved for job {}", to_string(h.attempt.job));
    else
      text += fmt::format("{}job {} ({}, {})", h.ended ? "the ending " : "",
                          to_string(h.attempt.job), h.user, h.job_name);
  }
  return fmt::format("{} is held by {}", device.label, text);
}

Blocker no_such_type(const Request& request, const std::vector<const Gpu*>& gpus) {
  std::string wanted;
  for (const std::string& t : request.spec->gpus.types)
    wanted += (wanted.empty() ? "" : " or ") + t;
  std::map<std::string, int> here;
  for (const Gpu* gpu : gpus) ++here[gpu->model];
  std::string list;
  for (const auto& [model, n] : here)
    list += fmt::format("{}{} x{}", list.empty() ? "" : ", ", model, n);
  return {BlockerKind::no_such_type, "a GPU of type " + wanted,
          "no node has type " + wanted + " (types here: " + (list.empty() ? "none" : list) + ")",
          "ask for a type that is here, or leave the type out"};
}

void add_closed(std::vector<Blocker>& blockers, const Request& request, const NodeState& node) {
  for (const DeviceState& device : node.devices)
    if (device.closed && type_fits(request, *device.gpu) &&
        std::find(blockers.begin(), blockers.end(), *device.closed) == blockers.end())
      blockers.push_back(*device.closed);
}

}  // namespace takt::schedule
