// nvmlDeviceGet*: identity and readings of a GPU.
#include <cstdio>
#include <cstring>

#include "library/session.h"

using namespace takt::emulator;

namespace {

// The one number of a reply.
template <class T>
nvmlReturn_t number(const char* call, nvmlDevice_t device, T* out,
                    std::vector<std::uint64_t> arguments = {}) {
  Reply reply;
  nvmlReturn_t code = ask_device(call, device, out, reply, 1, std::move(arguments));
  if (code == NVML_SUCCESS) *out = static_cast<T>(reply.numbers[0]);
  return code;
}

nvmlReturn_t text(const char* call, nvmlDevice_t device, char* out, unsigned length) {
  Reply reply;
  nvmlReturn_t code = ask_device(call, device, out, reply, 0);
  if (code != NVML_SUCCESS) return code;
  return reply.texts.empty() ? NVML_ERROR_UNKNOWN : copy_text(reply.texts[0], out, length);
}

nvmlReturn_t handle_of(const char* call, unsigned gpu, nvmlDevice_t* device) {
  nvmlDevice_t handle = Session::instance().handle(gpu, -1);
  Reply reply;
  nvmlReturn_t code = ask_device(call, handle, device, reply, 0);
  if (code == NVML_SUCCESS) *device = handle;
  return code;
}

nvmlReturn_t mig_handle(unsigned gpu, const std::string& uuid, nvmlDevice_t* device) {
  Reply reply;
  Request request{"migs", -1, {}, {}};
  if (Session::instance().ask(gpu, request, reply) != NVML_SUCCESS) return NVML_ERROR_NOT_FOUND;
  for (std::size_t i = 0; i < reply.texts.size(); ++i) {
    if (reply.texts[i] != uuid) continue;
    *device = Session::instance().handle(gpu, static_cast<int>(i));
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

}  // namespace

namespace takt::emulator {

nvmlReturn_t fill_pci(const Reply& reply, nvmlPciInfo_t* pci) {
  if (reply.numbers.size() < 5 || reply.texts.empty()) return NVML_ERROR_UNKNOWN;
  std::memset(pci, 0, sizeof *pci);
  pci->domain = static_cast<unsigned>(reply.numbers[0]);
  pci->bus = static_cast<unsigned>(reply.numbers[1]);
  pci->device = static_cast<unsigned>(reply.numbers[2]);
  pci->pciDeviceId = static_cast<unsigned>(reply.numbers[3]);
  pci->pciSubSystemId = static_cast<unsigned>(reply.numbers[4]);
  std::snprintf(pci->busId, sizeof pci->busId, "%s", reply.texts[0].c_str());
  // The old form has four digits of the domain: "0000:0C:00.0".
  std::snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", pci->domain & 0xffff,
                pci->bus & 0xff, pci->device & 0xff);
  return NVML_SUCCESS;
}

}  // namespace takt::emulator

extern "C" {

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int* count) {
  if (!Session::instance().started()) return NVML_ERROR_UNINITIALIZED;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = static_cast<unsigned>(Session::instance().facts().uuids.size());
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t* device) {
  if (!Session::instance().started()) return NVML_ERROR_UNINITIALIZED;
  if (device == nullptr || index >= Session::instance().facts().uuids.size())
    return NVML_ERROR_INVALID_ARGUMENT;
  return handle_of("handlebyindex", index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  if (!Session::instance().started()) return NVML_ERROR_UNINITIALIZED;
  if (uuid == nullptr || device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  auto facts = Session::instance().facts();
  for (unsigned i = 0; i < facts.uuids.size(); ++i)
    if (facts.uuids[i] == uuid) return handle_of("handlebyuuid", i, device);
  for (unsigned i = 0; i < facts.uuids.size(); ++i)
    if (mig_handle(i, uuid, device) == NVML_SUCCESS) return NVML_SUCCESS;
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned int length) {
  return text("uuid", device, uuid, length);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int* index) {
  return number("index", device, index);
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int* minor) {
  return number("minornumber", device, minor);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned int length) {
  return text("name", device, name, length);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  Reply reply;
  nvmlReturn_t code = ask_device("pciinfo", device, pci, reply, 5);
  return code == NVML_SUCCESS ? fill_pci(reply, pci) : code;
}

nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int* node) {
  return number("numanodeid", device, node);
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  Reply reply;
  nvmlReturn_t code = ask_device("memoryinfo", device, memory, reply, 4, {1});
  if (code == NVML_SUCCESS) *memory = {reply.numbers[0], reply.numbers[2], reply.numbers[3]};
  return code;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  if (memory != nullptr && memory->version != nvmlMemory_v2)
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  Reply reply;
  nvmlReturn_t code = ask_device("memoryinfo", device, memory, reply, 4, {2});
  if (code != NVML_SUCCESS) return code;
  memory->total = reply.numbers[0];
  memory->reserved = reply.numbers[1];
  memory->free = reply.numbers[2];
  memory->used = reply.numbers[3];
  return code;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* rates) {
  Reply reply;
  nvmlReturn_t code = ask_device("utilizationrates", device, rates, reply, 2);
  if (code == NVML_SUCCESS)
    *rates = {static_cast<unsigned>(reply.numbers[0]), static_cast<unsigned>(reply.numbers[1])};
  return code;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor,
                                      unsigned int* celsius) {
  if (sensor != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
  return number("temperature", device, celsius);
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int* milliwatts) {
  return number("powerusage", device, milliwatts);
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int* milliwatts) {
  return number("enforcedpowerlimit", device, milliwatts);
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device,
                                                 unsigned long long* millijoules) {
  return number("totalenergyconsumption", device, millijoules);
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int* mhz) {
  return number("clockinfo", device, mhz, {static_cast<std::uint64_t>(type)});
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                    unsigned long long* reasons) {
  return number("currentclockseventreasons", device, reasons);
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                                       unsigned long long* reasons) {
  return number("currentclocksthrottlereasons", device, reasons);
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t* state) {
  return number("performancestate", device, state);
}

nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int* percent) {
  return number("fanspeed", device, percent);
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                         nvmlEccCounterType_t counter, unsigned long long* count) {
  return number("totaleccerrors", device, count,
                {static_cast<std::uint64_t>(type), static_cast<std::uint64_t>(counter)});
}

nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t counter,
                                         unsigned int* kilobytes_per_second) {
  return number("pciethroughput", device, kilobytes_per_second,
                {static_cast<std::uint64_t>(counter)});
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b,
                                                 nvmlGpuTopologyLevel_t* level) {
  if (!Session::instance().knows(b)) return NVML_ERROR_INVALID_ARGUMENT;
  return number("topologycommonancestor", a, level, {b->gpu});
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link,
                                      nvmlEnableState_t* active) {
  return number("nvlinkstate", device, active, {link});
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link,
                                                 nvmlPciInfo_t* pci) {
  Reply reply;
  nvmlReturn_t code = ask_device("nvlinkremotepciinfo", device, pci, reply, 5, {link});
  return code == NVML_SUCCESS ? fill_pci(reply, pci) : code;
}

}  // extern "C"
