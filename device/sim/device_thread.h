// SPDX-License-Identifier: Apache-2.0
//
// A host thread that stands for a device: it runs what host threads wait for. Those of devices that
// are gone serve the next ones, because the stacks and blocks of simulated threads belong to a host
// thread and are dear to make.
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

  // Calls work() there, waits for its end, and throws what it threw. For one caller at a time.
  void run(const std::function<void()>& work);

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* work_ = nullptr;
  std::exception_ptr error_;
  bool ending_ = false;
  std::thread thread_;  // last: it uses what stands above
};

std::unique_ptr<DeviceThread> take_device_thread();
void give_back(std::unique_ptr<DeviceThread> thread);  // nullptr: nothing happens

}  // namespace plumb::device::sim
