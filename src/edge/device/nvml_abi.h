#pragma once
// Our own declarations of the part of NVML's public C interface that takt uses: names, numbers and
// layouts, written down from public bindings (NVIDIA/go-nvml pkg/nvml/{const,types_gen}.go,
// nvidia-ml-py's ctypes structures, nvml-wrapper-sys). NVIDIA's header is not needed and not
// copied.
//
// A caller loads the functions by name: `decltype(&::nvmlInit_v2)` is the pointer's type and
// TAKT_NVML_FUNCTIONS(X) lists every name. An implementer (the emulator, a fake for tests) includes
// this header and defines the functions; the prototypes give C linkage and default visibility.
//
// Units where the interface gives no hint: memory bytes, power milliwatts, energy millijoules,
// temperature degrees Celsius, clocks MHz, PCIe throughput KB/s (GPM: MiB/s), time stamps of
// process samples microseconds since 1970.
#include <cstddef>

// NOLINTBEGIN: the names belong to the interface, and so does the C style.
#define TAKT_NVML_API __attribute__((visibility("default")))

extern "C" {

enum nvmlReturn_t : unsigned int {
  NVML_SUCCESS = 0,
  NVML_ERROR_UNINITIALIZED = 1,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NO_PERMISSION = 4,
  NVML_ERROR_ALREADY_INITIALIZED = 5,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
  NVML_ERROR_INSUFFICIENT_POWER = 8,
  NVML_ERROR_DRIVER_NOT_LOADED = 9,
  NVML_ERROR_TIMEOUT = 10,
  NVML_ERROR_IRQ_ISSUE = 11,
  NVML_ERROR_LIBRARY_NOT_FOUND = 12,
  NVML_ERROR_FUNCTION_NOT_FOUND = 13,
  NVML_ERROR_CORRUPTED_INFOROM = 14,
  NVML_ERROR_GPU_IS_LOST = 15,
  NVML_ERROR_RESET_REQUIRED = 16,
  NVML_ERROR_OPERATING_SYSTEM = 17,
  NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
  NVML_ERROR_IN_USE = 19,
  NVML_ERROR_MEMORY = 20,
  NVML_ERROR_NO_DATA = 21,
  NVML_ERROR_VGPU_ECC_NOT_SUPPORTED = 22,
  NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
  NVML_ERROR_FREQ_NOT_SUPPORTED = 24,
  NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
  NVML_ERROR_DEPRECATED = 26,
  NVML_ERROR_NOT_READY = 27,
  NVML_ERROR_GPU_NOT_FOUND = 28,
  NVML_ERROR_INVALID_STATE = 29,
  NVML_ERROR_UNKNOWN = 999,
};

// Handles are opaque pointers.
typedef struct nvmlDevice_st* nvmlDevice_t;
typedef struct nvmlGpuInstance_st* nvmlGpuInstance_t;
typedef struct nvmlEventSet_st* nvmlEventSet_t;
typedef struct nvmlGpmSample_st* nvmlGpmSample_t;

#define NVML_INIT_FLAG_NO_GPUS 1u
#define NVML_INIT_FLAG_NO_ATTACH 2u
#define NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE 80
#define NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE 80
#define NVML_DEVICE_NAME_V2_BUFFER_SIZE 96
#define NVML_DEVICE_UUID_V2_BUFFER_SIZE 96
#define NVML_NVLINK_MAX_LINKS 18
#define NVML_VALUE_NOT_AVAILABLE_ULL 0xFFFFFFFFFFFFFFFFull  // e.g. usedGpuMemory
#define NVML_NO_INSTANCE_ID 0xFFFFFFFFu  // our name: gpuInstanceId of a process on a whole GPU
// The version word of a versioned struct: its size and, from bit 24, the number of the layout.
#define NVML_STRUCT_VERSION(type, number) \
  (static_cast<unsigned int>(sizeof(type)) | (static_cast<unsigned int>(number) << 24))

enum nvmlEnableState_t : unsigned int { NVML_FEATURE_DISABLED = 0, NVML_FEATURE_ENABLED = 1 };
enum nvmlTemperatureSensors_t : unsigned int { NVML_TEMPERATURE_GPU = 0 };
enum nvmlClockType_t : unsigned int {
  NVML_CLOCK_GRAPHICS = 0,
  NVML_CLOCK_SM = 1,
  NVML_CLOCK_MEM = 2,
  NVML_CLOCK_VIDEO = 3,
};
enum nvmlPstates_t : unsigned int {
  NVML_PSTATE_0 = 0,
  NVML_PSTATE_15 = 15,
  NVML_PSTATE_UNKNOWN = 32
};
enum nvmlMemoryErrorType_t : unsigned int {
  NVML_MEMORY_ERROR_TYPE_CORRECTED = 0,
  NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1,
};
enum nvmlEccCounterType_t : unsigned int { NVML_VOLATILE_ECC = 0, NVML_AGGREGATE_ECC = 1 };
enum nvmlPcieUtilCounter_t : unsigned int {
  NVML_PCIE_UTIL_TX_BYTES = 0,
  NVML_PCIE_UTIL_RX_BYTES = 1
};
enum nvmlGpuTopologyLevel_t : unsigned int {
  NVML_TOPOLOGY_INTERNAL = 0,     // two GPUs of one board
  NVML_TOPOLOGY_SINGLE = 10,      // one PCIe switch: nvidia-smi's PIX
  NVML_TOPOLOGY_MULTIPLE = 20,    // several PCIe switches: PXB
  NVML_TOPOLOGY_HOSTBRIDGE = 30,  // one host bridge: PHB
  NVML_TOPOLOGY_NODE = 40,        // one NUMA node: NODE
  NVML_TOPOLOGY_SYSTEM = 50,      // across sockets: SYS
};
enum nvmlIntNvLinkDeviceType_t : unsigned int {
  NVML_NVLINK_DEVICE_TYPE_GPU = 0,
  NVML_NVLINK_DEVICE_TYPE_IBMNPU = 1,
  NVML_NVLINK_DEVICE_TYPE_SWITCH = 2,
  NVML_NVLINK_DEVICE_TYPE_UNKNOWN = 255,
};

// Bits of nvmlDeviceGetCurrentClocksEventReasons.
#define nvmlClocksEventReasonGpuIdle 0x001ull
#define nvmlClocksEventReasonApplicationsClocksSetting 0x002ull
#define nvmlClocksEventReasonSwPowerCap 0x004ull
#define nvmlClocksThrottleReasonHwSlowdown 0x008ull
#define nvmlClocksEventReasonSyncBoost 0x010ull
#define nvmlClocksEventReasonSwThermalSlowdown 0x020ull
#define nvmlClocksThrottleReasonHwThermalSlowdown 0x040ull
#define nvmlClocksThrottleReasonHwPowerBrakeSlowdown 0x080ull
#define nvmlClocksEventReasonDisplayClockSetting 0x100ull

// Bits of nvmlDeviceRegisterEvents and of nvmlEventData_t::eventType.
#define nvmlEventTypeSingleBitEccError 0x001ull
#define nvmlEventTypeDoubleBitEccError 0x002ull
#define nvmlEventTypeXidCriticalError 0x008ull
#define nvmlEventMigConfigChange 0x100ull

struct nvmlPciInfo_t {
  char busIdLegacy[16];
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pciDeviceId;  // device << 16 | vendor
  unsigned int pciSubSystemId;
  char busId[32];  // "00000000:07:00.0"
};

struct nvmlMemory_t {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct nvmlMemory_v2_t {
  unsigned int version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
#define nvmlMemory_v2 NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2)

struct nvmlUtilization_t {
  unsigned int gpu;
  unsigned int memory;
};

// nvmlDeviceGet{Compute,Graphics}RunningProcesses, the unversioned name.
struct nvmlProcessInfo_v1_t {
  unsigned int pid;
  unsigned long long usedGpuMemory;
};
// ..._v2 and ..._v3.
struct nvmlProcessInfo_t {
  unsigned int pid;
  unsigned long long usedGpuMemory;
  unsigned int gpuInstanceId;
  unsigned int computeInstanceId;
};
// What ..._v3 wrote in drivers 535.43 to before 535.86 only (nvitop #79, gpustat #161).
struct nvmlProcessInfo_driver535_t {
  unsigned int pid;
  unsigned long long usedGpuMemory;
  unsigned int gpuInstanceId;
  unsigned int computeInstanceId;
  unsigned long long usedGpuCcProtectedMemory;
};

struct nvmlProcessUtilizationSample_t {
  unsigned int pid;
  unsigned long long timeStamp;
  unsigned int smUtil;
  unsigned int memUtil;
  unsigned int encUtil;
  unsigned int decUtil;
};

struct nvmlDeviceAttributes_t {
  unsigned int multiprocessorCount;
  unsigned int sharedCopyEngineCount;
  unsigned int sharedDecoderCount;
  unsigned int sharedEncoderCount;
  unsigned int sharedJpegCount;
  unsigned int sharedOfaCount;
  unsigned int gpuInstanceSliceCount;
  unsigned int computeInstanceSliceCount;
  unsigned long long memorySizeMB;
};

struct nvmlGpuInstancePlacement_t {
  unsigned int start;  // memory slices
  unsigned int size;
};
struct nvmlGpuInstanceInfo_t {
  nvmlDevice_t device;
  unsigned int id;
  unsigned int profileId;
  nvmlGpuInstancePlacement_t placement;
};

struct nvmlEventData_t {
  nvmlDevice_t device;
  unsigned long long eventType;
  unsigned long long eventData;  // the XID
  unsigned int gpuInstanceId;
  unsigned int computeInstanceId;
};

struct nvmlGpmSupport_t {
  unsigned int version;  // NVML_GPM_SUPPORT_VERSION
  unsigned int isSupportedDevice;
};
#define NVML_GPM_SUPPORT_VERSION 1u

enum nvmlGpmMetricId_t : unsigned int {
  NVML_GPM_METRIC_GRAPHICS_UTIL = 1,  // the utilisations are percentages, 0.0-100.0
  NVML_GPM_METRIC_SM_UTIL = 2,
  NVML_GPM_METRIC_SM_OCCUPANCY = 3,
  NVML_GPM_METRIC_ANY_TENSOR_UTIL = 5,
  NVML_GPM_METRIC_DRAM_BW_UTIL = 10,
  NVML_GPM_METRIC_PCIE_TX_PER_SEC = 20,  // MiB/s, from the GPU
  NVML_GPM_METRIC_PCIE_RX_PER_SEC = 21,  // MiB/s, to the GPU
};
struct nvmlGpmMetricInfo_t {
  char* shortName;
  char* longName;
  char* unit;
};
struct nvmlGpmMetric_t {
  unsigned int metricId;    // in
  nvmlReturn_t nvmlReturn;  // out, of this metric
  double value;             // out; NaN is missing
  nvmlGpmMetricInfo_t metricInfo;
};
// The array's length grew with drivers (98, 210, 333) under one version number; `numMetrics`
// entries are read and written. An implementer touches only those; a caller passes the long form.
#define NVML_GPM_METRIC_MAX 333
struct nvmlGpmMetricsGet_t {
  unsigned int version;  // NVML_GPM_METRICS_GET_VERSION
  unsigned int numMetrics;
  nvmlGpmSample_t sample1;
  nvmlGpmSample_t sample2;
  nvmlGpmMetric_t metrics[NVML_GPM_METRIC_MAX];
};
#define NVML_GPM_METRICS_GET_VERSION 1u

TAKT_NVML_API nvmlReturn_t nvmlInit_v2(void);
TAKT_NVML_API nvmlReturn_t nvmlInitWithFlags(unsigned int flags);
TAKT_NVML_API nvmlReturn_t nvmlShutdown(void);
TAKT_NVML_API const char* nvmlErrorString(nvmlReturn_t result);
TAKT_NVML_API nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned int length);
TAKT_NVML_API nvmlReturn_t nvmlSystemGetNVMLVersion(char* version, unsigned int length);
TAKT_NVML_API nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* version);  // 12040 is 12.4
TAKT_NVML_API nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char* name,
                                                    unsigned int length);

