// SPDX-License-Identifier: Apache-2.0
//
// A device in a plug-in's process behaves like the same device in this process.
#include "device/remote/remote_device.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "device/launch_state.h"
#include "device/remote/parameters.h"

namespace plumb::device::remote {
namespace remote_device_test {

std::shared_ptr<PluginProcess> start(const std::string& library) {
  return PluginProcess::start(
      {PLUMB_BINARY, "--serve-plugin", std::string(PLUMB_TEST_PLUGINS) + "/" + library + ".so"});
}

class RemoteDeviceTest : public testing::Test {
 protected:
  std::shared_ptr<PluginProcess> process_ = start("launches_right");
  std::unique_ptr<Device> device_ = process_->open("sim-sm90", {.policy = Policy::late});
};

TEST_F(RemoteDeviceTest, HasThePropertiesOfThePlatform) {
  const Properties expected = open_device("sim-sm90")->properties();
  EXPECT_EQ(device_->properties().platform, expected.platform);
  EXPECT_EQ(device_->properties().multiprocessors, expected.multiprocessors);
  EXPECT_EQ(device_->properties().max_grid_y, expected.max_grid_y);
  EXPECT_TRUE(device_->properties().simulated);
}

TEST_F(RemoteDeviceTest, CopiesMoreThanTheSharedBufferHolds) {
  std::vector<std::uint32_t> sent(kSharedBytes / 2 + 3), got(sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i)
    sent[i] = static_cast<std::uint32_t>(i * 2654435761u);
  const std::size_t bytes = sent.size() * sizeof sent[0];
  const Stream stream = device_->create_stream();
  void* const memory = device_->allocate(bytes, "memory");
  EXPECT_TRUE(is_marked(memory));
  device_->copy(memory, sent.data(), bytes, stream);
  // The copy has read `sent` at the call, so this change has no effect.
  std::fill(sent.begin(), sent.begin() + 10, 0);
  device_->copy(got.data(), memory, bytes, stream);
  for (std::size_t i = 0; i < 10; ++i) sent[i] = static_cast<std::uint32_t>(i * 2654435761u);
  EXPECT_EQ(got, sent);
}

TEST_F(RemoteDeviceTest, ThrowsTheErrorOfAPostedCallAtTheNextOneThatIsAnswered) {
  const Stream stream = device_->create_stream();
  void* const memory = device_->allocate(64, "small");
  const std::vector<std::byte> bytes(65);
  EXPECT_NO_THROW(device_->fill(memory, 1, 65, stream));
  // Accepted, but not executed, because the fill before it failed.
  EXPECT_NO_THROW(device_->copy(memory, bytes.data(), 64, stream));
  EXPECT_THROW(device_->synchronize(stream), DeviceError);
  EXPECT_NO_THROW(device_->synchronize(stream));
  EXPECT_TRUE(device_->check_guards().empty());
  std::vector<std::byte> got(64);
  device_->copy(got.data(), memory, 64, stream);
  EXPECT_NE(got, std::vector<std::byte>(64));
}

TEST_F(RemoteDeviceTest, FetchesPinnedMemoryBehindACopyThatWasCompleteOnReturn) {
  const Stream stream = device_->create_stream();
  void* const memory = device_->allocate(64, "memory");
  auto* const pinned = static_cast<std::uint8_t*>(device_->allocate_pinned(64));
  std::uint8_t pageable[64];
  device_->fill(memory, 7, 64, stream);
  device_->copy(pinned, memory, 64, stream);
  device_->copy(pageable, memory, 64, stream);
  device_->synchronize(stream);
  EXPECT_EQ(pinned[63], 7);
  device_->free_pinned(pinned);
}

TEST_F(RemoteDeviceTest, PostsNothingBesideAnotherThread) {
  const Stream stream = device_->create_stream();
  void* const memory = device_->allocate(64, "small");
  device_->fill(memory, 7, 64, stream);
  std::thread([&] {
    std::uint8_t got[64] = {};
    device_->copy(got, memory, 64, stream);
    EXPECT_EQ(got[63], 7);  // the fill was posted earlier, so it is executed first
    EXPECT_THROW(device_->fill(memory, 1, 65, stream), DeviceError);
  }).join();
}

// The error of a call, "fault: text"; "" if it throws nothing.
std::string error_of(Device& device, const std::function<void(Device&)>& misuse) {
  try {
    misuse(device);
    return "";
  } catch (const DeviceError& error) {
    return std::string(name_of(error.kind())) + ": " + error.what();
  }
}

TEST_F(RemoteDeviceTest, ThrowsWhatTheDeviceThrows) {
  const std::function<void(Device&)> misuses[] = {
      [](Device& device) { device.synchronize(nullptr); },
      [](Device& device) { device.allocate(std::size_t{1} << 50, "too large"); },
      [](Device& device) { device.end_capture(device.create_stream()); },
      [](Device& device) {
        device.begin_capture(device.create_stream());
        device.allocate(1, "in a capture");
      },
      [](Device& device) { device.create_timing_event(); }};
  for (const auto& misuse : misuses) {
    const auto here = open_device("sim-sm90"), there = process_->open("sim-sm90", {});
    const std::string expected = error_of(*here, misuse);
    EXPECT_NE(expected, "");
    EXPECT_EQ(error_of(*there, misuse), expected);
  }
  EXPECT_NE(error_of(*device_, [](Device& d) { d.call_host(nullptr, nullptr, nullptr); }), "");
}

TEST_F(RemoteDeviceTest, PinnedMemoryIsReadAtReplayAndSeenAfterAWait) {
  constexpr std::size_t kBytes = 1000;
  auto* const source = static_cast<std::byte*>(device_->allocate_pinned(kBytes));
  auto* const target = static_cast<std::byte*>(device_->allocate_pinned(kBytes));
  void* const memory = device_->allocate(kBytes, "between");
  const Stream stream = device_->create_stream();
  device_->begin_capture(stream);
  device_->copy(memory, source, kBytes, stream);
  device_->copy(target, memory, kBytes, stream);
  const GraphExec graph = device_->instantiate(device_->end_capture(stream));
  for (const int value : {17, 18}) {
    std::memset(source, value, kBytes);
    std::memset(target, 0, kBytes);
    device_->replay(graph, stream);
    EXPECT_NE(std::memcmp(target, source, kBytes), 0);
    device_->synchronize(stream);
    EXPECT_EQ(std::memcmp(target, source, kBytes), 0);
  }
  device_->free_pinned(source);
  EXPECT_THROW(device_->free_pinned(source), DeviceError);
}

TEST_F(RemoteDeviceTest, ACaptureBelongsToTheThreadThatBeganIt) {
  const Stream stream = device_->create_stream();
  device_->begin_capture(stream);
  EXPECT_TRUE(device_->capturing());
  std::thread([&] {
    EXPECT_FALSE(device_->capturing());
    EXPECT_NO_THROW(device_->allocate(1, "beside the capture"));
  }).join();
  EXPECT_NO_THROW(device_->end_capture(stream));
}

TEST_F(RemoteDeviceTest, SaysHowItsProcessEnded) {
  EXPECT_FALSE(process_->has_died());
  const auto said = [this]() -> std::string {
    try {
      device_->synchronize();
      return "";
    } catch (const Died& error) {
      return error.what();
    }
  };
  kill(process_->id(), SIGABRT);
  // The process may still answer until the signal arrives.
  for (int tries = 0; tries < 1000 && said().empty(); ++tries) usleep(1000);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(said(), "its process ended with signal 6 (Aborted)");
  EXPECT_TRUE(process_->has_died());
  EXPECT_FALSE(start("launches_right")->has_died());
}

TEST(RemotePlugin, GetsAddressesOfItsDeviceItsStateAndItsPlan) {
  const auto process = start("plans_right");
  const auto device = process->open("sim-sm90", {});
  const device::OpEntry* entry = find_entry(process->implementation(), "sparse_mla_decode");
  ASSERT_NE(entry, nullptr);
  plumb_mla_plan plan{};
  plumb_sparse_mla_decode_params params{};
  params.out = static_cast<std::uint16_t*>(device->allocate(64, "out"));
  params.plan = &plan;
  params.stream = device->create_stream();
  plan.tiles = reinterpret_cast<std::int32_t*>(params.out);
  EXPECT_TRUE(is_marked(plan.tiles));
  LaunchState first;
  const auto launch = [&](LaunchState& state, std::int64_t living) {
    params.requests = living;
    params.state = state.own(*entry, &params);
    return state.launch(*entry, &params);
  };
  EXPECT_EQ(launch(first, 1), PLUMB_OK);
  EXPECT_EQ(launch(first, 1), PLUMB_OK);  // the plan is made once per state
  {
    LaunchState second;
    EXPECT_EQ(launch(second, 2), PLUMB_OK);
    EXPECT_EQ(launch(first, 2), PLUMB_OK);
  }
  EXPECT_EQ(launch(first, 1), PLUMB_OK);
  EXPECT_EQ(entry->plan(&params), PLUMB_OK);
  EXPECT_EQ(launch(first, 1), PLUMB_INVALID_ARGUMENT);  // refused, because it was planned twice
  LaunchState third;
  params.plan = nullptr;
  EXPECT_EQ(launch(third, 2), PLUMB_UNSUPPORTED);
}

TEST(RemotePlugin, IsRefusedWithAReason) {
  try {
    start("tables_no_launcher");
    FAIL();
  } catch (const Refused& error) {
    EXPECT_NE(std::string(error.what()).find("hc_head has no launcher"), std::string::npos);
  }
}

}  // namespace remote_device_test
}  // namespace plumb::device::remote
