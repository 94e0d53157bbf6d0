// SPDX-License-Identifier: Apache-2.0
//
// A decode step of V3.2 on simulated platforms. Every op is right on the bytes that it read. A
// replay gives the bits of the same step run eagerly. The persistent buffers hold what the step
// needs, and 0 after it. The plan is made again exactly when it has to be.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <random>
#include <stdexcept>
#include <utility>

#include "tests/support/v32_serving.h"

namespace plumb::tests {

namespace decode_v32_test {

using cases::CallRecorder;
using device::decode::Geometry;
using device::decode::GraphMode;
using device::decode::small_v32_geometry;

class DecodeV32 : public testing::TestWithParam<std::string> {};

void expect_right_ops(const std::string& platform, const Geometry& geometry) {
  V32Serving serving(platform, GraphMode::none, geometry);
  CallRecorder recorder(*serving.device, serving.engine.geometry(), serving.ops,
                        serving.engine.temporaries());
  serving.engine.observe(&recorder);
  serving.admit_all();
  for (const Ids& ids : {Ids{1, 2, 3, 4}, Ids{4, 2}, Ids{3}}) {
    serving.engine.step(ids);
    serving.device->synchronize();
    const std::int64_t tokens = serving.engine.plan().tokens;
    EXPECT_EQ(failures(recorder, "metadata", tokens), "");
    EXPECT_EQ(failures(recorder, "plan", tokens), "");
    EXPECT_EQ(failures(recorder, "layers", tokens), "");
    EXPECT_GT(recorder.fetch({"layers", tokens}).size(), 35u);
    EXPECT_EQ(wrong_buffers(serving), "");
  }
}

TEST_P(DecodeV32, EveryOpIsRightOnTheBytesThatItWasGiven) {
  expect_right_ops(GetParam(), small_v32_geometry(4));
}
TEST_P(DecodeV32, EveryOpIsRightWithPagesOfOneToken) {
  expect_right_ops(GetParam(), small_v32_geometry(4, 0, 1));
}
TEST_P(DecodeV32, EveryOpIsRightWithSpeculation) {
  expect_right_ops(GetParam(), small_v32_geometry(4, 2));
}

// Batches by step: more requests, fewer, another order, a single one, all again.
const std::vector<Ids>& schedule() {
  static const std::vector<Ids> steps{{1, 2}, {1, 2, 3, 4}, {2, 1}, {4, 3, 2}, {2}, {4, 3, 2, 1}};
  return steps;
}

void expect_replay_equals_eager(const std::string& platform, const Geometry& geometry,
                                const device::Conditions& conditions = {},
                                GraphMode mode = GraphMode::full) {
  V32Serving eager(platform, mode, geometry), graph(platform, mode, geometry, {}, conditions);
  eager.admit_all();
  graph.admit_all();
  graph.engine.capture();
  for (const Ids& ids : schedule()) {
    eager.engine.step_eagerly(ids);
    graph.engine.step(ids);
    EXPECT_EQ(graph.out(), eager.out()) << graph.engine.plan().tokens;
    EXPECT_EQ(wrong_buffers(graph), "");
  }
  EXPECT_EQ(graph.engine.counters().eager_steps, 0);
  EXPECT_GE(graph.engine.counters().graph_launches, 6);
}

TEST_P(DecodeV32, AReplayGivesTheBitsOfTheSameStepRunEagerly) {
  expect_replay_equals_eager(GetParam(), small_v32_geometry(4));
  expect_replay_equals_eager(GetParam(), small_v32_geometry(4, 0, 1));
}
TEST_P(DecodeV32, AReplayDoesSoWhereAttentionBreaks) {
  for (const GraphMode mode : {GraphMode::piecewise, GraphMode::breakable}) {
    expect_replay_equals_eager(GetParam(), small_v32_geometry(4), {}, mode);
    expect_replay_equals_eager(GetParam(), small_v32_geometry(6, 2), {}, mode);
  }
}
TEST_P(DecodeV32, AReplayDoesSoWhateverTheDeviceDoesInTheMeantime) {
  for (const auto policy : {device::Policy::late, device::Policy::interleaved}) {
    expect_replay_equals_eager(
        GetParam(), small_v32_geometry(4),
        {.order = device::Order::random, .seed = 3, .policy = policy, .page_guards = true});
  }
}
TEST_P(DecodeV32, NoKernelOfAStepReadsWhatNobodyWroteOrRaces) {
  expect_replay_equals_eager(GetParam(), small_v32_geometry(4),
                             {.order = device::Order::reverse, .checked = true});
}

// No graph contains the planner, because the host runs it before the replay.
TEST(DecodeV32Plan, NoGraphContainsThePlanner) {
  V32Serving graph("sim-gfx942", GraphMode::full);
  graph.admit_all();
  graph.engine.capture();
  const auto& full = graph.engine.target().graphs(device::decode::GraphKind::full);
  for (const std::int64_t tokens : graph.engine.geometry().capture_sizes) {
    std::size_t attentions = 0;
    for (const device::GraphNode& node :
         full.nodes({.tokens = tokens, .requests = tokens, .uniform = true})) {
      EXPECT_EQ(node.name.find("plan"), std::string::npos) << node.name;
      attentions += node.name.find("attend") != std::string::npos ? 1 : 0;
    }
    EXPECT_EQ(attentions, 2u) << tokens;
  }
}

// The key has lengths cut to the top-k, so contexts beyond it keep their plan.
TEST(DecodeV32Plan, IsKeptWhereAllContextsAreLongerThanTheTopK) {
  V32Serving graph("sim-gfx942", GraphMode::full);
  graph.engine.admit(1, 200);
  graph.engine.admit(2, 128);
  graph.engine.admit(3, 125);
  graph.engine.capture();
  const auto steps = [&](const Ids& ids, int count) {
    const auto before = graph.engine.counters();
    for (int i = 0; i < count; ++i) graph.engine.step(ids);
    const auto counters = graph.engine.counters() - before;
    return std::pair(counters.plans_made, counters.plans_kept);
  };
  using Counts = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(steps({1, 2}, 20), Counts(1, 19));
  EXPECT_EQ(steps({2, 1}, 5), Counts(0, 5)) << "both attend 128 tokens";
  EXPECT_EQ(steps({3, 1}, 5), Counts(3, 2)) << "126 and 127 of 128 tokens, then 128";
  EXPECT_EQ(steps({1}, 1), Counts(1, 0));
}

// Random requests that come, decode in some order beside others, and end.
class RandomRequests {
 public:
  // A batch of requests in progress, in most calls the batch of the step before.
  const Ids& schedule(std::initializer_list<V32Serving*> engines) {
    if (!scheduled_.empty() && random_() % 4 != 0) return scheduled_;
    while (lengths_.size() < 6 && random_() % 3 != 0) {
      constexpr std::int64_t kLengths[] = {0, 1, 63, 126, 127, 128, 200, 240, 280, 330};
      lengths_[++newest_] = kLengths[random_() % std::size(kLengths)];
      for (V32Serving* serving : engines) serving->engine.admit(newest_, lengths_[newest_]);
    }
    scheduled_.clear();
    for (const auto& [id, length] : lengths_) {
      if (random_() % 3 == 0) scheduled_.push_back(id);
    }
    std::shuffle(scheduled_.begin(), scheduled_.end(), random_);
    return scheduled_;
  }
  void finish_some(std::initializer_list<V32Serving*> engines) {
    std::erase_if(scheduled_, [&](std::uint64_t id) {
      const std::int64_t most = (*engines.begin())->engine.geometry().max_context;
      if (++lengths_[id] < most && random_() % 12 != 0) return false;
      for (V32Serving* serving : engines) serving->engine.finish(id);
      return lengths_.erase(id) > 0;
    });
  }