TAKT_NVML_API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int* count);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t* device);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned int length);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int* index);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int* minor);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned int length);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int* node);

TAKT_NVML_API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device,
                                                         nvmlUtilization_t* rates);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device,
                                                    nvmlTemperatureSensors_t sensor,
                                                    unsigned int* celsius);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int* milliwatts);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device,
                                                           unsigned int* milliwatts);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device,
                                                               unsigned long long* millijoules);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type,
                                                  unsigned int* mhz);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                                  unsigned long long* reasons);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                                                     unsigned long long* reasons);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t* state);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int* percent);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device,
                                                       nvmlMemoryErrorType_t type,
                                                       nvmlEccCounterType_t counter,
                                                       unsigned long long* count);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device,
                                                       nvmlPcieUtilCounter_t counter,
                                                       unsigned int* kilobytes_per_second);

// `count` is the capacity going in and the number of processes coming out.
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device,
                                                                unsigned int* count,
                                                                nvmlProcessInfo_v1_t* infos);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device,
                                                                   unsigned int* count,
                                                                   nvmlProcessInfo_t* infos);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device,
                                                                   unsigned int* count,
                                                                   nvmlProcessInfo_t* infos);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device,
                                                                 unsigned int* count,
                                                                 nvmlProcessInfo_v1_t* infos);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device,
                                                                    unsigned int* count,
                                                                    nvmlProcessInfo_t* infos);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device,
                                                                    unsigned int* count,
                                                                    nvmlProcessInfo_t* infos);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                                           nvmlProcessUtilizationSample_t* samples,
                                                           unsigned int* count,
                                                           unsigned long long last_seen);

