#include "edge/device/worker.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace takt::device {
namespace {

constexpr auto kMoment = std::chrono::milliseconds(50);

}  // namespace

struct Worker::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> task;
  bool busy = false;
  bool stop = false;
};

Worker::Worker() : shared_(std::make_shared<Shared>()) {
  thread_ = std::thread([shared = shared_] { run(shared); });
}

void Worker::run(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  while (true) {
    shared->changed.wait(lock, [&] { return shared->task || shared->stop; });
    if (!shared->task) return;
    std::function<void()> task = std::exchange(shared->task, nullptr);
    lock.unlock();
    task();
    task = nullptr;  // what the task owned goes while the worker still counts as busy
    lock.lock();
    shared->busy = false;
    shared->changed.notify_all();
  }
}

bool Worker::post(std::function<void()> task) {
  std::unique_lock lock(shared_->mutex);
  // A task that just gave its answer needs a moment until its thread is free again.
  if (!shared_->changed.wait_for(lock, kMoment, [&] { return !shared_->busy; })) return false;
  shared_->busy = true;
  shared_->task = std::move(task);
  shared_->changed.notify_all();
  return true;
}

Worker::~Worker() {
  std::unique_lock lock(shared_->mutex);
  shared_->stop = true;
  shared_->changed.notify_all();
  const bool idle = shared_->changed.wait_for(lock, std::chrono::microseconds(patience_.us),
                                              [&] { return !shared_->busy; });
  lock.unlock();
  if (idle)
    thread_.join();
  else
    thread_.detach();
}

}  // namespace takt::device
