#pragma once
// A thread of its own for calls that may never return.
#include <functional>
#include <memory>
#include <thread>

#include "core/base/quantities.h"

namespace takt::device {

class Worker {
 public:
  Worker();
  // Waits up to `patience` for the running task; a task that still runs is left behind with its
  // thread, which ends when the call returns.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void set_patience(Duration patience) { patience_ = patience; }
  // False, and nothing happens, while a task is running that does not end within a moment. The task
  // must own all that it uses.
  bool post(std::function<void()> task);

 private:
  struct Shared;
  static void run(const std::shared_ptr<Shared>& shared);
  std::shared_ptr<Shared> shared_;
  Duration patience_ = milliseconds(20);
  std::thread thread_;
};

}  // namespace takt::device
