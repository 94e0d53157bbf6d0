// SPDX-License-Identifier: Apache-2.0
#include "device/sim/device_thread.h"

#include <utility>
#include <vector>

namespace plumb::device::sim {

namespace {

struct Idle {
  std::mutex mutex;
  std::vector<std::unique_ptr<DeviceThread>> threads;
};

Idle& idle() {
  static Idle the_idle;
  return the_idle;
}

}  // namespace

DeviceThread::DeviceThread() : thread_([this] { serve(); }) {}

DeviceThread::~DeviceThread() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void DeviceThread::run(const std::function<void()>& work) {
  std::unique_lock lock(mutex_);
  work_ = &work;
  changed_.notify_all();
  changed_.wait(lock, [&] { return work_ == nullptr; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void DeviceThread::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return work_ != nullptr || ending_; });
    if (ending_) return;
    try {
      (*work_)();
    } catch (...) {
      error_ = std::current_exception();
    }
    work_ = nullptr;
    changed_.notify_all();
  }
}

std::unique_ptr<DeviceThread> take_device_thread() {
  const std::lock_guard lock(idle().mutex);
  if (idle().threads.empty()) return std::make_unique<DeviceThread>();
  std::unique_ptr<DeviceThread> thread = std::move(idle().threads.back());
  idle().threads.pop_back();
  return thread;
}

void give_back(std::unique_ptr<DeviceThread> thread) {
  if (!thread) return;
  const std::lock_guard lock(idle().mutex);
  idle().threads.push_back(std::move(thread));
}

}  // namespace plumb::device::sim
