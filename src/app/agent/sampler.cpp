#include "app/agent/sampler.h"

#include <unistd.h>

#include <chrono>

#include "edge/device/host_facts.h"

namespace takt::agent {

Sampler::Sampler(std::unique_ptr<device::DeviceProbe> probe, Pids pids, Duration interval,
                 int ready_fd)
    : probe_(std::move(probe)), pids_(std::move(pids)), interval_(interval), ready_fd_(ready_fd) {
  thread_ = std::thread([this] { run(); });
}

Sampler::~Sampler() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::uint64_t Sampler::request() {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = ++requested_;
  }
  changed_.notify_all();
  return number;
}

std::optional<Sample> Sampler::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(newest_, std::nullopt);
}

// A process that ends between the driver's answer and ours must not look foreign: whoever was an
// attempt's before, after, or at the last sample, is the attempt's.
Sample Sampler::read(std::uint64_t number, bool whole) {
  std::map<std::int64_t, AttemptId> known = shown_;
  for (const auto& [pid, attempt] : last_pids_) known[pid] = attempt;
  for (const auto& [pid, attempt] : pids_()) known[pid] = attempt;
  const Instant now = device::wall_clock();
  if (whole) read_at_ = now;
  Sample sample{number, read_at_, whole ? probe_->read(now) : probe_->read_presence(now)};
  last_pids_ = pids_();
  for (const auto& [pid, attempt] : last_pids_) known[pid] = attempt;
  bool all_told = true;
  std::map<std::int64_t, AttemptId> shown;
  for (Gpu& gpu : sample.node.gpus) {
    all_told = all_told && gpu.processes;
    if (!gpu.processes) continue;
    for (GpuProcess& process : *gpu.processes) {
      const auto it = known.find(process.pid);
      if (it == known.end()) continue;
      process.attempt = it->second;
      shown.insert(*it);
    }
  }
  // Who was not shown because a GPU did not answer may be shown again.
  if (!all_told || !sample.node.driver_problem.empty()) shown.merge(shown_);
  shown_ = std::move(shown);
  return sample;
}

void Sampler::run() {
  std::uint64_t done = 0;
  auto next = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait_until(lock, next, [&] { return stopping_ || requested_ > done; });
    if (stopping_) return;
    const std::uint64_t number = requested_;
    const bool whole = std::chrono::steady_clock::now() >= next;
    lock.unlock();
    Sample sample = read(number, whole);
    lock.lock();
    newest_ = std::move(sample);
    done = number;
    if (whole) next = std::chrono::steady_clock::now() + std::chrono::microseconds(interval_.us);
    const std::uint64_t one = 1;
    (void)!::write(ready_fd_, &one, sizeof one);
  }
}

}  // namespace takt::agent