TAKT_NVML_API nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int* current,
                                                unsigned int* pending);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int* count);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device,
                                                               unsigned int index,
                                                               nvmlDevice_t* mig_device);
TAKT_NVML_API nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int* is_mig);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig_device,
                                                                        nvmlDevice_t* device);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t mig_device, unsigned int* id);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t mig_device,
                                                          unsigned int* id);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t mig_device,
                                                      nvmlDeviceAttributes_t* attributes);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id,
                                                        nvmlGpuInstance_t* instance);
TAKT_NVML_API nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance,
                                                  nvmlGpuInstanceInfo_t* info);

TAKT_NVML_API nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b,
                                                               nvmlGpuTopologyLevel_t* level);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link,
                                                    nvmlEnableState_t* active);
TAKT_NVML_API nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device,
                                                               unsigned int link,
                                                               nvmlPciInfo_t* pci);

// Waiting ends with NVML_ERROR_TIMEOUT after `timeout_ms` without an event.
TAKT_NVML_API nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t* set);
TAKT_NVML_API nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t* data,
                                               unsigned int timeout_ms);
TAKT_NVML_API nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set);
TAKT_NVML_API nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                                    nvmlEventSet_t set);

TAKT_NVML_API nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device,
                                                     nvmlGpmSupport_t* support);
