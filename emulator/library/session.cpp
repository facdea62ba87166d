#include "library/session.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace takt::emulator {
namespace {

// takt-emulator stands beside this library.
std::string program_beside_library() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&nvmlShutdown), &info) == 0 || info.dli_fname == nullptr)
    return "takt-emulator";
  char* real = realpath(info.dli_fname, nullptr);
  std::string path = real == nullptr ? info.dli_fname : real;
  std::free(real);
  auto slash = path.rfind('/');
  return (slash == std::string::npos ? std::string(".") : path.substr(0, slash)) + "/takt-emulator";
}

}  // namespace

Session& Session::instance() {
  // Never destroyed: threads may still be in a call that hangs when the process exits.
  static Session* session = new Session;
  return *session;
}

nvmlReturn_t Session::fail_start(nvmlReturn_t code, const std::string& sentence, bool print) {
  problem_ = sentence;
  if (print) std::fprintf(stderr, "emulated NVML: %s\n", sentence.c_str());
  return code;
}

nvmlReturn_t Session::start() {
  std::lock_guard guard(lock_);
  if (starts_ > 0) {
    ++starts_;
    return NVML_SUCCESS;
  }
  problem_.clear();
  const char* fleet = std::getenv(kFleetVariable);
  if (fleet == nullptr || *fleet == '\0')
    return fail_start(NVML_ERROR_DRIVER_NOT_LOADED,
                      std::string(kFleetVariable) +
                          " is not set: this library plays the GPUs of the fleet file it names",
                      false);
  auto place = place_of(fleet);
  if (!place) return fail_start(NVML_ERROR_UNKNOWN, place.error().message, true);
  place_ = *place;
  program_ = program_beside_library();
  nvmlReturn_t code = greet();
  if (code == NVML_SUCCESS) starts_ = 1;
  return code;
}

nvmlReturn_t Session::greet() {
  auto driver = connect_or_start(place_, program_);
  if (!driver) return fail_start(NVML_ERROR_UNKNOWN, driver.error().message, true);
  Request hello;
  hello.call = "hello";
  auto reply = driver->call(hello);
  if (!reply || reply->numbers.size() != 3 || reply->texts.size() != 3 + reply->numbers[2])
    return fail_start(NVML_ERROR_UNKNOWN, "the emulator does not answer as this library expects",
                      true);
  auto state = static_cast<DriverState>(reply->numbers[0]);
  if (state == DriverState::absent)
    return fail_start(NVML_ERROR_DRIVER_NOT_LOADED, "the fleet says that no driver is loaded",
                      false);
  if (state == DriverState::version_mismatch)
    return fail_start(NVML_ERROR_LIB_RM_VERSION_MISMATCH,
                      "the fleet says that driver and library differ", false);
  facts_ = {};
  facts_.driver_version = reply->texts[1];
  facts_.nvml_version = reply->texts[2];
  facts_.cuda_version = reply->numbers[1];
  facts_.uuids.assign(reply->texts.begin() + 3, reply->texts.end());
  idle_.clear();
  idle_.resize(1 + facts_.uuids.size());
  idle_[0].push_back(std::move(*driver));
  for (std::size_t i = 0; i < facts_.uuids.size(); ++i) {
    auto channel = Channel::connect(place_.gpu_socket(i));
    if (!channel) return fail_start(NVML_ERROR_UNKNOWN, channel.error().message, true);
    idle_[1 + i].push_back(std::move(*channel));
  }
  return NVML_SUCCESS;
}

nvmlReturn_t Session::end() {
  std::lock_guard guard(lock_);
  if (starts_ == 0) return NVML_ERROR_UNINITIALIZED;
  if (--starts_ == 0) idle_.clear();
  return NVML_SUCCESS;
}

bool Session::started() {
  std::lock_guard guard(lock_);
  return starts_ > 0;
}

const char* Session::problem() {
  std::lock_guard guard(lock_);
  return problem_.c_str();
}

