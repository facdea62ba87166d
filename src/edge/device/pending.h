#pragma once
// An answer that another thread may give, late or never.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

namespace takt::device {

template <class T>
class Pending {
 public:
  void give(T value) {
    const std::lock_guard lock(mutex_);
    value_ = std::move(value);
    given_.notify_all();
  }
  // Waits until `end`; empty when the answer is not there by then.
  std::optional<T> take(std::chrono::steady_clock::time_point end) {
    std::unique_lock lock(mutex_);
    given_.wait_until(lock, end, [&] { return value_.has_value(); });
    return std::exchange(value_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::condition_variable given_;
  std::optional<T> value_;
};

}  // namespace takt::device