TAKT_NVML_API nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t* sample);
TAKT_NVML_API nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample);
TAKT_NVML_API nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample);
TAKT_NVML_API nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned int gpu_instance,
                                               nvmlGpmSample_t sample);
TAKT_NVML_API nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t* metrics);

// Not NVML: what a library that stands in for GPUs exports beside it, so that takt can say so.
// The first one's address counts, not its value; the second gives a sentence or an empty string.
TAKT_NVML_API extern const char takt_emulated_fleet[];
TAKT_NVML_API const char* takt_emulator_problem(void);

}  // extern "C"

// Every function above, for tables of pointers and for lists of exports.
// clang-format off
#define TAKT_NVML_FUNCTIONS(X) \
  X(nvmlInit_v2) X(nvmlInitWithFlags) X(nvmlShutdown) X(nvmlErrorString) \
  X(nvmlSystemGetDriverVersion) X(nvmlSystemGetNVMLVersion) X(nvmlSystemGetCudaDriverVersion_v2) \
  X(nvmlSystemGetProcessName) X(nvmlDeviceGetCount_v2) X(nvmlDeviceGetHandleByIndex_v2) \
  X(nvmlDeviceGetHandleByUUID) X(nvmlDeviceGetUUID) X(nvmlDeviceGetIndex) \
  X(nvmlDeviceGetMinorNumber) X(nvmlDeviceGetName) X(nvmlDeviceGetPciInfo_v3) \
  X(nvmlDeviceGetNumaNodeId) X(nvmlDeviceGetMemoryInfo) X(nvmlDeviceGetMemoryInfo_v2) \
  X(nvmlDeviceGetUtilizationRates) X(nvmlDeviceGetTemperature) X(nvmlDeviceGetPowerUsage) \
  X(nvmlDeviceGetEnforcedPowerLimit) X(nvmlDeviceGetTotalEnergyConsumption) \
  X(nvmlDeviceGetClockInfo) X(nvmlDeviceGetCurrentClocksEventReasons) \
  X(nvmlDeviceGetCurrentClocksThrottleReasons) X(nvmlDeviceGetPerformanceState) \
  X(nvmlDeviceGetFanSpeed) X(nvmlDeviceGetTotalEccErrors) X(nvmlDeviceGetPcieThroughput) \
  X(nvmlDeviceGetComputeRunningProcesses) X(nvmlDeviceGetComputeRunningProcesses_v2) \
  X(nvmlDeviceGetComputeRunningProcesses_v3) X(nvmlDeviceGetGraphicsRunningProcesses) \
  X(nvmlDeviceGetGraphicsRunningProcesses_v2) X(nvmlDeviceGetGraphicsRunningProcesses_v3) \
  X(nvmlDeviceGetProcessUtilization) X(nvmlDeviceGetMigMode) X(nvmlDeviceGetMaxMigDeviceCount) \
  X(nvmlDeviceGetMigDeviceHandleByIndex) X(nvmlDeviceIsMigDeviceHandle) \
  X(nvmlDeviceGetDeviceHandleFromMigDeviceHandle) X(nvmlDeviceGetGpuInstanceId) \
  X(nvmlDeviceGetComputeInstanceId) X(nvmlDeviceGetAttributes_v2) \
  X(nvmlDeviceGetGpuInstanceById) X(nvmlGpuInstanceGetInfo) \
  X(nvmlDeviceGetTopologyCommonAncestor) X(nvmlDeviceGetNvLinkState) \
  X(nvmlDeviceGetNvLinkRemotePciInfo_v2) X(nvmlEventSetCreate) X(nvmlEventSetWait_v2) \
  X(nvmlEventSetFree) X(nvmlDeviceRegisterEvents) X(nvmlGpmQueryDeviceSupport) \
  X(nvmlGpmSampleAlloc) X(nvmlGpmSampleFree) X(nvmlGpmSampleGet) X(nvmlGpmMigSampleGet) \
  X(nvmlGpmMetricsGet)
