// SPDX-License-Identifier: Apache-2.0
//
// Streams, events and copies of the simulated device: when operations run, and that programs fail
// which forget to wait, or use memory that they must not use.
#include <thread>
#include <vector>

#include "device/sim/memory/guard.h"
#include "tests/support/sim_device_fixture.h"

namespace plumb::device {
namespace sim_device_test {

using SimDevice = SimDeviceTest;

constexpr Policy kPolicies[] = {Policy::early, Policy::late};

TEST_F(SimDevice, KernelRunsAtOnceUnderEarlyAndOnlyWhenWaitedForUnderLate) {
  for (const Policy policy : kPolicies) {
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

TEST_F(SimDevice, SynchronizeEventRunsUpToItsRecord) {
  open(Policy::late);
  std::vector<int> ran;
  const Event event = device->create_event();
  launch(stream, "a", [&] { ran.push_back(1); });
  device->record(event, stream);
  launch(stream, "b", [&] { ran.push_back(2); });
  device->synchronize_event(event);
  EXPECT_EQ(ran, (std::vector<int>{1}));
}

TEST_F(SimDevice, ReadBeforeWaitSeesPoison) {
  open(Policy::late);
  std::int32_t* x = ints(1);
  std::int32_t* result = pinned_ints(1);
  launch(stream, "set", [x] { *x = 7; });
  device->copy(result, x, 4, stream);
  EXPECT_EQ(*result, sim::kPinnedPoison * 0x10001);
  device->synchronize(stream);
  EXPECT_EQ(*result, 7);
}

TEST_F(SimDevice, PinnedBufferReusedTooEarlyIsCopiedWithItsNewBytes) {
  for (const Policy policy : kPolicies) {
    open(policy);
    std::int32_t* x = ints(1);
    std::int32_t* staging = pinned_ints(1);
    *staging = 1;
    device->copy(x, staging, 4, stream);
    *staging = 2;
    EXPECT_EQ(read(x), policy == Policy::early ? 1 : 2);
  }
}

TEST_F(SimDevice, PageableSourceIsReadAtTheCall) {
  for (const Policy policy : kPolicies) {
    open(policy);
    std::int32_t* x = ints(1);
    std::int32_t value = 1;
    device->copy(x, &value, 4, stream);
    value = 2;
    EXPECT_EQ(read(x), 1);
  }
}

TEST_F(SimDevice, MissingEventBetweenStreamsShowsUnderLate) {
  for (const bool with_event : {false, true}) {
    open(Policy::late);
    const Stream producer = device->create_stream();
    const Event ready = device->create_event();
    std::int32_t* x = ints(2);
    device->fill(x, 0, 8, stream);
    device->synchronize(stream);
    launch(producer, "produce", [x] { x[0] = 7; });
    device->record(ready, producer);
    if (with_event) device->wait(stream, ready);
    launch(stream, "consume", [x] { x[1] = x[0]; });
    device->synchronize();
    EXPECT_EQ(x[0], 7);
    EXPECT_EQ(x[1], with_event ? 7 : 0);
  }
}

TEST_F(SimDevice, BufferOverwrittenOnAnotherStreamWithoutAnEventShowsUnderLate) {
  open(Policy::late);
  const Stream writer = device->create_stream();
  std::int32_t* x = ints(2);
  device->fill(x, 0, 8, stream);
  device->synchronize(stream);
  launch(stream, "consume", [x] { x[1] = x[0]; });
  launch(writer, "overwrite", [x] { x[0] = 9; });
  device->synchronize();
  EXPECT_EQ(x[1], 9);
}

TEST_F(SimDevice, WaitMeansTheMostRecentRecordBeforeIt) {
  open(Policy::late);
  const Stream other = device->create_stream();
  const Event event = device->create_event();
  std::vector<int> ran;
  device->wait(stream, event);  // the event was never recorded, so this does not wait
  launch(other, "a", [&] { ran.push_back(1); });
  device->record(event, other);
  device->wait(stream, event);
  launch(other, "b", [&] { ran.push_back(2); });
  device->record(event, other);
  device->synchronize(stream);
  EXPECT_EQ(ran, (std::vector<int>{1}));
  device->wait(stream, event);
  device->synchronize(stream);
  EXPECT_EQ(ran, (std::vector<int>{1, 2}));
}

TEST_F(SimDevice, WorkOfADestroyedStreamStillRuns) {
  open(Policy::late);
  const Stream other = device->create_stream();
  std::int32_t* x = ints(1);
  launch(other, "set", [x] { *x = 7; });
  device->destroy_stream(other);
  expect_error([&] { device->synchronize(other); },
               "invalid_argument: synchronize(stream): not a stream");
  device->synchronize();
  EXPECT_EQ(*x, 7);
}

TEST_F(SimDevice, HostFunctionRunsInStreamOrderAndMayNotUseTheDevice) {
  for (const Policy policy : kPolicies) {
    open(policy);
    std::int32_t* x = pinned_ints(2);
    launch(stream, "set", [x] { x[0] = 7; });
    device->call_host([](void* at) { static_cast<std::int32_t*>(at)[1] = *static_cast<int*>(at); },
                      x, stream);
    device->synchronize(stream);
    EXPECT_EQ(x[1], 7);
    const auto misuse = [](void* opened) { static_cast<Device*>(opened)->create_event(); };
    expect_error(
        [&] {
          device->call_host(misuse, device.get(), stream);
          device->synchronize();
        },
        "invalid_argument: create_event: called by a host function");
  }
}

TEST_F(SimDevice, CopyBeyondItsAllocationIsRefusedAtTheCall) {
  open(Policy::late);
  std::int32_t* x = ints(4, "scores");
  std::int32_t host[5] = {};
  expect_error([&] { device->copy(host, x, 20, stream); },
               "out_of_bounds: copy from: bytes 0 to 20 of 'scores', which has 16");
  expect_error([&] { device->copy(x + 3, host, 8, stream); }, "bytes 12 to 20 of 'scores'");
  expect_error([&] { device->fill(x - 1, 0, 4, stream); },
               "out_of_bounds: fill: bytes -4 to 0 of 'scores'");
  expect_error([&] { device->copy(x, x + 1, 8, stream); },
               "invalid_argument: copy: source and destination");
  expect_error([&] { device->copy(x, nullptr, 4, stream); },
               "invalid_argument: copy from: null pointer");
  device->copy(x, host, 16, stream);
  device->synchronize();
}

TEST_F(SimDevice, CopyFromFreedMemoryIsAnErrorAtTheCallAndWhenItRuns) {
  open(Policy::late);
  std::int32_t* x = ints(4, "scores");
  std::int32_t* result = pinned_ints(4);
  device->copy(result, x, 16, stream);
  device->free(x);
  expect_error([&] { device->copy(result, x, 16, stream); },
               "use_after_free: copy from: bytes 0 to 16");
  expect_error([&] { device->synchronize(stream); },
               "use_after_free: copy from: bytes 0 to 16 of 'scores'");
}

TEST_F(SimDevice, AnErrorInAnOperationLosesTheDevice) {
  for (const Policy policy : kPolicies) {
    open(policy);
    std::int32_t* x = ints(1);
    const auto broken = [] { throw DeviceError(ErrorKind::race, "kernel 'bad': a race"); };
    expect_error(
        [&] {
          launch(stream, "bad", broken);
          device->synchronize(stream);
        },
        "race: kernel 'bad': a race");
    expect_error([&] { device->synchronize(); },
                 "race: synchronize(): the device is lost since: kernel 'bad': a race");
    expect_error([&] { launch(stream, "next", [] {}); }, "the device is lost");
    device->free(x);
    EXPECT_TRUE(device->check_guards().empty());
    device->destroy_stream(stream);
  }
}

TEST_F(SimDevice, LaunchBeyondThePlatformsLimitsIsRefusedAtTheCall) {
  open(Policy::late);
  sim::KernelCall call;
  call.name = "wide";
  call.shape.block = 1025;
  expect_error([&] { sim::enqueue(stream, call); },
               "launch_limits: kernel wide: block of 1025 threads");
  call.shape.block = 1;
  call.shape.dynamic_shared_bytes = (227 << 10) + 1;
  expect_error([&] { sim::enqueue(stream, call); }, "bytes of dynamic shared memory");
  device->synchronize();
}

TEST_F(SimDevice, HasNoClock) {
  open(Policy::early);
  const Event event = device->create_event();
  EXPECT_THROW(device->create_timing_event(), DeviceError);
  EXPECT_THROW(device->elapsed_seconds(event, event), DeviceError);
  EXPECT_EQ(rate_kernels("sim-sm90"), nullptr);
}

TEST_F(SimDevice, HandlesOfAnotherDeviceAreRefused) {
  open(Policy::early);
  const auto other = open_device("sim-gfx942");
  EXPECT_EQ(sim::stream_properties(stream).wave_size, 32);
  expect_error([&] { other->synchronize(stream); }, "invalid_argument");
  expect_error([&] { other->record(other->create_event(), stream); }, "invalid_argument");
}

TEST(SimDevices, OfSeveralHostThreadsAreIndependent) {
  const auto work = [](int seed, std::int64_t* result) {
    for (int round = 0; round < 20; ++round) {
      Conditions conditions;
      conditions.policy = Policy::late;
      const auto device = open_device("sim-gfx942", conditions);
      const Stream stream = device->create_stream();
      auto* x = static_cast<std::int64_t*>(device->allocate(800, "x"));
      device->fill(x, 0, 800, stream);
      for (int i = 0; i < 100; ++i) launch(stream, "add", [x, i, seed] { x[i] += seed + i; });
      std::int64_t sum[100] = {};
      device->copy(sum, x, 800, stream);
      for (const std::int64_t one : sum) *result += one;
      if (!device->check_guards().empty()) *result = -1;
    }
  };
  std::int64_t results[4] = {};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work, i, &results[i]);
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(results[i], 20 * (4950 + 100 * i));
}

TEST(Platforms, AreNamedAndThoseThatCannotBeOpenedSayWhy) {
  for (const std::string& platform : known_platforms()) {
    const std::string why = why_unavailable(platform);
    if (why.empty()) {
      EXPECT_EQ(open_device(platform)->properties().platform, platform);
    } else {
      expect_error([&] { open_device(platform); }, why);
    }
  }
  EXPECT_EQ(why_unavailable("sim-gfx950"), "");
  expect_error([&] { open_device("sim-sm80"); },
               "unknown platform 'sim-sm80'; known are: sim-sm90");
}

}  // namespace sim_device_test
}  // namespace plumb::device
