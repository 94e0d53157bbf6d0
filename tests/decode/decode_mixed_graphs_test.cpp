// SPDX-License-Identifier: Apache-2.0
//
// Batches that are not uniform, under graphs: each mode runs them as graph, in pieces or eagerly,
// and live rows have the bits of the same step run eagerly. decode_watch_test.cpp judges the ops of
// such steps.
#include <gtest/gtest.h>

#include "tests/support/decode_serving.h"

namespace plumb::tests {

namespace decode_mixed_graphs_test {

using device::Policy;
using device::decode::Counters;
using device::decode::Geometry;
using device::decode::GraphKind;
using device::decode::GraphMode;
using device::decode::ModelRunner;
using device::decode::Scheduled;
using device::decode::small_geometry;
using Batch = std::vector<Scheduled>;

constexpr GraphMode kModes[] = {GraphMode::none,
                                GraphMode::piecewise,
                                GraphMode::full,
                                GraphMode::full_decode_only,
                                GraphMode::full_and_piecewise,
                                GraphMode::breakable};

// Steps have up to 48 tokens; sizes up to 24 are captured.
Geometry mixing(std::int64_t speculated = 0) {
  Geometry geometry = small_geometry(8, speculated, 48);
  geometry.capture_sizes = {2, 8, 16, 24};
  geometry.drafter = true;
  return geometry;
}

Scheduled prefill(std::uint64_t request, std::int64_t tokens) { return {request, tokens, true}; }

// Kind of graph that a mode uses for a mixed and for a uniform batch   [10.1].
struct Kinds {
  GraphKind mixed, uniform;
};
Kinds kinds_of(GraphMode mode) {
  using enum GraphKind;
  switch (mode) {
    case GraphMode::none: break;
    case GraphMode::piecewise: return {piecewise, piecewise};
    case GraphMode::full:
    case GraphMode::full_decode_only: return {none, full};
    case GraphMode::full_and_piecewise: return {piecewise, full};
    case GraphMode::breakable: return {breakable, breakable};
  }
  return {none, none};
}

// Chunks of prompts beside decodes, chunks alone, and decodes after them. One batch is larger than
// every captured size.
struct Step {
  Batch batch;
  bool uniform = false, fits = true;
};
const std::vector<Step>& schedule() {
  static const std::vector<Step> steps{{{{1}, {2}, {3}}, true},
                                       {{{1}, {2}, prefill(5, 9)}},
                                       {{{3}, prefill(5, 1), prefill(6, 13), prefill(7, 3)}},
                                       {{{5}, {6}, {1}}, true},
                                       {{{1}, prefill(7, 41)}, false, false},
                                       {{prefill(7, 2)}},
                                       {{{7}, {2}, {4}, {1}}, true}};
  return steps;
}

void admit(Serving& serving) {
  constexpr std::int64_t kTokens[] = {5, 90, 140, 300, 0, 0, 60};
  for (std::uint64_t id = 1; id <= std::size(kTokens); ++id) {
    serving.engine.admit(id, kTokens[id - 1]);
  }
}

class DecodeMixedGraphs : public testing::TestWithParam<GraphMode> {
 protected:
  // One engine uses graphs, the other runs eagerly.
  void expect_the_bits_of_eager_steps(const ServingOptions& options) {
    Serving graph(options), eager(options);
    for (Serving* serving : {&graph, &eager}) admit(*serving);
    graph.engine.capture();
    for (const Step& step : schedule()) {
      graph.engine.step(step.batch);
      eager.engine.step_eagerly(step.batch);
      EXPECT_EQ(graph.out(), eager.out()) << options.platform << " " << graph.engine.plan().tokens;
      EXPECT_EQ(graph.engine.latest().captures, 0);
    }
  }
};

TEST_P(DecodeMixedGraphs, LiveRowsHaveTheBitsOfAnEagerStep) {
  expect_the_bits_of_eager_steps({.platform = "sim-gfx942",
                                  .mode = GetParam(),
                                  .geometry = mixing(),
                                  .conditions = {.policy = Policy::interleaved}});
}

TEST_P(DecodeMixedGraphs, EachBatchIsRunAsTheModeSays) {
  Serving serving({.mode = GetParam(), .geometry = mixing()});
  admit(serving);
  serving.engine.capture();
  const auto [mixed, uniform] = kinds_of(GetParam());
  for (const Step& step : schedule()) {
    serving.engine.step(step.batch);
    const GraphKind kind = step.uniform ? uniform : step.fits ? mixed : GraphKind::none;
    EXPECT_EQ(serving.engine.kind(), kind);
    const Counters counters = serving.engine.latest();
    EXPECT_EQ(counters.eager_steps, kind == GraphKind::none ? 2 : 0) << "target and drafter";
    EXPECT_EQ(counters.oversized_steps, !step.fits && mixed != GraphKind::none ? 1 : 0);
    EXPECT_EQ(counters.host_synchronizations, 0);
    const auto& plan = serving.engine.plan();
    if (kind == GraphKind::none) {
      EXPECT_EQ(plan.tokens, plan.live_tokens) << "nothing is padded";
    }
    if (!step.uniform) {
      EXPECT_EQ(plan.requests, plan.live_requests) << "nor any request";
    }
  }
}

// With speculation, requests with fewer query tokens than the maximum: these batches of decodes are
// not uniform.
TEST_P(DecodeMixedGraphs, PackedBatchesHaveTheBitsOfAnEagerStep) {
  const ServingOptions options{.mode = GetParam(), .geometry = mixing(2)};
  Serving graph(options), eager(options);
  for (Serving* serving : {&graph, &eager}) admit(*serving);
  graph.engine.capture();
  for (const Batch& batch : {Batch{{1, 3}, {2, 1}, {3, 2}}, Batch{{1, 1}, {2, 3}, prefill(5, 7)},
                             Batch{{5, 3}, {3, 3}}, Batch{{4, 1}, {5, 2}}}) {
    graph.engine.step(batch);
    eager.engine.step_eagerly(batch);
    EXPECT_EQ(graph.out(), eager.out()) << graph.engine.plan().tokens;
  }
}

// V3.2: chunks of one token and of many, several prompts in one chunk, with and without decodes.
TEST_P(DecodeMixedGraphs, StepsOfV32HaveTheBitsOfAnEagerStep) {
  ServingOptions options{.mode = GetParam(),
                         .geometry = device::decode::small_v32_geometry(8, 0, 64, 48),
                         .conditions = {.policy = Policy::interleaved}};
  options.geometry.capture_sizes = {2, 8, 16, 24};
  expect_the_bits_of_eager_steps(options);
}

INSTANTIATE_TEST_SUITE_P(Modes, DecodeMixedGraphs, testing::ValuesIn(kModes),
                         [](const auto& mode) { return std::string(name_of(mode.param)); });

std::vector<std::string> kernels(const std::vector<device::GraphNode>& nodes) {
  std::vector<std::string> names;
  for (const device::GraphNode& node : nodes) names.push_back(node.name);
  return names;
}

// One graph serves uniform and mixed batches of its size, because it does not depend on the
// requests that own the tokens.
TEST(DecodeMixedDispatch, PiecesAreSharedByAllBatchesOfASize) {
  Serving serving({.mode = GraphMode::piecewise, .geometry = mixing()});
  admit(serving);
  serving.engine.step({{1}, {2}, prefill(5, 4)});
  EXPECT_EQ(serving.engine.latest().captures, 2) << "on first use, target and drafter";
  const ModelRunner& runner = serving.engine.target();
  const auto& plan = serving.engine.plan();
  EXPECT_EQ(
      kernels(runner.graphs(GraphKind::piecewise).nodes(runner.key(GraphKind::piecewise, plan))),
      kernels(runner.eager_nodes(GraphKind::piecewise, plan, ModelRunner::Which::captured)));
  serving.engine.step(Ids{1, 2, 3, 4, 5});
  EXPECT_EQ(serving.engine.latest().captures, 0);
}

// [10.2]: up to twice the number of decode tokens, at most 512 and the tokens of a step.
TEST(DecodeMixedDispatch, CaptureSizesGoBeyondTheTokensThatDecode) {
  const auto largest = [](std::int64_t requests, std::int64_t speculated, std::int64_t batched) {
    return small_geometry(requests, speculated, batched).capture_sizes.back();
  };
  EXPECT_EQ(largest(8, 0, 0), 8);
  EXPECT_EQ(largest(8, 0, 12), 8);
  EXPECT_EQ(largest(8, 0, 96), 16);
  EXPECT_EQ(largest(8, 2, 96), 48);
  EXPECT_EQ(largest(512, 0, 2048), 512);
}

// FULL graphs hold decodes only, so their size is at most the number of requests.
TEST(DecodeMixedDispatch, NoFullGraphHasMoreTokensThanDecode) {
  Serving serving({.mode = GraphMode::full_and_piecewise, .geometry = mixing()});
  std::int64_t largest = 0;
  for (const auto& [kind, tokens] : serving.engine.target().captures()) {
    if (kind == GraphKind::full) largest = std::max(largest, tokens);
  }
  EXPECT_EQ(largest, 8);
}

}  // namespace decode_mixed_graphs_test

}  // namespace plumb::tests
