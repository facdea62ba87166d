// XID events. The daemon is asked for those that are due until one is or the time is over.
#include <chrono>
#include <map>
#include <thread>

#include "library/session.h"

struct nvmlEventSet_st {
  std::mutex lock;
  std::map<unsigned, std::uint64_t> seen;  // GPU -> XIDs that were reported or older than the set
};

using namespace takt::emulator;

namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(20);

// The next XID of a registered GPU, if one is due.
bool next_event(nvmlEventSet_t set, nvmlEventData_t* data) {
  std::lock_guard guard(set->lock);
  for (auto& [gpu, seen] : set->seen) {
    Reply reply;
    Request request{"xids", -1, {seen}, {}};
    if (Session::instance().ask(gpu, request, reply) != NVML_SUCCESS || reply.numbers.empty())
      continue;
    ++seen;
    *data = {};
    data->device = Session::instance().handle(gpu, -1);
    data->eventType = nvmlEventTypeXidCriticalError;
    data->eventData = reply.numbers[0];
    data->gpuInstanceId = data->computeInstanceId = NVML_NO_INSTANCE_ID;
    return true;
  }
  return false;
}

}  // namespace

extern "C" {

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t* set) {
  if (!Session::instance().started()) return NVML_ERROR_UNINITIALIZED;
  if (set == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *set = new nvmlEventSet_st;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
  if (set == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  delete set;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                      nvmlEventSet_t set) {
  if ((types & ~nvmlEventTypeXidCriticalError) != 0) return NVML_ERROR_NOT_SUPPORTED;
  Reply reply;
  nvmlReturn_t code = ask_device("registerevents", device, set, reply, 0);
  if (code != NVML_SUCCESS || types == 0) return code;
  Request request{"xids", -1, {0}, {}};
  code = Session::instance().ask(device->gpu, request, reply);
  if (code != NVML_SUCCESS) return code;
  std::lock_guard guard(set->lock);
  set->seen[device->gpu] = reply.numbers.size();  // what happened before is not reported
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t* data,
                                 unsigned int timeout_ms) {
  if (!Session::instance().started()) return NVML_ERROR_UNINITIALIZED;
  if (set == nullptr || data == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (true) {
    if (next_event(set, data)) return NVML_SUCCESS;
    if (!Session::instance().started()) return NVML_ERROR_UNINITIALIZED;
    if (std::chrono::steady_clock::now() >= until) return NVML_ERROR_TIMEOUT;
    std::this_thread::sleep_for(kLookEvery);
  }
}

}  // extern "C"
