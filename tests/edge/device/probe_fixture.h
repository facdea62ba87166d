#pragma once
// A probe on the fake driver, with processes that the test makes up.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "edge/device/device_probe.h"
#include "fake_nvml.h"

namespace takt::device::testing {

class FakeProcessTable final : public ProcessTable {
 public:
  Measured<ProcessInfo> find(std::int64_t pid) const override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !hangs_; });
    const auto at = processes_.find(pid);
    if (at == processes_.end()) return missing(MissingKind::not_found, "no such process");
    return at->second;
  }
  std::vector<ProcessInfo> snapshot() const override { return {}; }
  std::string user_name(std::uint32_t uid) const override {
    return uid == 1000 ? "ann" : std::to_string(uid);
  }
  void add(ProcessInfo info) {
    const std::lock_guard lock(mutex_);
    processes_[info.pid] = std::move(info);
  }
  void set_hanging(bool hangs) {
    const std::lock_guard lock(mutex_);
    hangs_ = hangs;
    changed_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool hangs_ = false;
  std::map<std::int64_t, ProcessInfo> processes_;
};

// Repeats `check` until it holds, for at most ten seconds.
inline bool eventually(const std::function<bool()>& check) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < end) {
    if (check()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return check();
}

class ProbeTest : public ::testing::Test {
 protected:
  static constexpr Instant kNow{1'700'000'000'000'000};

  explicit ProbeTest(std::string library = FAKE_NVML) : path_(std::move(library)) {
    handle_ = dlopen(path_.c_str(), RTLD_NOW);
    if (handle_ == nullptr) throw std::runtime_error(dlerror());
    nvml_ = reinterpret_cast<decltype(&::fake_nvml)>(dlsym(handle_, "fake_nvml"))();
    nvml_->reset();
  }
  // Every test leaves the driver as it found it: nothing hangs, all that was taken is given back.
  ~ProbeTest() override {
    nvml_->with([](FakeNvml& n) { n.hangs.clear(); });
    processes_->set_hanging(false);
    probe_.reset();
    EXPECT_TRUE(eventually([&] {
      const std::lock_guard lock(nvml_->mutex);
      return nvml_->inits == nvml_->shutdowns && nvml_->samples_held == 0 && nvml_->sets_held == 0;
    })) << "the probe did not give everything back to the driver";
    dlclose(handle_);
  }

  // `count` healthy A100s.
  void give_gpus(unsigned count) {
    nvml_->with([&](FakeNvml& n) {
      n.gpus.assign(count, {});
      for (unsigned i = 0; i < count; ++i) {
        n.gpus[i].uuid = "GPU-" + std::to_string(i);
        n.gpus[i].minor = i;
        n.gpus[i].bus = 0x10 + i;
      }
    });
  }
  void change_gpu(unsigned index, const std::function<void(FakeGpu&)>& change) {
    nvml_->with([&](FakeNvml& n) { change(n.gpus.at(index)); });
  }
  void hang(int gpu, const std::string& function) {
    nvml_->with([&](FakeNvml& n) { n.hangs.insert({gpu, function}); });
  }
  void release(int gpu, const std::string& function) {
    nvml_->with([&](FakeNvml& n) { n.hangs.erase({gpu, function}); });
  }
  DeviceProbe& probe(Duration deadline = seconds(5)) {
    if (!probe_) {
      ProbeOptions options;
      options.nvml_path = path_;
      options.node_name = "node-a";
      options.deadline = deadline;
      options.processes = processes_;
      probe_ = DeviceProbe::open(options);
    }
    return *probe_;
  }
  Node read() { return probe().read(kNow); }
  Gpu read_gpu(std::size_t index = 0) { return read().gpus.at(index); }

  std::string path_;
  void* handle_ = nullptr;
  FakeNvml* nvml_ = nullptr;
  std::shared_ptr<FakeProcessTable> processes_ = std::make_shared<FakeProcessTable>();
  std::unique_ptr<DeviceProbe> probe_;
};

// Matches a Measured that holds `value`.
MATCHER_P(Holds, value, "") {
  if (!arg) {
    *result_listener << "missing: " << to_string(arg.error());
    return false;
  }
  *result_listener << "holds " << ::testing::PrintToString(*arg);
  return *arg == value;
}

// Matches a Measured that is missing for this kind of reason.
MATCHER_P(IsMissing, kind, "") {
  if (arg) {
    *result_listener << "holds a value";
    return false;
  }
  *result_listener << "missing: " << to_string(arg.error());
  return arg.error().kind == kind;
}

}  // namespace takt::device::testing
