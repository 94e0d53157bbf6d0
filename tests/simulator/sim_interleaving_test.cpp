// SPDX-License-Identifier: Apache-2.0
//
// The simulated device under the policy `interleaved`: nothing runs before something waits. Then
// everything runs, in pieces, in an order that the seed decides.
#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/support/sim_device_fixture.h"

namespace plumb::device {
namespace sim_interleaving_test {

constexpr int kBlocks = 8;

class Interleaving : public SimDeviceTest {
 protected:
  void open_interleaved(std::uint64_t seed) {
    Conditions conditions;
    conditions.policy = Policy::interleaved;
    conditions.seed = seed;
    device = open_device("sim-sm90", conditions);
    stream = device->create_stream();
    other = device->create_stream();
    log.clear();
  }

  // Enqueues a kernel in which each block appends `mark` to the log.
  void mark_blocks(Stream where, char mark) {
    sim::KernelCall call;
    call.name = std::string("mark ") + mark;
    call.shape.grid_x = kBlocks;
    call.arguments = std::make_shared<const std::pair<std::string*, char>>(&log, mark);
    call.invoke = [](const void* arguments) {
      const auto& [text, letter] = *static_cast<const std::pair<std::string*, char>*>(arguments);
      *text += letter;
    };
    sim::enqueue(where, std::move(call));
  }

  std::string run(std::uint64_t seed) {
    open_interleaved(seed);
    mark_blocks(stream, 'a');
    mark_blocks(other, 'b');
    EXPECT_EQ(log, "") << "something ran before anything waited";
    device->synchronize(stream);
    return log;
  }

  Stream other = nullptr;
  std::string log;
};

TEST_F(Interleaving, MixesBlocksOfTwoStreams) {
  const std::string order = run(1);
  EXPECT_EQ(std::count(order.begin(), order.end(), 'a'), kBlocks);
  EXPECT_EQ(std::count(order.begin(), order.end(), 'b'), kBlocks);
  EXPECT_NE(order.find("ab"), order.rfind("ab")) << order;
}

TEST_F(Interleaving, IsAFunctionOfTheSeed) {
  const std::string order = run(1);
  EXPECT_EQ(run(1), order);
  EXPECT_TRUE(run(2) != order || run(3) != order);
}

TEST_F(Interleaving, KeepsTheOrderOfEventsAndOfEachStream) {
  open_interleaved(5);
  mark_blocks(stream, 'a');
  const Event event = device->create_event();
  device->record(event, stream);
  device->wait(other, event);
  mark_blocks(other, 'b');
  mark_blocks(stream, 'c');
  device->synchronize(other);
  EXPECT_LT(log.rfind('a'), log.find('b')) << log;
  EXPECT_LT(log.rfind('a'), log.find('c')) << log;
}

TEST_F(Interleaving, NamesTheStreamOfAFault) {
  open_interleaved(7);
  launch(stream, "fine", [] {});
  static volatile std::uintptr_t nowhere = 16;
  launch(other, "stray", [] { *reinterpret_cast<int*>(nowhere) = 1; });
  expect_error([&] { device->synchronize(stream); }, "stream 2: kernel 'stray'");
  expect_error([&] { device->synchronize(other); }, "the device is lost since: stream 2");
}

TEST_F(Interleaving, RefusesCallsOfHostFunctions) {
  open_interleaved(9);
  static std::string error;
  static Device* used = nullptr;
  used = device.get();
  device->call_host([](void*) { error = error_of([] { used->create_stream(); }); }, nullptr,
                    stream);
  device->synchronize(stream);
  EXPECT_NE(error.find("called by a host function"), std::string::npos) << error;
}

// The work of one thread: allocates, enqueues, captures and waits while other threads do the same.
void work(Device& device, Stream stream, std::int64_t seed, std::int64_t* result) {
  auto* x = static_cast<std::int64_t*>(device.allocate(800, "x"));
  device.fill(x, 0, 800, stream);
  for (int i = 0; i < 50; ++i) launch(stream, "add", [x, i, seed] { x[i] += seed + i; });
  device.synchronize(stream);
  device.begin_capture(stream);
  for (int i = 50; i < 100; ++i) launch(stream, "add", [x, i, seed] { x[i] += seed + i; });
  const Graph graph = device.end_capture(stream);
  const GraphExec exec = device.instantiate(graph);
  device.destroy_graph(graph);
  device.replay(exec, stream);
  std::int64_t sum[100] = {};
  device.copy(sum, x, 800, stream);
  for (const std::int64_t one : sum) *result += one;
  device.free(x);
}

TEST(SimDevices, ServeSeveralHostThreads) {
  for (const Policy policy : {Policy::early, Policy::late, Policy::interleaved}) {
    Conditions conditions;
    conditions.policy = policy;
    const auto device = open_device("sim-gfx942", conditions);
    std::int64_t results[4] = {};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      const Stream stream = device->create_stream();
      threads.emplace_back([&, stream, i] {
        for (int round = 0; round < 5; ++round) work(*device, stream, i, &results[i]);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(results[i], 5 * (4950 + 100 * i));
    EXPECT_TRUE(device->check_guards().empty());
  }
}

}  // namespace sim_interleaving_test
}  // namespace plumb::device
