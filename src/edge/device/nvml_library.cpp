#include "edge/device/nvml_library.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdlib>

namespace takt::device {
namespace {

template <class Pointer>
void load_one(void* handle, NvmlFunction<Pointer>& function) {
  function.pointer = reinterpret_cast<Pointer>(dlsym(handle, function.name));
}

std::string load_problem(const std::string& path, const char* loader_words) {
  const std::string words = loader_words == nullptr ? "unknown reason" : loader_words;
  if (words.find("No such file") != std::string::npos)
    return fmt::format(
        "no NVIDIA driver: {} was not found. Install NVIDIA's driver, or name another library with "
        "TAKT_NVML; takt looks again with every poll.",
        path);
  return fmt::format(
      "the NVIDIA driver's library {} could not be loaded: {}. Check that it is a 64-bit shared "
      "library that belongs to the installed driver.",
      path, words);
}

std::string init_problem(const std::string& path, nvmlReturn_t code) {
  const std::string what = fmt::format("nvmlInit_v2 of {} said \"{}\" (code {})", path,
                                       nvml_words(code), static_cast<unsigned>(code));
  switch (code) {
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
      return what +
             ": the library and the loaded kernel module are of different driver versions, usually "
             "after an update. Reboot, or unload and load the nvidia kernel modules.";
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return what +
             ": the kernel module is not loaded. Try \"modprobe nvidia\" and look at \"dmesg | "
             "grep "
             "-i nvrm\" for why it did not load.";
    case NVML_ERROR_NO_PERMISSION:
    case NVML_ERROR_OPERATING_SYSTEM:
      return what +
             ": takt may not open the driver's devices. Give its user read and write access to "
             "/dev/nvidiactl and /dev/nvidia*, or allow them in its cgroup or container.";
    case NVML_ERROR_FUNCTION_NOT_FOUND:
      return what + ": the driver is too old. Install NVIDIA driver 450 or newer.";
    case NVML_ERROR_GPU_IS_LOST:
    case NVML_ERROR_RESET_REQUIRED:
    case NVML_ERROR_IRQ_ISSUE:
    case NVML_ERROR_INSUFFICIENT_POWER:
      return what +
             ": a GPU keeps the driver from starting. Look at \"dmesg | grep -i xid\", check "
             "cables "
             "and seating, and reset the GPU or reboot.";
    case NVML_SUCCESS:
    case NVML_ERROR_UNINITIALIZED:
    case NVML_ERROR_INVALID_ARGUMENT:
    case NVML_ERROR_NOT_SUPPORTED:
    case NVML_ERROR_ALREADY_INITIALIZED:
    case NVML_ERROR_NOT_FOUND:
    case NVML_ERROR_INSUFFICIENT_SIZE:
    case NVML_ERROR_TIMEOUT:
    case NVML_ERROR_LIBRARY_NOT_FOUND:
    case NVML_ERROR_CORRUPTED_INFOROM:
    case NVML_ERROR_IN_USE:
    case NVML_ERROR_MEMORY:
    case NVML_ERROR_NO_DATA:
    case NVML_ERROR_VGPU_ECC_NOT_SUPPORTED:
    case NVML_ERROR_INSUFFICIENT_RESOURCES:
    case NVML_ERROR_FREQ_NOT_SUPPORTED:
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
    case NVML_ERROR_DEPRECATED:
    case NVML_ERROR_NOT_READY:
    case NVML_ERROR_GPU_NOT_FOUND:
    case NVML_ERROR_INVALID_STATE:
    case NVML_ERROR_UNKNOWN: break;
  }
  return what + ". Try nvidia-smi; if it fails in the same way, look at dmesg and reboot.";
}

// What an emulator has to say about why it does not start; empty for NVIDIA's own library.
std::string emulator_problem(void* handle) {
  using Function = decltype(&::takt_emulator_problem);
  const auto function = reinterpret_cast<Function>(dlsym(handle, "takt_emulator_problem"));
  const char* words = function == nullptr ? nullptr : function();
  return words == nullptr ? std::string() : std::string(words);
}

}  // namespace

std::string nvml_words(nvmlReturn_t code) {
  switch (code) {
    case NVML_SUCCESS: return "success";
    case NVML_ERROR_UNINITIALIZED: return "the library is not initialised";
    case NVML_ERROR_INVALID_ARGUMENT: return "invalid argument";
    case NVML_ERROR_NOT_SUPPORTED: return "not supported";
    case NVML_ERROR_NO_PERMISSION: return "no permission";
    case NVML_ERROR_ALREADY_INITIALIZED: return "already initialised";
    case NVML_ERROR_NOT_FOUND: return "not found";
    case NVML_ERROR_INSUFFICIENT_SIZE: return "buffer too small";
    case NVML_ERROR_INSUFFICIENT_POWER: return "power cables not attached properly";
    case NVML_ERROR_DRIVER_NOT_LOADED: return "the driver is not loaded";
    case NVML_ERROR_TIMEOUT: return "timed out";
    case NVML_ERROR_IRQ_ISSUE: return "interrupt problem of a GPU";
    case NVML_ERROR_LIBRARY_NOT_FOUND: return "a library is missing";
    case NVML_ERROR_FUNCTION_NOT_FOUND: return "this driver does not have the function";
    case NVML_ERROR_CORRUPTED_INFOROM: return "the GPU's infoROM is corrupted";
    case NVML_ERROR_GPU_IS_LOST: return "the GPU is lost";
    case NVML_ERROR_RESET_REQUIRED: return "the GPU needs a reset";
    case NVML_ERROR_OPERATING_SYSTEM: return "blocked by the operating system or cgroup";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return "driver and library versions differ";
    case NVML_ERROR_IN_USE: return "the GPU is in use";
    case NVML_ERROR_MEMORY: return "out of memory";
    case NVML_ERROR_NO_DATA: return "no data";
    case NVML_ERROR_VGPU_ECC_NOT_SUPPORTED: return "not supported with ECC on";
    case NVML_ERROR_INSUFFICIENT_RESOURCES: return "out of resources";
    case NVML_ERROR_FREQ_NOT_SUPPORTED: return "frequency not supported";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH: return "structure version not supported";
    case NVML_ERROR_DEPRECATED: return "deprecated";
    case NVML_ERROR_NOT_READY: return "not ready";
    case NVML_ERROR_GPU_NOT_FOUND: return "no GPU";
    case NVML_ERROR_INVALID_STATE: return "invalid state";
    case NVML_ERROR_UNKNOWN: break;
  }
  return "unknown error";
}

Missing nvml_missing(const char* call, nvmlReturn_t code) {
  const std::string detail =
      fmt::format("{}: {} (code {})", call, nvml_words(code), static_cast<unsigned>(code));
  switch (code) {
    case NVML_ERROR_NOT_SUPPORTED:
    case NVML_ERROR_FUNCTION_NOT_FOUND:
    case NVML_ERROR_VGPU_ECC_NOT_SUPPORTED:
    case NVML_ERROR_FREQ_NOT_SUPPORTED:
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
    case NVML_ERROR_DEPRECATED: return {MissingKind::not_supported, detail};
    case NVML_ERROR_NO_PERMISSION:
    case NVML_ERROR_OPERATING_SYSTEM: return {MissingKind::not_permitted, detail};
    case NVML_ERROR_NOT_FOUND:
    case NVML_ERROR_GPU_NOT_FOUND: return {MissingKind::not_found, detail};
    case NVML_ERROR_NO_DATA:
    case NVML_ERROR_NOT_READY: return {MissingKind::no_sample_yet, detail};
    case NVML_ERROR_TIMEOUT: return {MissingKind::timed_out, detail};
    case NVML_ERROR_GPU_IS_LOST:
    case NVML_ERROR_RESET_REQUIRED: return {MissingKind::device_lost, detail};
    case NVML_SUCCESS:
    case NVML_ERROR_UNINITIALIZED:
    case NVML_ERROR_INVALID_ARGUMENT:
    case NVML_ERROR_ALREADY_INITIALIZED:
    case NVML_ERROR_INSUFFICIENT_SIZE:
    case NVML_ERROR_INSUFFICIENT_POWER:
    case NVML_ERROR_DRIVER_NOT_LOADED:
    case NVML_ERROR_IRQ_ISSUE:
    case NVML_ERROR_LIBRARY_NOT_FOUND:
    case NVML_ERROR_CORRUPTED_INFOROM:
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
    case NVML_ERROR_IN_USE:
    case NVML_ERROR_MEMORY:
    case NVML_ERROR_INSUFFICIENT_RESOURCES:
    case NVML_ERROR_INVALID_STATE:
    case NVML_ERROR_UNKNOWN: break;
  }
  return {MissingKind::driver_error, detail};
}

bool nvml_driver_gone(nvmlReturn_t code) {
  return code == NVML_ERROR_UNINITIALIZED || code == NVML_ERROR_DRIVER_NOT_LOADED ||
         code == NVML_ERROR_LIB_RM_VERSION_MISMATCH;
}

Result<std::shared_ptr<NvmlLibrary>> NvmlLibrary::open(const std::string& path) {
  dlerror();
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return fail(ErrorKind::unavailable, load_problem(path, dlerror()));
  std::shared_ptr<NvmlLibrary> library(new NvmlLibrary(handle));
  library->load_functions();
  if (const std::string missing = library->missing_functions(); !missing.empty())
    return fail(
        ErrorKind::unavailable,
        fmt::format("{} lacks {}: the driver is too old. Install NVIDIA driver 450 or newer.", path,
                    missing));

  const NvmlFunctions& f = library->functions_;
  nvmlReturn_t code = f.nvmlInit_v2.pointer();
  if (code != NVML_SUCCESS) {
    const std::string own_words = emulator_problem(handle);
    return fail(ErrorKind::unavailable, own_words.empty() ? init_problem(path, code) : own_words);
  }
  library->initialised_ = true;
  char version[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE] = "";
  if (f.nvmlSystemGetDriverVersion.pointer != nullptr &&
      f.nvmlSystemGetDriverVersion.pointer(version, sizeof version) == NVML_SUCCESS) {
    version[sizeof version - 1] = '\0';
    library->driver_version_ = version;
  }
  code = f.nvmlDeviceGetCount_v2.pointer(&library->device_count_);
  if (code != NVML_SUCCESS)
    return fail(
        ErrorKind::unavailable,
        fmt::format("{}. Try nvidia-smi; if it fails in the same way, look at dmesg and reboot.",
                    nvml_missing("nvmlDeviceGetCount_v2", code).detail));
  return library;
}

void NvmlLibrary::load_functions() {
#define TAKT_LOAD_ONE(function) load_one(handle_, functions_.function);
  TAKT_NVML_FUNCTIONS(TAKT_LOAD_ONE)
#undef TAKT_LOAD_ONE
  emulated_ = dlsym(handle_, "takt_emulated_fleet") != nullptr;
}

// Those without which nothing can be said about any GPU. All others may be missing.
std::string NvmlLibrary::missing_functions() const {
  std::string missing;
  const auto need = [&missing](const auto& function) {
    if (function.pointer == nullptr)
      missing += (missing.empty() ? "" : ", ") + std::string(function.name);
  };
  need(functions_.nvmlInit_v2);
  need(functions_.nvmlShutdown);
  need(functions_.nvmlDeviceGetCount_v2);
  need(functions_.nvmlDeviceGetHandleByIndex_v2);
  need(functions_.nvmlDeviceGetUUID);
  return missing;
}

int NvmlLibrary::driver_major() const { return std::atoi(driver_version_.c_str()); }

NvmlLibrary::~NvmlLibrary() {
  if (initialised_) functions_.nvmlShutdown.pointer();
  dlclose(handle_);
}

}  // namespace takt::device
