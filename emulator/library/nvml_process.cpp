// Processes of a GPU, in the three layouts that NVML's versions have.
#include "library/session.h"

using namespace takt::emulator;

namespace {

constexpr std::size_t kNumbersEach = 4;

void put(nvmlProcessInfo_v1_t& out, const std::uint64_t* n) {
  out = {static_cast<unsigned>(n[0]), n[1]};
}

void put(nvmlProcessInfo_t& out, const std::uint64_t* n) {
  out = {static_cast<unsigned>(n[0]), n[1], static_cast<unsigned>(n[2]),
         static_cast<unsigned>(n[3])};
}

template <class Info>
nvmlReturn_t processes(const char* call, nvmlDevice_t device, unsigned* count, Info* infos) {
  Reply reply;
  nvmlReturn_t code = ask_device(call, device, count, reply, 0);
  if (code != NVML_SUCCESS) return code;
  auto found = static_cast<unsigned>(reply.numbers.size() / kNumbersEach);
  unsigned capacity = *count;
  *count = found;
  if (found == 0) return NVML_SUCCESS;
  if (infos == nullptr || capacity < found) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (unsigned i = 0; i < found; ++i) put(infos[i], &reply.numbers[i * kNumbersEach]);
  return NVML_SUCCESS;
}

}  // namespace

extern "C" {

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int* count,
                                                  nvmlProcessInfo_v1_t* infos) {
  return processes("computerunningprocesses", device, count, infos);
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int* count,
                                                     nvmlProcessInfo_t* infos) {
  return processes("computerunningprocesses", device, count, infos);
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                     nvmlProcessInfo_t* infos) {
  return processes("computerunningprocesses", device, count, infos);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned int* count,
                                                   nvmlProcessInfo_v1_t* infos) {
  return processes("graphicsrunningprocesses", device, count, infos);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned int* count,
                                                      nvmlProcessInfo_t* infos) {
  return processes("graphicsrunningprocesses", device, count, infos);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                      nvmlProcessInfo_t* infos) {
  return processes("graphicsrunningprocesses", device, count, infos);
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                             nvmlProcessUtilizationSample_t* samples,
                                             unsigned int* count, unsigned long long last_seen) {
  Reply reply;
  nvmlReturn_t code = ask_device("processutilization", device, count, reply, 0, {last_seen});
  if (code != NVML_SUCCESS) return code;
  auto found = static_cast<unsigned>(reply.numbers.size() / kNumbersEach);
  unsigned capacity = *count;
  *count = found;
  if (samples == nullptr || capacity < found) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (unsigned i = 0; i < found; ++i) {
    const std::uint64_t* n = &reply.numbers[i * kNumbersEach];
    samples[i] = {static_cast<unsigned>(n[0]), n[1], static_cast<unsigned>(n[2]),
                  static_cast<unsigned>(n[3]), 0,    0};
  }
  return NVML_SUCCESS;
}

}  // extern "C"
