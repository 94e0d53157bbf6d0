// SPDX-License-Identifier: Apache-2.0
//
// A decode step on simulated platforms: every op is right on the bytes that it read, a replay gives
// the bits of the same step run eagerly, and the contents of padding do not change a live row.
#include <gtest/gtest.h>

#include <algorithm>

#include "decode/engine/engine.h"
#include "decode/recording/call_recorder.h"

namespace plumb::cases {

namespace decode_engine_test {

using device::decode::Engine;
using device::decode::Geometry;
using device::decode::GraphMode;
using device::decode::Padding;
using device::decode::Policies;
using device::decode::small_geometry;
using Ids = std::vector<std::uint64_t>;

// An engine on its own device, and four requests of different lengths.
struct Serving {
  Serving(const std::string& platform, GraphMode mode, const Geometry& geometry = small_geometry(4),
          const Policies& policies = {}, const device::Conditions& conditions = {})
      : device(device::open_device(platform, conditions)),
        ops(device::builtin_implementation(platform)),
        engine(*device, ops, geometry, mode, policies) {}

  // Shorter than the window, longer than the top-k keeps, and longer than one and than two C128A
  // states (128 tokens each).
  void admit_all() {
    const std::int64_t tokens[] = {5, 90, 140, 300};
    for (std::uint64_t id = 0; id < 4; ++id) engine.admit(id + 1, tokens[id]);
  }
  std::vector<std::uint16_t> out() {
    const auto& plan = engine.plan();
    std::vector<std::uint16_t> rows(
        static_cast<std::size_t>(plan.live_tokens * engine.geometry().hidden));
    device->synchronize();
    device->copy(rows.data(), engine.out(), rows.size() * 2, engine.stream());
    return rows;
  }

  std::unique_ptr<device::Device> device;
  const device::Implementation& ops;
  Engine engine;
};

std::string failures(const CallRecorder::Calls& calls) {
  std::string text;
  for (const auto& call : calls) {
    for (const TensorReport& report : call->judge()) {
      for (const std::string& line : report.failures) text += call->place.name + ": " + line + "\n";
    }
  }
  return text;
}

class DecodeEngine : public testing::TestWithParam<std::string> {};

TEST_P(DecodeEngine, EveryOpIsRightOnTheBytesThatItWasGiven) {
  Serving serving(GetParam(), GraphMode::none);
  CallRecorder recorder(*serving.device, serving.engine.geometry(), serving.ops,
                        serving.engine.temporaries());
  serving.engine.observe(&recorder);
  serving.admit_all();
  for (const Ids& ids : {Ids{1, 2, 3, 4}, Ids{4, 2}, Ids{3}}) {
    serving.engine.step(ids);
    serving.device->synchronize();
    const std::int64_t tokens = serving.engine.plan().tokens;
    EXPECT_EQ(failures(recorder.fetch({"metadata", tokens})), "");
    const auto& layers = recorder.fetch({"layers", tokens});
    EXPECT_EQ(failures(layers), "");
    EXPECT_GT(layers.size(), 50u);
  }
}

const std::vector<Ids>& schedule() {
  static const std::vector<Ids> steps{{1, 2, 3, 4}, {1, 2}, {4, 3, 2}, {2}, {1, 2, 3, 4}};
  return steps;
}

TEST_P(DecodeEngine, AReplayGivesTheBitsOfTheSameStepRunEagerly) {
  Serving eager(GetParam(), GraphMode::none), graph(GetParam(), GraphMode::full);
  eager.admit_all();
  graph.admit_all();
  graph.engine.capture();
  for (const Ids& ids : schedule()) {
    eager.engine.step_eagerly(ids);
    graph.engine.step(ids);
    EXPECT_EQ(graph.out(), eager.out()) << graph.engine.plan().tokens;
  }
  EXPECT_EQ(graph.engine.counters().graph_launches, 5);
}

INSTANTIATE_TEST_SUITE_P(Platforms, DecodeEngine,
                         testing::Values("sim-sm90", "sim-gfx942", "sim-gfx950"),
                         [](const auto& platform) {
                           std::string name = platform.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Captures with the attention state of the warm-up, as in vLLM #42444: its plan is made already, so
// the graph contains no planner.
class WarmUpStateCaptured final : public device::decode::CapturePolicy {
 public:
  Choice choose(const State& warm_up, const MakeState&) const override {
    return {warm_up, warm_up};
  }
};

TEST(DecodeEngineFaults, AStateKeptFromTheWarmUpChangesLiveRows) {
  Policies policies;
  policies.capture = std::make_shared<WarmUpStateCaptured>();
  Serving eager("sim-sm90", GraphMode::none),
      graph("sim-sm90", GraphMode::full, small_geometry(4), policies);
  eager.admit_all();
  graph.admit_all();
  graph.engine.capture();
  bool differs = false;
  for (const Ids& ids : schedule()) {
    eager.engine.step_eagerly(ids);
    graph.engine.step(ids);
    differs = differs || graph.out() != eager.out();
  }
  EXPECT_TRUE(differs);
}

}  // namespace decode_engine_test

}  // namespace plumb::cases
