#pragma once
// Asking one GPU: every call's failure becomes a Missing, and what it says about the GPU's health
// is kept for the end of the reading.
#include <fmt/core.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/base/measured.h"
#include "edge/device/nvml_library.h"

namespace takt::device {

class GpuCalls {
 public:
  explicit GpuCalls(std::shared_ptr<NvmlLibrary> library) : library_(std::move(library)) {}

  const NvmlFunctions& functions() const { return library_->functions(); }
  const NvmlLibrary& library() const { return *library_; }
  const char* running() const { return caller_.running(); }

  void begin_reading() {
    lost_.reset();
    driver_gone_ = false;
  }
  // Set when a call of this reading said that the GPU is lost or needs a reset: call and words.
  const std::optional<std::string>& lost() const { return lost_; }
  bool driver_gone() const { return driver_gone_; }

  template <class Function, class... Arguments>
  nvmlReturn_t call(const Function& function, Arguments... arguments) {
    const nvmlReturn_t code = caller_(function, arguments...);
    if ((code == NVML_ERROR_GPU_IS_LOST || code == NVML_ERROR_RESET_REQUIRED) && !lost_)
      lost_ = nvml_missing(function.name, code).detail;
    driver_gone_ = driver_gone_ || nvml_driver_gone(code);
    return code;
  }

  // For functions whose last parameter receives one number. A number above `most` is impossible and
  // becomes out_of_range; drivers also give sentinels such as 2^32 - 1 with "success".
  template <class Number, class Function, class... Arguments>
  Measured<Number> ask(const Function& function, Number most, Arguments... arguments) {
    Number value{};
    const nvmlReturn_t code = call(function, arguments..., &value);
    if (code != NVML_SUCCESS) return tl::make_unexpected(nvml_missing(function.name, code));
    if (value > most)
      return missing(MissingKind::out_of_range, fmt::format("{} gave {}", function.name, value));
    return value;
  }

 private:
  std::shared_ptr<NvmlLibrary> library_;
  NvmlCaller caller_;
  std::optional<std::string> lost_;
  bool driver_gone_ = false;
};

}  // namespace takt::device
