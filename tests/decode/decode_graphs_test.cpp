// SPDX-License-Identifier: Apache-2.0
//
// A decode step in every graph mode. Live rows have the bits of the same step run eagerly with
// fresh state, whatever the earlier batches were. Graphs hold the kernels of the eager step. A
// steady schedule captures nothing and never waits for the device.
#include <gtest/gtest.h>

#include "decode/graphs/breakable_graphs.h"
#include "tests/support/decode_serving.h"

namespace plumb::tests {

namespace decode_graphs_test {

using device::Policy;
using device::decode::BatchDescriptor;
using device::decode::Counters;
using device::decode::Engine;
using device::decode::FullGraphSupport;
using device::decode::Geometry;
using device::decode::GraphKind;
using device::decode::GraphMode;
using device::decode::ModelRunner;
using device::decode::ModelTraits;
using device::decode::small_geometry;

constexpr GraphMode kModes[] = {GraphMode::none,
                                GraphMode::piecewise,
                                GraphMode::full,
                                GraphMode::full_decode_only,
                                GraphMode::full_and_piecewise,
                                GraphMode::breakable};

Geometry with_drafter(std::int64_t requests, std::int64_t speculated = 0) {
  Geometry geometry = small_geometry(requests, speculated);
  geometry.drafter = true;
  return geometry;
}

// Batches by step: the batch shrinks to no request, grows, permutes, and returns to the first one.
const std::vector<Ids>& schedule() {
  static const std::vector<Ids> steps{
      {1, 2, 3, 4, 5}, {1, 2, 4},       {4, 1},         {3}, {}, {2}, {2, 3, 6},
      {6, 3, 2},       {5, 4, 3, 2, 1}, {1, 2, 3, 4, 5}};
  return steps;
}

struct Setting {
  GraphMode mode;
  std::string platform;
  Policy policy;
};

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const GraphMode mode : kModes) {
    all.push_back({mode, "sim-sm90", Policy::early});
    all.push_back({mode, "sim-gfx942", Policy::interleaved});
  }
  for (const GraphMode mode : {GraphMode::full_and_piecewise, GraphMode::breakable}) {
    all.push_back({mode, "sim-gfx950", Policy::late});
  }
  return all;
}