 private:
  std::mt19937 random_{5};
  std::map<std::uint64_t, std::int64_t> lengths_;  // context of each request in progress
  std::uint64_t newest_ = 0;
  Ids scheduled_;
};

// A kept plan equals the plan that would have been made: the attention's plan is judged against the
// lengths that it sees.
TEST_P(DecodeV32, AHundredRandomStepsAreClean) {
  V32Serving eager(GetParam(), GraphMode::full, small_v32_geometry(6)),
      graph(GetParam(), GraphMode::full, small_v32_geometry(6));
  CallRecorder recorder(*eager.device, eager.engine.geometry(), eager.ops,
                        eager.engine.temporaries());
  eager.engine.observe(&recorder);
  graph.engine.capture();
  RandomRequests requests;
  for (int step = 0; step < 100; ++step) {
    const Ids& ids = requests.schedule({&eager, &graph});
    if (ids.empty()) continue;
    eager.engine.step_eagerly(ids);
    graph.engine.step(ids);
    ASSERT_EQ(graph.out(), eager.out()) << step;
    ASSERT_EQ(failures(recorder, "metadata", eager.engine.plan().tokens), "") << step;
    const bool judged = step % 4 == 0;  // judging costs as much time as ten steps
    ASSERT_EQ(judged ? failures(recorder, "layers", eager.engine.plan().tokens) : "", "") << step;
    ASSERT_EQ(wrong_buffers(graph), "") << step;
    requests.finish_some({&eager, &graph});
  }
  EXPECT_GT(graph.engine.counters().plans_kept, 20);
  EXPECT_GT(graph.engine.counters().plans_made, 40);
}

// AITER's metadata supports graphs with one query token per request only.
TEST(DecodeV32Graphs, FullGraphsWithSpeculationAreRefused) {
  const Geometry geometry = small_v32_geometry(4, 1);
  try {
    V32Serving("sim-gfx942", GraphMode::full, geometry);
    FAIL() << "it was not refused";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("UNIFORM_SINGLE_TOKEN_DECODE"), std::string::npos);
  }
  V32Serving eager("sim-gfx942", GraphMode::none, geometry);
  EXPECT_EQ(eager.engine.target().traits().automatic_mode, GraphMode::piecewise);
  eager.admit_all();
  eager.engine.step({1, 2, 3});
  EXPECT_EQ(eager.engine.plan().tokens, 6);
  EXPECT_EQ(eager.engine.counters().eager_steps, 1);
}

INSTANTIATE_TEST_SUITE_P(Platforms, DecodeV32,
                         testing::Values("sim-sm90", "sim-gfx942", "sim-gfx950"),
                         [](const auto& platform) {
                           std::string name = platform.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace decode_v32_test

}  // namespace plumb::tests
