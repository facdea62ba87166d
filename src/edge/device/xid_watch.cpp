#include "edge/device/xid_watch.h"

#include <fmt/core.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

namespace takt::device {
namespace {

constexpr unsigned kWaitMilliseconds = 200;  // also how long the end of the watch may take
constexpr auto kPauseAfterError = std::chrono::milliseconds(500);
constexpr std::size_t kKept = 16;

Instant clock_now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::microseconds>(since).count()};
}

}  // namespace

struct XidWatch::State {
  std::shared_ptr<NvmlLibrary> library;
  nvmlEventSet_t set = nullptr;
  std::string problem;
  mutable std::mutex mutex;
  std::condition_variable changed;
  bool stop = false;
  std::map<nvmlDevice_t, unsigned> indices;
  std::map<unsigned, std::deque<XidEvent>> events;
};

XidWatch::XidWatch(std::shared_ptr<NvmlLibrary> library) : state_(std::make_shared<State>()) {
  state_->library = std::move(library);
  const NvmlFunctions& f = state_->library->functions();
  NvmlCaller call;
  if (f.nvmlDeviceRegisterEvents.pointer == nullptr || f.nvmlEventSetWait_v2.pointer == nullptr) {
    state_->problem = "this driver does not tell XID errors as events";
    return;
  }
  const nvmlReturn_t code = call(f.nvmlEventSetCreate, &state_->set);
  if (code != NVML_SUCCESS) {
    state_->set = nullptr;
    state_->problem = nvml_missing(f.nvmlEventSetCreate.name, code).detail;
    return;
  }
  worker_.set_patience(milliseconds(3 * kWaitMilliseconds));
  worker_.post([state = state_] { watch(*state); });
}

XidWatch::~XidWatch() {
  const std::lock_guard lock(state_->mutex);
  state_->stop = true;
  state_->changed.notify_all();
}

std::string XidWatch::add(nvmlDevice_t device, unsigned index) {
  if (!state_->problem.empty()) return state_->problem;
  const NvmlFunctions& f = state_->library->functions();
  NvmlCaller call;
  const nvmlReturn_t code =
      call(f.nvmlDeviceRegisterEvents, device, nvmlEventTypeXidCriticalError, state_->set);
  if (code != NVML_SUCCESS) return nvml_missing(f.nvmlDeviceRegisterEvents.name, code).detail;
  const std::lock_guard lock(state_->mutex);
  state_->indices[device] = index;
  state_->changed.notify_all();
  return {};
}

void XidWatch::watch(State& state) {
  const NvmlFunctions& f = state.library->functions();
  NvmlCaller call;
  std::unique_lock lock(state.mutex);
  state.changed.wait(lock, [&] { return state.stop || !state.indices.empty(); });
  while (!state.stop) {
    lock.unlock();
    nvmlEventData_t data{};
    const nvmlReturn_t code = call(f.nvmlEventSetWait_v2, state.set, &data, kWaitMilliseconds);
    lock.lock();
    if (code == NVML_ERROR_TIMEOUT) continue;
    if (code !=
        NVML_SUCCESS) {  // a lost GPU in the set, for instance: the others still have events
      state.changed.wait_for(lock, kPauseAfterError, [&] { return state.stop; });
      continue;
    }
    const auto known = state.indices.find(data.device);
    if ((data.eventType & nvmlEventTypeXidCriticalError) == 0 || known == state.indices.end())
      continue;
    std::deque<XidEvent>& events = state.events[known->second];
    events.push_back({data.eventData, clock_now()});
    if (events.size() > kKept) events.pop_front();
  }
  lock.unlock();
  call(f.nvmlEventSetFree, state.set);
}

std::vector<XidEvent> XidWatch::events(unsigned index) const {
  const std::lock_guard lock(state_->mutex);
  const auto at = state_->events.find(index);
  if (at == state_->events.end()) return {};
  return {at->second.begin(), at->second.end()};
}

}  // namespace takt::device
