// SPDX-License-Identifier: Apache-2.0
//
// The simulated device as the host sees it: when operations run, what a capture keeps, and that
// programs with an error in their use of streams and graphs do fail. Kernels here are one thread
// each.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "device/device.h"
#include "device/sim/launch.h"
#include "device/sim/memory.h"

namespace {

using namespace plumb::device;

// A kernel of one thread whose body is the function, frozen when enqueued.
void launch(Stream stream, std::string name, std::function<void()> body) {
  sim::KernelCall call;
  call.name = std::move(name);
  call.arguments = std::make_shared<std::function<void()>>(std::move(body));
  call.invoke = [](const void* arguments) {
    (*static_cast<const std::function<void()>*>(arguments))();
  };
  sim::enqueue(stream, std::move(call));
}

Fault fault_of(const std::function<void()>& action, std::string* message = nullptr) {
  try {
    action();
  } catch (const DeviceError& error) {
    if (message != nullptr) *message = error.what();
    return error.fault();
  }
  ADD_FAILURE() << "no DeviceError";
  return Fault::other;
}

class SimDevice : public ::testing::Test {
 protected:
  void open(Policy policy, const std::string& platform = "sim-sm90") {
    Conditions conditions;
    conditions.policy = policy;
    device = open_device(platform, conditions);
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

  std::unique_ptr<Device> device;
  Stream stream = nullptr;
};

TEST_F(SimDevice, KernelRunsAtOnceUnderEarlyAndOnlyWhenWaitedForUnderLate) {
  for (const Policy policy : {Policy::early, Policy::late}) {
    open(policy);
    std::int32_t* x = ints(1);
    launch(stream, "set", [x] { *x = 7; });
    EXPECT_EQ(*x == 7, policy == Policy::early);
    device->synchronize(stream);
    EXPECT_EQ(*x, 7);
  }
}

TEST_F(SimDevice, LateRunsOnlyWhatTheWaitNeeds) {
  open(Policy::late);
  const Stream other = device->create_stream(), third = device->create_stream();
  const Event event = device->create_event();
  std::vector<int> ran;
  launch(other, "a", [&] { ran.push_back(1); });
  device->record(event, other);
  launch(other, "b", [&] { ran.push_back(2); });
  launch(third, "c", [&] { ran.push_back(3); });
  device->wait(stream, event);
  launch(stream, "d", [&] { ran.push_back(4); });
  device->synchronize(stream);
  EXPECT_EQ(ran, (std::vector<int>{1, 4}));
  device->synchronize();
  EXPECT_EQ(ran, (std::vector<int>{1, 4, 3, 2}));
}

TEST_F(SimDevice, ReplayRunsTheCapturedOperationsEachTime) {
  for (const Policy policy : {Policy::early, Policy::late}) {
    open(policy);
    std::int32_t* x = ints(2);
    device->fill(x, 0, 8, stream);
    device->begin_capture(stream);
    launch(stream, "add", [x] { x[0] += 1; });
    device->copy(x + 1, x, 4, stream);
    const Graph graph = device->end_capture(stream);
    const GraphExec exec = device->instantiate(graph);
    device->destroy_graph(graph);
    EXPECT_EQ(read(x), 0);
    for (int i = 0; i < 3; ++i) device->replay(exec, stream);
    EXPECT_EQ(read(x + 1), 3);
  }
}

TEST_F(SimDevice, PlainAllocationInsideCaptureIsRefusedAndSpoilsTheCapture) {
  open(Policy::early);
  device->begin_capture(stream);
  std::string message;
  EXPECT_EQ(fault_of([&] { device->allocate(16, "x"); }, &message), Fault::capture_unsupported);
  EXPECT_EQ(message, "allocate during capture of stream 1");
  EXPECT_EQ(fault_of([&] { device->end_capture(stream); }, &message), Fault::capture_invalid);
  EXPECT_NE(message.find("allocate during capture of stream 1"), std::string::npos);
}

}  // namespace
