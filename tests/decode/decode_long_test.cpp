// SPDX-License-Identifier: Apache-2.0
//
// Long random schedules: no step fails, and memory does not grow. They take minutes, so they run
// only with PLUMB_FULL=1 in the environment. The test that growth would be seen always runs.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <ctime>
#include <iostream>
#include <map>
#include <string>
#include <string_view>

#include "decode/watch/watch.h"
#include "device/forwarding_device.h"
#include "faults/decode/decode_faults.h"
#include "tests/support/long_tests.h"

namespace plumb::cases {

namespace decode_long_test {

using device::decode::GraphMode;

// Memory and graphs that an engine holds on its device.
struct Usage {
  std::int64_t bytes = 0, allocations = 0, graphs = 0;
};

class Meter final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  const Usage& usage() const { return usage_; }

  void* allocate(std::size_t bytes, std::string_view label) override {
    void* const memory = ForwardingDevice::allocate(bytes, label);
    sizes_[memory] = static_cast<std::int64_t>(bytes);
    usage_.bytes += sizes_[memory];
    ++usage_.allocations;
    return memory;
  }
  void free(void* memory) override {
    ForwardingDevice::free(memory);
    usage_.bytes -= sizes_.extract(memory).mapped();
    --usage_.allocations;
  }
  device::GraphExec instantiate(device::Graph graph) override {
    ++usage_.graphs;
    return ForwardingDevice::instantiate(graph);
  }
  void destroy_graph_exec(device::GraphExec graph) override {
    --usage_.graphs;
    ForwardingDevice::destroy_graph_exec(graph);
  }

 private:
  std::map<void*, std::int64_t> sizes_;
  Usage usage_;
};

// Peaks over a range of steps, of the device and of the process, and the time of the steps.
struct Peak {
  Usage device;
  std::size_t host = 0;
  double seconds = 0;
  std::int64_t steps = 0;

  void raise(const Usage& usage, std::size_t host_bytes, double step_seconds) {
    device.bytes = std::max(device.bytes, usage.bytes);
    device.allocations = std::max(device.allocations, usage.allocations);
    device.graphs = std::max(device.graphs, usage.graphs);
    host = std::max(host, host_bytes);
    seconds += step_seconds;
    ++steps;
  }
};

constexpr std::int64_t kSteps = 300, kCompared = 50;

struct Growth {
  Peak first, last;  // over the first and the last kCompared steps

  // On the device a single byte counts as growth. The process may grow by 1 %, because its
  // allocator leaves gaps.
  bool any() const {
    return last.device.bytes > first.device.bytes ||
           last.device.allocations > first.device.allocations ||
           last.device.graphs > first.device.graphs || last.host > first.host + first.host / 100;
  }
};

std::ostream& operator<<(std::ostream& out, const Growth& growth) {
  for (const Peak& peak : {growth.first, growth.last}) {
    out << peak.device.bytes << " bytes in " << peak.device.allocations << " allocations, "
        << peak.device.graphs << " graphs, " << peak.host << " bytes of the process, "
        << 1e3 * peak.seconds / static_cast<double>(peak.steps) << " ms per step\n";
  }
  return out;
}

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Runs the schedule without checks of the steps: these (decode/watch) keep a record for every new
// number of tokens, so that memory would grow.
Growth serve(DecodeSetup setup, const ScheduleShape& shape) {
  const Meter* meter = nullptr;
  setup.wrap = [&](std::unique_ptr<device::Device> inner) -> std::unique_ptr<device::Device> {
    auto wrapped = std::make_unique<Meter>(std::move(inner));
    meter = wrapped.get();
    return wrapped;
  };
  const auto schedule = make_schedule(shape, setup.geometry);
  WatchedEngine one(setup);
  one.engine.capture();
  Growth growth;
  for (auto step = schedule.begin(); step != schedule.end(); ++step) {
    const double start = processor_seconds();
    for (const std::uint64_t id : step->finished) one.engine.finish(id);
    for (const auto& [id, tokens] : step->admitted) one.engine.admit(id, tokens);
    one.engine.step(step->batch);
    one.device->synchronize();
    const double seconds = processor_seconds() - start;
    const std::size_t host = mallinfo2().uordblks;
    if (step - schedule.begin() < kCompared) growth.first.raise(meter->usage(), host, seconds);
    if (schedule.end() - step <= kCompared) growth.last.raise(meter->usage(), host, seconds);
  }
  return growth;
}

DecodeSetup setup_of(GraphMode mode, std::uint64_t seed) {
  DecodeSetup setup;
  setup.platform = seed % 2 == 0 ? "sim-sm90" : "sim-gfx942";
  setup.mode = mode;
  setup.geometry = device::decode::small_geometry(4, 0, 48);
  setup.geometry.drafter = true;
  return setup;
}

ScheduleShape shape_of(std::uint64_t seed, std::int64_t steps = kSteps) {
  return {seed % 3 == 0 ? Traffic::prompts : Traffic::random, Lengths::random, steps, 4, seed};
}

class LongSchedules : public testing::TestWithParam<GraphMode> {
 protected:
  static constexpr std::uint64_t kSeeds = 5;

  void SetUp() override {
    if (!tests::long_tests_run()) GTEST_SKIP() << tests::kTakesMinutes;
  }
};

TEST_P(LongSchedules, RaiseNoAlarm) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const WatchResult result = watch(setup_of(GetParam(), seed), shape_of(seed));
    EXPECT_TRUE(result.clean()) << result.findings.front().text;
    EXPECT_EQ(result.steps, kSteps);
  }
}

TEST_P(LongSchedules, DoNotGrow) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Growth growth = serve(setup_of(GetParam(), seed), shape_of(seed));
    EXPECT_FALSE(growth.any()) << growth;
    std::cout << "seed " << seed << ", first and last " << kCompared << " steps:\n" << growth;
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, LongSchedules,
                         testing::Values(GraphMode::none, GraphMode::piecewise, GraphMode::full,
                                         GraphMode::full_decode_only, GraphMode::full_and_piecewise,
                                         GraphMode::breakable),
                         [](const auto& mode) { return std::string(name_of(mode.param)); });

// Growth under a fault that makes memory or graphs of the engine grow.
Growth of_fault(const std::string& name) {
  const auto& all = all_decode_faults();
  const auto fault =
      std::find_if(all.begin(), all.end(), [&](const auto& f) { return f.name == name; });
  return serve(fault->inject(setup_of(GraphMode::full, 2)), shape_of(2, kCompared + 10));
}

TEST(Growth, OfMemoryAndOfGraphsIsSeen) {
  const Growth memory = of_fault("break_returns_fresh_tensor");
  EXPECT_GT(memory.last.device.bytes, memory.first.device.bytes) << memory;
  EXPECT_TRUE(memory.any());
  const Growth graphs = of_fault("slices_follow_the_data");
  EXPECT_GT(graphs.last.device.graphs, graphs.first.device.graphs) << graphs;
  EXPECT_TRUE(graphs.any());
}

}  // namespace decode_long_test

}  // namespace plumb::cases
