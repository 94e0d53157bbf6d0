// SPDX-License-Identifier: Apache-2.0
//
// Fixture for tests of the simulated device: a device with one stream, one-thread kernels, and the
// error in which a call ends.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <utility>

#include "device/device.h"
#include "device/sim/launch.h"

namespace plumb::device {

// Enqueues a one-thread kernel that runs `body`, which is copied at the call.
inline void launch(Stream stream, std::string name, std::function<void()> body) {
  sim::KernelCall call;
  call.name = std::move(name);
  call.arguments = std::make_shared<const std::function<void()>>(std::move(body));
  call.invoke = [](const void* arguments) {
    (*static_cast<const std::function<void()>*>(arguments))();
  };
  sim::enqueue(stream, std::move(call));
}

// How an action ended: "invalid_argument: message", or "no error".
inline std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const DeviceError& error) {
    return std::string(name_of(error.kind())) + ": " + error.what();
  }
  return "no error";
}

// Fails unless the action ends in an error that contains the text.
inline void expect_error(const std::function<void()>& action, const std::string& text,
                         const std::source_location& where = std::source_location::current()) {
  const std::string error = error_of(action);
  if (error.find(text) != std::string::npos) return;
  ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line()))
      << error << "\ndoes not contain: " << text;
}

class SimDeviceTest : public ::testing::Test {
 protected:
  void open(Policy policy, bool page_guards = false) {
    Conditions conditions;
    conditions.policy = policy;
    conditions.page_guards = page_guards;
    device = open_device("sim-sm90", conditions);
    stream = device->create_stream();
  }
  std::int32_t* ints(std::size_t count, const char* label = "ints") {
    return static_cast<std::int32_t*>(device->allocate(count * sizeof(std::int32_t), label));
  }
  std::int32_t* pinned_ints(std::size_t count) {
    return static_cast<std::int32_t*>(device->allocate_pinned(count * sizeof(std::int32_t)));
  }
  std::int32_t read(const std::int32_t* address) {
    std::int32_t value = 0;
    device->copy(&value, address, sizeof value, stream);
    return value;
  }
  // Captures what `record` enqueues, and returns the graph, ready to replay.
  GraphExec captured(const std::function<void()>& record) {
    device->begin_capture(stream);
    record();
    return device->instantiate(device->end_capture(stream));
  }

  std::unique_ptr<Device> device;
  Stream stream = nullptr;
};

}  // namespace plumb::device
