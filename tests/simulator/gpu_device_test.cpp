// SPDX-License-Identifier: Apache-2.0
//
// The Device that CUDA and HIP share (device/gpu), on a runtime that needs no GPU (fake_gpu): guard
// zones and their reports, poison, errors that name the call, and release of all resources.
#include "device/gpu/gpu_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>

namespace gpu_device_test {

using plumb::device::DeviceError;
using plumb::device::ErrorKind;
using plumb::device::GuardDamage;
namespace fake = plumb::device::fake;

class GpuDeviceTest : public testing::Test {
 protected:
  void SetUp() override { fake::ledger() = {}; }

  // The error of a call that must be refused: "fault: message".
  template <typename Call>
  static std::string refusal(Call&& call) {
    try {
      call();
    } catch (const DeviceError& error) {
      return std::string(name_of(error.kind())) + ": " + error.what();
    }
    return "not refused";
  }

  static void fail(const char* call, fake::NativeError error) {
    fake::ledger().failing_call = call;
    fake::ledger().failure = error;
  }
};

TEST_F(GpuDeviceTest, AllocationsArePoisonedAndUndamaged) {
  fake::GpuDevice device;
  const auto* bytes = static_cast<std::uint8_t*>(device.allocate(1000, "a"));
  EXPECT_TRUE(std::all_of(bytes, bytes + 1000, [](int byte) { return byte == 0xf7; }));
  const auto* zeros = static_cast<std::uint8_t*>(device.allocate_sparse(1000, "b"));
  EXPECT_TRUE(std::all_of(zeros, zeros + 1000, [](int byte) { return byte == 0; }));
  EXPECT_TRUE(device.check_guards().empty());
}

TEST_F(GpuDeviceTest, DamageIsLocatedAndRepaired) {
  fake::GpuDevice device;
  device.allocate(64, "bystander");
  auto* const bytes = static_cast<std::uint8_t*>(device.allocate(1000, "victim"));
  bytes[-1] = 1;
  bytes[1000 + 7] = 2;
  bytes[1000 + 1023] = 3;
  const std::vector<GuardDamage> found = device.check_guards();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].label, "victim");
  EXPECT_EQ(found[0].offset, -1);
  EXPECT_EQ(found[0].got, 1);
  EXPECT_EQ(found[0].bytes, 1);
  EXPECT_EQ(found[1].offset, 1007);
  EXPECT_EQ(found[1].expected, 0xa5);
  EXPECT_EQ(found[1].got, 2);
  EXPECT_EQ(found[1].bytes, 2);
  EXPECT_TRUE(device.check_guards().empty());
}

TEST_F(GpuDeviceTest, FailuresNameTheCall) {
  fake::GpuDevice device;
  const auto stream = device.create_stream();
  fail("fakeMalloc", fake::NativeError::out_of_memory);
  const std::string expected = "out_of_memory: fakeMalloc: as the test wanted (fakeErrorMemory)";
  EXPECT_EQ(refusal([&] { device.allocate(8, "a"); }), expected);
  EXPECT_EQ(refusal([&] { device.allocate_sparse(8, "a"); }), expected);
  fail("fakeBeginCapture", fake::NativeError::capture);
  EXPECT_EQ(refusal([&] { device.begin_capture(stream); }),
            "capture_invalid: fakeBeginCapture: as the test wanted (fakeErrorOther)");
  EXPECT_FALSE(device.capturing());
  int local = 0;
  EXPECT_EQ(refusal([&] { device.free(&local); }),
            "invalid_argument: free: no allocation starts at this address");
}

TEST_F(GpuDeviceTest, ALaunchThatFailsIsRememberedOnce) {
  fake::GpuDevice device;
  const auto launch = [] { return fake::launch_raw(nullptr, {}, nullptr, nullptr); };
  EXPECT_EQ(launch(), PLUMB_OK);
  EXPECT_EQ(device.take_launch_error(), "");
  fail("fakeLaunch", fake::NativeError::out_of_memory);
  EXPECT_EQ(launch(), PLUMB_LAUNCH_FAILED);
  EXPECT_EQ(device.take_launch_error(), "fakeLaunch: as the test wanted (fakeErrorMemory)");
  EXPECT_EQ(device.take_launch_error(), "");
}