Session::Facts Session::facts() {
  std::lock_guard guard(lock_);
  return facts_;
}

Result<Channel> Session::take(int gpu) {
  {
    std::lock_guard guard(lock_);
    if (starts_ == 0) return fail(ErrorKind::conflict, "not initialised");
    auto& pool = idle_[static_cast<std::size_t>(gpu + 1)];
    if (!pool.empty()) {
      Channel channel = std::move(pool.back());
      pool.pop_back();
      return channel;
    }
  }
  return Channel::connect(gpu < 0 ? place_.driver_socket()
                                  : place_.gpu_socket(static_cast<std::size_t>(gpu)));
}

void Session::give_back(int gpu, Channel channel) {
  std::lock_guard guard(lock_);
  if (starts_ > 0 && static_cast<std::size_t>(gpu + 1) < idle_.size())
    idle_[static_cast<std::size_t>(gpu + 1)].push_back(std::move(channel));
}

nvmlReturn_t Session::exchange(int gpu, const Request& request, Reply& reply) {
  if (!started()) return NVML_ERROR_UNINITIALIZED;
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto channel = take(gpu);
    if (channel) {
      auto answered = channel->call(request);
      if (answered) {
        give_back(gpu, std::move(*channel));
        reply = std::move(*answered);
        return static_cast<nvmlReturn_t>(reply.code);
      }
    }
    // The daemon was ended under us: as after a reload of a driver, start over once.
    std::lock_guard guard(lock_);
    if (starts_ == 0) return NVML_ERROR_UNINITIALIZED;
    if (greet() != NVML_SUCCESS) return NVML_ERROR_UNKNOWN;
  }
  return NVML_ERROR_UNKNOWN;
}

nvmlReturn_t Session::ask_driver(const Request& request, Reply& reply) {
  return exchange(-1, request, reply);
}

nvmlReturn_t Session::ask(unsigned gpu, const Request& request, Reply& reply) {
  return exchange(static_cast<int>(gpu), request, reply);
}

nvmlDevice_t Session::handle(unsigned gpu, int mig) {
  std::lock_guard guard(lock_);
  for (auto& each : handles_)
    if (each.gpu == gpu && each.mig == mig) return &each;
  handles_.push_back({gpu, mig});
  return &handles_.back();
}

nvmlGpuInstance_t Session::instance_handle(unsigned gpu, unsigned id) {
  std::lock_guard guard(lock_);
  for (auto& each : instances_)
    if (each.gpu == gpu && each.id == id) return &each;
  instances_.push_back({gpu, id});
  return &instances_.back();
}

bool Session::knows(nvmlDevice_t device) {
  std::lock_guard guard(lock_);
  for (auto& each : handles_)
    if (&each == device) return each.gpu < facts_.uuids.size();
  return false;
}

bool Session::knows(nvmlGpuInstance_t instance) {
  std::lock_guard guard(lock_);
  for (auto& each : instances_)
    if (&each == instance) return true;
  return false;
}

Request request_of(const char* call, nvmlDevice_t device, std::vector<std::uint64_t> numbers) {
  return {call, device->mig, std::move(numbers), {}};
}

nvmlReturn_t ask_device(const char* call, nvmlDevice_t device, const void* out, Reply& reply,
                        std::size_t least, std::vector<std::uint64_t> numbers) {
  Session& session = Session::instance();
  if (!session.started()) return NVML_ERROR_UNINITIALIZED;
  if (out == nullptr || !session.knows(device)) return NVML_ERROR_INVALID_ARGUMENT;
  nvmlReturn_t code = session.ask(device->gpu, request_of(call, device, std::move(numbers)), reply);
  if (code == NVML_SUCCESS && reply.numbers.size() < least) return NVML_ERROR_UNKNOWN;
  return code;
}

nvmlReturn_t copy_text(const std::string& text, char* out, unsigned length) {
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (text.size() + 1 > length) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

}  // namespace takt::emulator
