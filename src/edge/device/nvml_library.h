#pragma once
// The driver's library: loading it, its functions, and what its error codes mean.
#include <atomic>
#include <memory>
#include <string>

#include "core/base/measured.h"
#include "core/base/result.h"
#include "edge/device/nvml_abi.h"

namespace takt::device {

// One function of the library, or null where this driver does not have it.
template <class Pointer>
struct NvmlFunction {
  const char* name;
  Pointer pointer = nullptr;
};

struct NvmlFunctions {
#define TAKT_ONE_FUNCTION(function) NvmlFunction<decltype(&::function)> function{#function};
  TAKT_NVML_FUNCTIONS(TAKT_ONE_FUNCTION)
#undef TAKT_ONE_FUNCTION
};

// Calls functions and remembers which one is running, so that a hang can be named.
class NvmlCaller {
 public:
  template <class... Parameters, class... Arguments>
  nvmlReturn_t operator()(const NvmlFunction<nvmlReturn_t (*)(Parameters...)>& function,
                          Arguments... arguments) {
    if (function.pointer == nullptr) return NVML_ERROR_FUNCTION_NOT_FOUND;
    running_.store(function.name, std::memory_order_relaxed);
    const nvmlReturn_t result = function.pointer(arguments...);
    running_.store(nullptr, std::memory_order_relaxed);
    return result;
  }
  // Null when no call is running.
  const char* running() const { return running_.load(std::memory_order_relaxed); }

 private:
  std::atomic<const char*> running_{nullptr};
};

// "GPU is lost", for people.
std::string nvml_words(nvmlReturn_t code);

// The reason of a Missing for a call that failed. The detail names call and code.
Missing nvml_missing(const char* call, nvmlReturn_t code);

// True for codes that say that the whole driver is gone, not one GPU.
bool nvml_driver_gone(nvmlReturn_t code);

class NvmlLibrary {
 public:
  // Loads the library and initialises it. The error is a sentence with the next step, fit for
  // Node::driver_problem. May block as long as the driver does.
  static Result<std::shared_ptr<NvmlLibrary>> open(const std::string& path);

  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;
  ~NvmlLibrary();

  const NvmlFunctions& functions() const { return functions_; }
  const std::string& driver_version() const {
    return driver_version_;
  }                          // "535.104.05"; may be empty
  int driver_major() const;  // 535; 0 when unknown
  bool emulated() const { return emulated_; }
  unsigned device_count() const { return device_count_; }

 private:
  explicit NvmlLibrary(void* handle) : handle_(handle) {}
  void load_functions();
  std::string missing_functions() const;

  void* handle_;
  bool initialised_ = false;
  bool emulated_ = false;
  unsigned device_count_ = 0;
  std::string driver_version_;
  NvmlFunctions functions_;
};

}  // namespace takt::device
