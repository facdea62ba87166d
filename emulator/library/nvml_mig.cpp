// MIG: modes, device handles, instances.
#include "library/session.h"

using namespace takt::emulator;

extern "C" {

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int* current,
                                  unsigned int* pending) {
  if (pending == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  Reply reply;
  nvmlReturn_t code = ask_device("migmode", device, current, reply, 2);
  if (code != NVML_SUCCESS) return code;
  *current = static_cast<unsigned>(reply.numbers[0]);
  *pending = static_cast<unsigned>(reply.numbers[1]);
  return code;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int* count) {
  Reply reply;
  nvmlReturn_t code = ask_device("maxmigdevicecount", device, count, reply, 1);
  if (code == NVML_SUCCESS) *count = static_cast<unsigned>(reply.numbers[0]);
  return code;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
                                                 nvmlDevice_t* mig_device) {
  Reply reply;
  nvmlReturn_t code = ask_device("migdevicehandlebyindex", device, mig_device, reply, 0);
  if (code == NVML_SUCCESS) code = ask_device("migs", device, mig_device, reply, 0);
  if (code != NVML_SUCCESS) return code;
  if (index >= reply.texts.size()) return NVML_ERROR_NOT_FOUND;
  *mig_device = Session::instance().handle(device->gpu, static_cast<int>(index));
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int* is_mig) {
  if (!Session::instance().started()) return NVML_ERROR_UNINITIALIZED;
  if (is_mig == nullptr || !Session::instance().knows(device)) return NVML_ERROR_INVALID_ARGUMENT;
  *is_mig = device->mig >= 0 ? 1 : 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig_device,
                                                          nvmlDevice_t* device) {
  if (!Session::instance().started()) return NVML_ERROR_UNINITIALIZED;
  if (device == nullptr || !Session::instance().knows(mig_device) || mig_device->mig < 0)
    return NVML_ERROR_INVALID_ARGUMENT;
  *device = Session::instance().handle(mig_device->gpu, -1);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t mig_device, unsigned int* id) {
  Reply reply;
  nvmlReturn_t code = ask_device("gpuinstanceid", mig_device, id, reply, 1);
  if (code == NVML_SUCCESS) *id = static_cast<unsigned>(reply.numbers[0]);
  return code;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t mig_device, unsigned int* id) {
  Reply reply;
  nvmlReturn_t code = ask_device("computeinstanceid", mig_device, id, reply, 1);
  if (code == NVML_SUCCESS) *id = static_cast<unsigned>(reply.numbers[0]);
  return code;
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t mig_device,
                                        nvmlDeviceAttributes_t* attributes) {
  Reply reply;
  nvmlReturn_t code = ask_device("attributes", mig_device, attributes, reply, 5);
  if (code != NVML_SUCCESS) return code;
  *attributes = {};
  attributes->multiprocessorCount = static_cast<unsigned>(reply.numbers[0]);
  attributes->sharedCopyEngineCount = static_cast<unsigned>(reply.numbers[1]);
  attributes->gpuInstanceSliceCount = static_cast<unsigned>(reply.numbers[2]);
  attributes->computeInstanceSliceCount = static_cast<unsigned>(reply.numbers[3]);
  attributes->memorySizeMB = reply.numbers[4];
  return code;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id,
                                          nvmlGpuInstance_t* instance) {
  Reply reply;
  nvmlReturn_t code = ask_device("gpuinstancebyid", device, instance, reply, 0, {id});
  if (code == NVML_SUCCESS) *instance = Session::instance().instance_handle(device->gpu, id);
  return code;
}

nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t* info) {
  if (!Session::instance().started()) return NVML_ERROR_UNINITIALIZED;
  if (!Session::instance().knows(instance)) return NVML_ERROR_INVALID_ARGUMENT;
  nvmlDevice_t device = Session::instance().handle(instance->gpu, -1);
  Reply reply;
  nvmlReturn_t code = ask_device("gpuinstancegetinfo", device, info, reply, 3, {instance->id});
  if (code != NVML_SUCCESS) return code;
  // NVML's profile numbers: 0 for one slice, 1 two, 2 three, 3 four, 4 seven.
  constexpr unsigned profiles[] = {0, 0, 1, 2, 3, 3, 3, 4};
  auto slices = reply.numbers[2];
  info->device = device;
  info->id = instance->id;
  info->profileId = slices <= 7 ? profiles[slices] : 0;
  info->placement = {static_cast<unsigned>(reply.numbers[0]),
                     static_cast<unsigned>(reply.numbers[1])};
  return code;
}

}  // extern "C"