// clang-format on

// A wrong size here corrupts memory at a customer's, so it fails at build time.
static_assert(sizeof(nvmlReturn_t) == 4);
static_assert(sizeof(nvmlPciInfo_t) == 68 && offsetof(nvmlPciInfo_t, busId) == 36);
static_assert(sizeof(nvmlMemory_t) == 24);
static_assert(sizeof(nvmlMemory_v2_t) == 40 && offsetof(nvmlMemory_v2_t, reserved) == 16);
static_assert(nvmlMemory_v2 == 0x02000028u);
static_assert(sizeof(nvmlUtilization_t) == 8);
static_assert(sizeof(nvmlProcessInfo_v1_t) == 16);
static_assert(sizeof(nvmlProcessInfo_t) == 24 && offsetof(nvmlProcessInfo_t, gpuInstanceId) == 16);
static_assert(sizeof(nvmlProcessInfo_driver535_t) == 32);
static_assert(sizeof(nvmlProcessUtilizationSample_t) == 32);
static_assert(offsetof(nvmlProcessUtilizationSample_t, smUtil) == 16);
static_assert(sizeof(nvmlDeviceAttributes_t) == 40);
static_assert(sizeof(nvmlGpuInstanceInfo_t) == 24);
static_assert(offsetof(nvmlGpuInstanceInfo_t, placement) == 16);
static_assert(sizeof(nvmlEventData_t) == 32);
static_assert(sizeof(nvmlGpmSupport_t) == 8);
static_assert(sizeof(nvmlGpmMetric_t) == 40 && offsetof(nvmlGpmMetric_t, value) == 8);
static_assert(offsetof(nvmlGpmMetricsGet_t, metrics) == 24);
// NOLINTEND
