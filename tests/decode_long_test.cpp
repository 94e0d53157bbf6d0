// SPDX-License-Identifier: Apache-2.0
//
// Long random schedules: nothing fails and nothing grows. Minutes, so only with PLUMB_FULL=1 in the
// environment.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>

#include "cases/decode/watch.h"
#include "device/forwarding_device.h"

namespace plumb::cases {

namespace {

using device::decode::GraphMode;

// What an engine has of its device.
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

class LongSchedules : public testing::TestWithParam<GraphMode> {
 protected:
  void SetUp() override {
    const char* full = std::getenv("PLUMB_FULL");
    if (full == nullptr || std::string_view(full) != "1") {
      GTEST_SKIP() << "takes minutes; runs with PLUMB_FULL=1 in the environment";
    }
  }
};

constexpr std::int64_t kSteps = 300;

// Of all four engines together.
Usage sum_of(const std::vector<Meter*>& meters) {
  Usage sum;
  for (const Meter* meter : meters) {
    sum.bytes += meter->usage().bytes;
    sum.allocations += meter->usage().allocations;
    sum.graphs += meter->usage().graphs;
  }
  return sum;
}

// The largest of the steps [first, last) and those of the process.
struct Peak {
  Usage device;
  std::size_t host = 0;
  void raise(const Usage& usage, std::size_t host_bytes) {
    device.bytes = std::max(device.bytes, usage.bytes);
    device.allocations = std::max(device.allocations, usage.allocations);
    device.graphs = std::max(device.graphs, usage.graphs);
    host = std::max(host, host_bytes);
  }
};

TEST_P(LongSchedules, NeitherFailNorGrow) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    std::vector<Meter*> meters;
    DecodeSetup setup;
    setup.platform = seed % 2 == 0 ? "sim-sm90" : "sim-gfx942";
    setup.mode = GetParam();
    setup.geometry = device::decode::small_geometry(4, 0, 48);
    setup.geometry.drafter = true;
    setup.wrap = [&](std::unique_ptr<device::Device> inner) -> std::unique_ptr<device::Device> {
      auto meter = std::make_unique<Meter>(std::move(inner));
      meters.push_back(meter.get());
      return meter;
    };
    Peak early, late;
    std::int64_t step = 0;
    const WatchResult result =
        watch(setup, {Traffic::random, Lengths::random, kSteps, 4, seed}, [&](const WatchedStep&) {
          (step++ < kSteps / 2 ? early : late).raise(sum_of(meters), mallinfo2().uordblks);
        });
    EXPECT_TRUE(result.clean()) << result.findings.front().text;
    EXPECT_EQ(result.steps, kSteps);
    EXPECT_LE(late.device.bytes, early.device.bytes);
    EXPECT_LE(late.device.allocations, early.device.allocations);
    EXPECT_EQ(late.device.graphs, early.device.graphs);
    EXPECT_LE(late.host, early.host + early.host / 100);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, LongSchedules,
                         testing::Values(GraphMode::none, GraphMode::piecewise, GraphMode::full,
                                         GraphMode::full_decode_only, GraphMode::full_and_piecewise,
                                         GraphMode::breakable),
                         [](const auto& mode) { return std::string(name_of(mode.param)); });

}  // namespace

}  // namespace plumb::cases
