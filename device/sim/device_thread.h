// SPDX-License-Identifier: Apache-2.0
//
// A host thread that executes a device's work while other host threads wait. When the device is
// destroyed, its thread is kept for another device: stacks and blocks of simulated threads belong
// to a host thread, and are expensive to create.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace plumb::device::sim {

class DeviceThread {
 public:
  DeviceThread();
  ~DeviceThread();
  DeviceThread(const DeviceThread&) = delete;
  DeviceThread& operator=(const DeviceThread&) = delete;

  // Runs work() on this thread, waits for its end, and throws what it threw. One caller at a time.
  void run(const std::function<void()>& work);

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* work_ = nullptr;
  std::exception_ptr error_;
  bool ending_ = false;
  std::thread thread_;  // last: it uses the members above
};

std::unique_ptr<DeviceThread> take_device_thread();
void give_back(std::unique_ptr<DeviceThread> thread);  // nullptr is ignored

}  // namespace plumb::device::sim
