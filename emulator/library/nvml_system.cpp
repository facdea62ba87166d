// nvmlInit, nvmlShutdown and nvmlSystem*.
#include <fstream>

#include "library/session.h"

using namespace takt::emulator;

extern "C" {

// Whoever loads an NVML library and finds this symbol must say "emulated".
const char takt_emulated_fleet[] = "takt-emulator";

const char* takt_emulator_problem(void) { return Session::instance().problem(); }

nvmlReturn_t nvmlInit_v2(void) { return Session::instance().start(); }

nvmlReturn_t nvmlInitWithFlags(unsigned int) { return Session::instance().start(); }

nvmlReturn_t nvmlShutdown(void) { return Session::instance().end(); }

nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned int length) {
  if (!Session::instance().started()) return NVML_ERROR_UNINITIALIZED;
  std::string text = Session::instance().facts().driver_version;
  return text.empty() ? NVML_ERROR_NOT_SUPPORTED : copy_text(text, version, length);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char* version, unsigned int length) {
  if (!Session::instance().started()) return NVML_ERROR_UNINITIALIZED;
  std::string text = Session::instance().facts().nvml_version;
  return text.empty() ? NVML_ERROR_NOT_SUPPORTED : copy_text(text, version, length);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* version) {
  if (!Session::instance().started()) return NVML_ERROR_UNINITIALIZED;
  if (version == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  auto known = Session::instance().facts().cuda_version;
  if (known == 0) return NVML_ERROR_NOT_SUPPORTED;
  *version = static_cast<int>(known);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char* name, unsigned int length) {
  if (name == nullptr || length == 0) return NVML_ERROR_INVALID_ARGUMENT;
  Request request{"processname", -1, {pid}, {}};
  Reply reply;
  nvmlReturn_t code = Session::instance().ask_driver(request, reply);
  std::string text;
  if (code == NVML_SUCCESS && !reply.texts.empty()) {
    text = reply.texts[0];
  } else if (code == NVML_ERROR_NOT_FOUND) {
    std::ifstream command("/proc/" + std::to_string(pid) + "/comm");
    if (!std::getline(command, text)) return NVML_ERROR_NOT_FOUND;
  } else {
    return code;
  }
  if (text.size() + 1 > length) text.resize(length - 1);  // NVML cuts long names
  return copy_text(text, name, length);
}

const char* nvmlErrorString(nvmlReturn_t result) {
  switch (static_cast<unsigned>(result)) {
    case NVML_SUCCESS: return "Success";
    case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT: return "Invalid argument";
    case NVML_ERROR_NOT_SUPPORTED: return "Not supported";
    case NVML_ERROR_NO_PERMISSION: return "No permission";
    case NVML_ERROR_ALREADY_INITIALIZED: return "Already initialized";
    case NVML_ERROR_NOT_FOUND: return "Not found";
    case NVML_ERROR_INSUFFICIENT_SIZE: return "Buffer too small";
    case NVML_ERROR_INSUFFICIENT_POWER: return "External power cables are not attached";
    case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver not loaded";
    case NVML_ERROR_TIMEOUT: return "Timeout";
    case NVML_ERROR_IRQ_ISSUE: return "Interrupt problem";
    case NVML_ERROR_LIBRARY_NOT_FOUND: return "Library not found";
    case NVML_ERROR_FUNCTION_NOT_FOUND: return "Function not found";
    case NVML_ERROR_CORRUPTED_INFOROM: return "Inforom is corrupted";
    case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
    case NVML_ERROR_RESET_REQUIRED: return "GPU requires a reset";
    case NVML_ERROR_OPERATING_SYSTEM: return "Blocked by the operating system";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return "Driver and library versions differ";
    case NVML_ERROR_IN_USE: return "In use";
    case NVML_ERROR_MEMORY: return "Out of memory";
    case NVML_ERROR_NO_DATA: return "No data";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH: return "Version of a struct is not known";
    case NVML_ERROR_DEPRECATED: return "Deprecated";
    case NVML_ERROR_NOT_READY: return "Not ready";
    default: return "Unknown error";
  }
}

}  // extern "C"