TEST_F(GpuDeviceTest, CapturesAreSeenAndNodesNamed) {
  fake::GpuDevice device;
  const auto stream = device.create_stream();
  device.begin_capture(stream);
  EXPECT_TRUE(device.capturing());
  EXPECT_EQ(refusal([&] { device.allocate(8, "late"); }),
            "capture_unsupported: allocate late: not allowed during capture");
  EXPECT_EQ(refusal([&] { device.allocate_sparse(8, "later"); }),
            "capture_unsupported: allocate_sparse later: not allowed during capture");
  const auto graph = device.end_capture(stream);
  EXPECT_FALSE(device.capturing());
  const auto nodes = device.nodes(graph);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].kind, "kernel");
  EXPECT_EQ(nodes[0].name, "attend_kernel");
  EXPECT_EQ(nodes[1].kind, "copy");
  EXPECT_EQ(nodes[1].name, "");
  const auto exec = device.instantiate(graph);
  device.replay(exec, stream);
  device.destroy_graph_exec(exec);
  device.destroy_graph(graph);
  EXPECT_EQ(fake::ledger().graphs, 0);
}

TEST_F(GpuDeviceTest, ACaptureHoldsNoCopyThatSomebodyWouldHaveToWaitFor) {
  fake::GpuDevice device;
  const auto stream = device.create_stream();
  void* const from = device.allocate(8, "from");
  void* const to = device.allocate(8, "to");
  std::int64_t pageable = 0;
  fake::ledger().pageable = &pageable;
  device.copy(&pageable, from, 8, stream);
  device.begin_capture(stream);
  EXPECT_EQ(refusal([&] { device.copy(to, &pageable, 8, stream); }), "not refused");
  EXPECT_EQ(
      refusal([&] { device.copy(&pageable, from, 8, stream); }),
      "capture_unsupported: copy to pageable memory during capture: it is complete on return, "
      "so it would have to wait");
  device.destroy_graph(device.end_capture(stream));
  device.free(to);
  device.free(from);
}

// A capture in another thread does not affect this thread.
TEST_F(GpuDeviceTest, CapturesBelongToTheThreadThatBeganThem) {
  fake::GpuDevice device;
  const auto stream = device.create_stream();
  std::thread([&] {
    device.begin_capture(stream);
    EXPECT_TRUE(device.capturing());
  }).join();
  EXPECT_FALSE(device.capturing());
  device.free(device.allocate(8, "beside"));
  device.destroy_graph(device.end_capture(stream));
}

TEST_F(GpuDeviceTest, LeavesNothingBehind) {
  {
    fake::GpuDevice device;
    device.free(device.allocate(8, "freed"));
    device.allocate(8, "kept");
    device.allocate_sparse(8, "kept");
    device.allocate_pinned(8);
    device.create_event();
    device.check_guards();
    device.begin_capture(device.create_stream());
    EXPECT_EQ(fake::ledger().memory, 2);
    EXPECT_EQ(fake::ledger().streams, 2);
  }
  const fake::Ledger& left = fake::ledger();
  EXPECT_EQ(left.memory + left.pinned + left.streams + left.events + left.graphs + left.captures,
            0);
}

TEST_F(GpuDeviceTest, SaysWhyAPlatformIsUnavailable) {
  EXPECT_EQ(fake::why_unavailable("fake-one"), "");
  EXPECT_EQ(fake::why_unavailable("fake-two"), "the device here is fake-one");
  fake::ledger().devices = 0;
  EXPECT_EQ(fake::why_unavailable("fake-one"), "no device");
  fail("fakeCount", fake::NativeError::no_device);
  EXPECT_EQ(fake::why_unavailable("fake-one"), "fakeCount: fakeErrorOther");
}

}  // namespace gpu_device_test
