#include "core/schedule/queue.h"

#include <algorithm>

namespace takt::schedule {

std::int64_t decayed(std::int64_t usage, Duration age, Duration half_life) {
  if (age.us <= 0 || half_life.us <= 0) return usage;
  const std::int64_t halvings = age.us / half_life.us;
  if (halvings >= 62) return 0;
  usage >>= halvings;
  // In thousandths, so that the product stays far below 2^63.
  const std::int64_t rest = std::min<std::int64_t>(
      1000, (age.us % half_life.us) / std::max<std::int64_t>(1, half_life.us / 1000));
  return usage - usage / 2000 * rest - usage % 2000 * rest / 2000;
}

std::int64_t milli_gpus(const Grant& grant, const std::vector<SeenNode>& nodes) {
  std::int64_t sum = 0;
  for (const DeviceGrant& device : grant.devices) {
    if (device.kind == DeviceKind::whole_gpu) {
      sum += 1000;
      continue;
    }
    std::int64_t part = device.compute_percent < 100 ? device.compute_percent * 10 : 0;
    for (const SeenNode& seen : nodes)
      for (const Gpu& gpu : seen.node.gpus)
        if (gpu.uuid == device.gpu && gpu.memory_total && gpu.memory_total->value > 0)
          part = std::max(part, (device.memory.value >> 20) * 1000 /
                                    std::max<std::int64_t>(1, gpu.memory_total->value >> 20));
    sum += std::min<std::int64_t>(part, 1000);
  }
  return sum;
}

Queue::Queue(const Snapshot& snapshot, Instant now) : usage_(snapshot.usage) {
  for (const Holding& h : snapshot.holdings) {
    const std::int64_t held =
        std::max<std::int64_t>((now - h.since).us / 1'000'000, kFreshUseSeconds);
    usage_[h.user] += milli_gpus(h.grant, snapshot.nodes) * held;
  }
  for (const WaitingJob& job : snapshot.waiting)
    if (job.not_before <= now) tiers_[*job.spec->tier][job.user].push_back(&job);
  for (auto& [tier, users] : tiers_)
    for (auto& [user, jobs] : users)
      std::sort(jobs.begin(), jobs.end(), [](const WaitingJob* a, const WaitingJob* b) {
        return std::tie(a->submitted, a->id) > std::tie(b->submitted, b->id);
      });
  enter_next_tier();
}

void Queue::enter_next_tier() {
  const auto it = tier_ ? tiers_.upper_bound(*tier_) : tiers_.begin();
  order_.clear();
  if (it == tiers_.end()) return;
  tier_ = it->first;
  for (const auto& [user, jobs] : it->second) order_.insert(*turn_of(user));
}

// None when the user has no job left in the present tier.
std::optional<Queue::Turn> Queue::turn_of(const std::string& user) {
  const auto it = tiers_[*tier_].find(user);
  if (it == tiers_[*tier_].end() || it->second.empty()) return std::nullopt;
  const WaitingJob& job = *it->second.back();
  return Turn{usage_[user], job.submitted, job.id, user};
}

const WaitingJob* Queue::next() {
  if (order_.empty()) return nullptr;
  // Its place in the order is used again: a long queue has a turn for each job.
  auto first = order_.extract(order_.begin());
  auto& jobs = tiers_[*tier_][first.value().user];
  const WaitingJob* job = jobs.back();
  jobs.pop_back();
  if (auto turn = turn_of(first.value().user)) {
    first.value() = std::move(*turn);
    order_.insert(std::move(first));
  }
  if (order_.empty()) enter_next_tier();
  return job;
}

void Queue::charge(const std::string& user, std::int64_t milli_gpu_seconds) {
  const auto before = tier_ ? turn_of(user) : std::nullopt;
  if (before) order_.erase(*before);
  usage_[user] += milli_gpu_seconds;
  if (before) order_.insert(*turn_of(user));
}

}  // namespace takt::schedule