std::string name_of_setting(const testing::TestParamInfo<Setting>& info) {
  std::string name = std::string(name_of(info.param.mode)) + "_" + info.param.platform;
  if (info.param.policy == Policy::late) name += "_late";
  if (info.param.policy == Policy::interleaved) name += "_interleaved";
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

void expect_the_bits_of_eager_steps(const ServingOptions& options) {
  Serving graph(options), eager(options);
  graph.admit_all();
  eager.admit_all();
  graph.engine.capture();
  for (const Ids& ids : schedule()) {
    graph.engine.step(ids);
    eager.engine.step_eagerly(ids);
    EXPECT_EQ(graph.out(), eager.out()) << ids.size() << " requests";
  }
  const Counters counters = graph.engine.counters();
  if (options.mode == GraphMode::none) {
    EXPECT_EQ(counters.graph_launches, 0);
  } else {
    EXPECT_EQ(counters.eager_steps, 0);
    EXPECT_GE(counters.graph_launches, 2 * counters.steps);
  }
}

class DecodeGraphs : public testing::TestWithParam<Setting> {};

TEST_P(DecodeGraphs, LiveRowsHaveTheBitsOfAnEagerStep) {
  expect_the_bits_of_eager_steps({.platform = GetParam().platform,
                                  .mode = GetParam().mode,
                                  .geometry = with_drafter(8),
                                  .conditions = {.policy = GetParam().policy}});
}

INSTANTIATE_TEST_SUITE_P(Modes, DecodeGraphs, testing::ValuesIn(settings()), name_of_setting);

class DecodeGraphsOnASimulator : public testing::TestWithParam<GraphMode> {};

TEST_P(DecodeGraphsOnASimulator, LiveRowsOfSeveralQueryTokensHaveTheBitsOfAnEagerStep) {
  expect_the_bits_of_eager_steps(
      {.platform = "sim-gfx942", .mode = GetParam(), .geometry = with_drafter(6, 2)});
}

TEST_P(DecodeGraphsOnASimulator, CheckedKernelsAndPageGuardsFindNothing) {
  Serving serving({.mode = GetParam(),
                   .geometry = with_drafter(4),
                   .conditions = {.checked = true, .page_guards = true}});
  serving.admit_all();
  serving.engine.capture();
  for (const Ids& ids : {Ids{1, 2, 3}, Ids{4}, Ids{}}) {
    serving.engine.step(ids);
    EXPECT_NO_THROW(serving.device->synchronize());
  }
  EXPECT_TRUE(serving.device->check_guards().empty());
}

std::vector<std::string> kernels(const std::vector<device::GraphNode>& nodes) {
  std::vector<std::string> names;
  for (const device::GraphNode& node : nodes) names.push_back(node.name);
  return names;
}

TEST_P(DecodeGraphsOnASimulator, GraphsHoldTheKernelsOfTheEagerStep) {
  Serving serving({.mode = GetParam(), .geometry = with_drafter(8)});
  serving.admit_all();
  serving.engine.capture();
  serving.engine.step({1, 2, 3});
  const Engine& engine = serving.engine;
  const GraphKind kind = engine.kind();
  for (const ModelRunner* runner : {&engine.target(), engine.drafter()}) {
    const auto captured = runner->graphs(kind).nodes(runner->key(kind, engine.plan()));
    const auto expected = runner->eager_nodes(kind, engine.plan(), ModelRunner::Which::captured);
    EXPECT_EQ(kernels(captured), kernels(expected));
    const auto all = runner->eager_nodes(kind, engine.plan(), ModelRunner::Which::all);
    EXPECT_EQ(captured.size() == all.size(), kind == GraphKind::full);
  }
}

TEST_P(DecodeGraphsOnASimulator, ASteadyScheduleCapturesNothingAndWaitsForNothing) {
  Serving serving({.mode = GetParam(), .geometry = with_drafter(8)});
  serving.admit_all();
  serving.engine.capture();
  serving.engine.step({1, 2, 3});
  const Counters first = serving.engine.latest();
  for (int step = 0; step < 5; ++step) {
    serving.engine.step({1, 2, 3});
    const Counters counters = serving.engine.latest();
    EXPECT_EQ(counters.steps, 1);
    EXPECT_EQ(counters.captures, 0);
    EXPECT_EQ(counters.recaptures, 0);
    EXPECT_EQ(counters.host_synchronizations, 0);
    EXPECT_EQ(counters.eager_steps, 0);
    EXPECT_EQ(counters.graph_launches, first.graph_launches);
    EXPECT_EQ(counters.metadata_launches, first.metadata_launches);
  }
  EXPECT_GT(first.metadata_launches, 0);
  EXPECT_TRUE(serving.engine.target().owns_what_it_captured());
}

INSTANTIATE_TEST_SUITE_P(Modes, DecodeGraphsOnASimulator,
                         testing::ValuesIn(std::begin(kModes) + 1, std::end(kModes)),
                         [](const auto& mode) { return std::string(name_of(mode.param)); });

TEST(DecodeDispatch, AStepLargerThanEveryCapturedSizeRunsEagerly) {
  Geometry geometry = with_drafter(8);
  geometry.capture_sizes = {1, 2, 4};
  Serving graph({.mode = GraphMode::full_and_piecewise, .geometry = geometry});
  graph.admit_all();
  graph.engine.capture();
  graph.engine.step({1, 2, 3, 4, 5});
  EXPECT_EQ(graph.engine.latest().eager_steps, 2);
  EXPECT_EQ(graph.engine.plan().tokens, 5);
  graph.engine.step({1, 2, 3});
  EXPECT_EQ(graph.engine.latest().eager_steps, 0);
  EXPECT_EQ(graph.engine.plan().tokens, 4);
}

TEST(DecodeDispatch, AFullGraphHasWholeRequestsOnly) {
  Geometry geometry = small_geometry(4, 1);
  geometry.capture_sizes = {1, 3, 4, 7};
  Serving serving({.mode = GraphMode::full_and_piecewise, .geometry = geometry});
  const auto dispatch = [&](bool uniform) {
    return serving.engine.target().dispatch({.tokens = 2, .requests = 1, .uniform = uniform});
  };
  EXPECT_EQ(dispatch(true).tokens, 4);
  EXPECT_EQ(dispatch(false).tokens, 3);
}

TEST(DecodeDispatch, UniformAndMixedBatchesAreRunAsTheModeSays) {
  using enum GraphKind;
  const ModelTraits model{.name = "a model"};
  const auto kinds = [&](GraphMode mode) {
    return std::pair{kind_of(mode, model, {.tokens = 8, .requests = 8, .uniform = true}),
                     kind_of(mode, model, {.tokens = 8, .requests = 3, .uniform = false})};
  };
  EXPECT_EQ(kinds(GraphMode::none), (std::pair{none, none}));
  EXPECT_EQ(kinds(GraphMode::piecewise), (std::pair{piecewise, piecewise}));
  EXPECT_EQ(kinds(GraphMode::full), (std::pair{full, none})) << "not of a batch that is mixed";
  EXPECT_EQ(kinds(GraphMode::full_decode_only), (std::pair{full, none}));
  EXPECT_EQ(kinds(GraphMode::full_and_piecewise), (std::pair{full, piecewise}));
  EXPECT_EQ(kinds(GraphMode::breakable), (std::pair{breakable, breakable}));
  const ModelTraits any{.name = "a model", .full_graphs = FullGraphSupport::always};
  EXPECT_EQ(kind_of(GraphMode::full, any, {.uniform = false}), full);
}

TEST(DecodeDispatch, ABatchIsPaddedToTheSmallestCapturedSizeThatIsEnough) {
  Geometry geometry = small_geometry(8);
  geometry.capture_sizes = {1, 4, 6};
  Serving serving({.mode = GraphMode::full_and_piecewise, .geometry = geometry});
  const auto dispatch = [&](std::int64_t tokens, bool uniform) {
    const auto how = serving.engine.target().dispatch(
        {.tokens = tokens, .requests = tokens, .uniform = uniform});
    return std::pair{how.kind, how.tokens};
  };
  EXPECT_EQ(dispatch(0, true), (std::pair{GraphKind::full, std::int64_t{1}}));
  EXPECT_EQ(dispatch(1, true), (std::pair{GraphKind::full, std::int64_t{1}}));
  EXPECT_EQ(dispatch(2, true), (std::pair{GraphKind::full, std::int64_t{4}}));
  EXPECT_EQ(dispatch(5, false), (std::pair{GraphKind::piecewise, std::int64_t{6}}));
  EXPECT_EQ(dispatch(7, false), (std::pair{GraphKind::none, std::int64_t{7}}));
}

std::string refusal(GraphMode mode, const ModelTraits& model, std::int64_t query_tokens) {
  try {
    require_supported(mode, model, query_tokens);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(DecodeDispatch, AModeThatAModelCannotHaveIsRefusedByBothNames) {
  ModelTraits model{.name = "Opaque", .full_graphs = FullGraphSupport::never, .breaks = false};
  EXPECT_EQ(refusal(GraphMode::full_and_piecewise, model, 1),
            "FULL_AND_PIECEWISE graphs of Opaque: its attention cannot be captured");
  EXPECT_EQ(refusal(GraphMode::breakable, model, 1),
            "BREAKABLE graphs of Opaque: no segment of it breaks");
  EXPECT_EQ(refusal(GraphMode::none, model, 1), "");
  model.full_graphs = FullGraphSupport::uniform_single_token;
  EXPECT_EQ(refusal(GraphMode::full, model, 1), "");
  EXPECT_EQ(refusal(GraphMode::full, model, 3),
            "FULL graphs of Opaque: its attention can be captured for one query token only "
            "(UNIFORM_SINGLE_TOKEN_DECODE)");
}

TEST(DecodeModes, V4AndItsDrafterBreakUnlessTheUserSaysOtherwise) {
  Serving automatic({.geometry = with_drafter(4)});
  EXPECT_EQ(automatic.engine.target().mode(), GraphMode::breakable);
  EXPECT_EQ(automatic.engine.drafter()->mode(), GraphMode::breakable);
  for (const GraphMode mode : kModes) {
    Serving chosen({.mode = mode, .geometry = with_drafter(4)});
    EXPECT_EQ(chosen.engine.target().mode(), mode);
    EXPECT_EQ(chosen.engine.drafter()->mode(), mode);
  }
}

// The C4A layer breaks twice in a row. The graph between the two breaks is empty.
TEST(DecodeModes, ABreakableCaptureIsGraphsAroundEveryBreak) {
  Serving serving({.mode = GraphMode::breakable});
  serving.admit_all();
  serving.engine.step({1, 2});
  const ModelRunner& runner = serving.engine.target();
  const auto& graphs =
      dynamic_cast<const device::decode::BreakableGraphs&>(runner.graphs(GraphKind::breakable));
  const auto sequence = graphs.sequence(runner.key(GraphKind::breakable, serving.engine.plan()));
  EXPECT_EQ(sequence,
            (std::vector<bool>{true, false, true, false, true, false, true, false, true}));
  EXPECT_EQ(serving.engine.latest().graph_launches, 5);
  EXPECT_EQ(serving.engine.latest().captures, 1) << "on first use";
  serving.engine.step({3, 4});
  EXPECT_EQ(serving.engine.latest().captures, 0);
  try {
    static_cast<void>(graphs.sequence({.tokens = 77, .requests = 7}));
    ADD_FAILURE() << "never captured";
  } catch (const std::out_of_range& error) {
    EXPECT_STREQ(error.what(), "no graph of 77 tokens, 7 requests");
  }
}

// A model with a single segment, which enqueues nothing and calls a function of the test.
class OneSegment final : public device::decode::Model {
 public:
  explicit OneSegment(std::function<void()> run) : run_(std::move(run)) {}
  ModelTraits traits() const override { return {.name = "one segment"}; }
  void build_metadata(const device::decode::Caller&, const device::decode::StepInputs&,
                      const device::decode::StepPlan&) override {}
  std::vector<device::decode::Segment> segments() override {
    return {{.name = "only", .run = [this](const auto&) { run_(); }}};
  }
  void fill_caches(const device::decode::Caller&, const device::decode::StepInputs&, std::int64_t,
                   device::decode::Filled) override {}
  std::vector<device::decode::CacheView> caches() const override { return {}; }
  const std::uint16_t* out() const override { return nullptr; }

 private:
  std::function<void()> run_;
};

TEST(DecodeModes, ACaptureInsideACaptureIsRefusedAndLeavesTheStreamUsable) {
  const auto device = device::open_device("sim-sm90");
  const auto& ops = device::builtin_implementation("sim-sm90");
  const Geometry geometry = small_geometry(2);
  const device::Stream stream = device->create_stream();
  device::CachingAllocator allocator(*device, stream, device::CachingAllocator::Reuse::at_once);
  device::decode::EngineMemory memory(*device);
  const device::decode::StepInputs inputs(geometry, memory);
  const device::decode::Policies policies;
  const device::decode::Caller call(ops, ops, *policies.missing_ops, stream);
  const device::decode::StepPlan plan;
  const device::decode::StepSite site{*device, stream, allocator, geometry, call, inputs, policies};
  device::decode::GraphRunner* runner = nullptr;
  OneSegment model([&] {
    if (device->capturing()) runner->capture({.tokens = 1}, {1, 1, plan});
  });
  const device::decode::StepSegments segments(model.segments(), "layers", site);
  device::decode::BreakableGraphs graphs(segments, site);
  runner = &graphs;
  EXPECT_THROW(graphs.capture({.tokens = 2}, {2, 2, plan}), std::logic_error);
  EXPECT_FALSE(device->capturing());
  EXPECT_FALSE(graphs.has({.tokens = 2}));
  device->synchronize(stream);
}

}  // namespace decode_graphs_test

}  // namespace plumb::tests
