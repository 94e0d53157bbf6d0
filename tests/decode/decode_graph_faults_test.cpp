// SPDX-License-Identifier: Apache-2.0
//
// Faults of the host with graphs (faults/decode/graph_policies.h): each is seen, and by the check
// named here.
#include <gtest/gtest.h>

#include "faults/decode/graph_policies.h"
#include "tests/support/decode_serving.h"

namespace plumb::tests {

namespace decode_graph_faults_test {

using cases::ArgumentsHeldWeakly;
using cases::AutomaticWins;
using cases::DrafterLeftOut;
using cases::FreshResult;
using cases::FreshStateFreed;
using cases::PlannerHoisted;
using cases::RowsFromTheDevice;
using cases::SlicesOfTheData;
using cases::TransfersOnTheirOwn;
using cases::WarmUpStateCaptured;
using device::DeviceError;
using device::Policy;
using device::decode::Counters;
using device::decode::Geometry;
using device::decode::GraphKind;
using device::decode::GraphMode;
using device::decode::ModelRunner;
using device::decode::Policies;
using device::decode::small_geometry;

const std::vector<Ids>& shrinking() {
  static const std::vector<Ids> steps{{1, 2, 3, 4}, {1, 2}, {4, 3, 2}, {2}, {1, 2, 3, 4}};
  return steps;
}

// Whether a live row of the schedule differs from the same step run eagerly without the fault.
bool differs(const ServingOptions& faulty, const std::vector<Ids>& schedule, bool capture = true) {
  ServingOptions right = faulty;
  right.policies = {};
  right.conditions = {};
  right.wrap = nullptr;
  Serving eager(right), graph(faulty);
  eager.admit_all();
  graph.admit_all();
  if (capture) graph.engine.capture();
  for (const Ids& ids : schedule) {
    eager.engine.step_eagerly(ids);
    graph.engine.step(ids);
    if (graph.out() != eager.out()) return true;
  }
  return false;
}

template <class ErrorKind, class Base>
ServingOptions with(GraphMode mode, std::shared_ptr<const Base> Policies::* where) {
  ServingOptions options{.mode = mode};
  options.policies.*where = std::make_shared<ErrorKind>();
  return options;
}

std::vector<std::string> kernels(const std::vector<device::GraphNode>& nodes) {
  std::vector<std::string> names;
  for (const device::GraphNode& node : nodes) names.push_back(node.name);
  return names;
}

// Whether the graph of a step of two requests holds the kernels of the eager step with fresh state.
bool holds_the_eager_kernels(const ServingOptions& options) {
  Serving serving(options);
  serving.admit_all();
  serving.engine.capture();
  serving.engine.step({1, 2});
  const ModelRunner& runner = serving.engine.target();
  const auto& plan = serving.engine.plan();
  const GraphKind kind = serving.engine.kind();
  return kernels(runner.graphs(kind).nodes(runner.key(kind, plan))) ==
         kernels(runner.eager_nodes(kind, plan, ModelRunner::Which::captured));
}

TEST(DecodeGraphFaults, AStateKeptFromTheWarmUp) {
  const auto options = with<WarmUpStateCaptured>(GraphMode::full, &Policies::capture);
  EXPECT_TRUE(differs(options, shrinking()));
  EXPECT_FALSE(holds_the_eager_kernels(options));
}

TEST(DecodeGraphFaults, APlannerInFrontOfTheGraph) {
  const auto options = with<PlannerHoisted>(GraphMode::full, &Policies::capture);
  EXPECT_TRUE(differs(options, shrinking()));
  EXPECT_FALSE(holds_the_eager_kernels(options));
}

// A piecewise graph contains no attention, so neither fault has an effect there.
TEST(DecodeGraphFaults, TheStateOfTheWarmUpMayServeAPiecewiseCapture) {
  EXPECT_FALSE(
      differs(with<WarmUpStateCaptured>(GraphMode::piecewise, &Policies::capture), shrinking()));
}

// Every replay plans again in the freed memory, so results are right. Only the graph's addresses,
// which its engine no longer owns, show the fault.
TEST(DecodeGraphFaults, AFreshStateThatIsFreedBehindItsGraph) {
  const auto options = with<FreshStateFreed>(GraphMode::full, &Policies::capture);
  EXPECT_TRUE(holds_the_eager_kernels(options));
  Serving serving(options);
  serving.engine.capture();
  EXPECT_FALSE(serving.engine.target().owns_what_it_captured());
}

TEST(DecodeGraphFaults, ABreakThatReturnsAFreshTensor) {
  for (const GraphMode mode : {GraphMode::piecewise, GraphMode::breakable}) {
    const auto options = with<FreshResult>(mode, &Policies::breaks);
    EXPECT_TRUE(differs(options, shrinking())) << name_of(mode);
    EXPECT_TRUE(differs(options, shrinking(), false)) << name_of(mode) << ", captured on first use";
  }
  EXPECT_FALSE(differs(with<FreshResult>(GraphMode::none, &Policies::breaks), shrinking()))
      << "an eager step goes on from what it was returned";
}

TEST(DecodeGraphFaults, ArgumentsOfABreakHeldWeakly) {
  const auto options = with<ArgumentsHeldWeakly>(GraphMode::breakable, &Policies::breaks);
  EXPECT_TRUE(differs(options, shrinking()));
  const std::vector<Ids> two_buckets_the_earlier_replayed{{1, 2, 3, 4}, {1}, {1, 2, 3, 4}};
  EXPECT_TRUE(differs(options, two_buckets_the_earlier_replayed, false));
  const std::vector<Ids> one_bucket{{1, 2, 3, 4}, {1, 2, 3}, {4, 3, 2, 1}};
  EXPECT_FALSE(differs(options, one_bucket, false)) << "nothing is put there";
}

TEST(DecodeGraphFaults, ADrafterLeftOutOfTheGraphs) {
  for (const GraphMode mode : {GraphMode::full, GraphMode::breakable}) {
    auto options = with<DrafterLeftOut>(mode, &Policies::mode);
    options.geometry.drafter = true;
    EXPECT_FALSE(differs(options, shrinking())) << "it is only slow";
    Serving serving(options);
    serving.admit_all();
    serving.engine.capture();
    serving.engine.step({1, 2});
    EXPECT_EQ(serving.engine.latest().drafter_eager_steps, 1);
    EXPECT_EQ(serving.engine.latest().drafter_graph_launches, 0);
  }
}

TEST(DecodeGraphFaults, AnAutomaticChoiceThatOverridesTheUsers) {
  const auto options = with<AutomaticWins>(GraphMode::full, &Policies::mode);
  EXPECT_FALSE(differs(options, shrinking())) << "right, and not what was asked for";
  Serving serving(options);
  serving.admit_all();
  serving.engine.step({1, 2});
  EXPECT_NE(serving.engine.target().mode(), GraphMode::full);
  EXPECT_NE(serving.engine.kind(), GraphKind::full);
}

TEST(DecodeGraphFaults, AHostSynchronizationInsideACapture) {
  for (const GraphMode mode : {GraphMode::full, GraphMode::piecewise, GraphMode::breakable}) {
    Serving serving(with<RowsFromTheDevice>(mode, &Policies::shapes));
    serving.admit_all();
    EXPECT_THROW(serving.engine.step({1, 2}), DeviceError) << name_of(mode);
  }
  Serving eager(with<RowsFromTheDevice>(GraphMode::none, &Policies::shapes));
  eager.admit_all();
  eager.engine.step({1, 2});
  EXPECT_EQ(eager.engine.latest().host_synchronizations, 1);
}

TEST(DecodeGraphFaults, SlicesThatFollowTheDataAreCapturedAnew) {
  for (const GraphMode mode : {GraphMode::full, GraphMode::piecewise, GraphMode::breakable}) {
    const auto options = with<SlicesOfTheData>(mode, &Policies::shapes);
    EXPECT_FALSE(differs(options, shrinking())) << "right, and as slow as can be";
    Serving serving(options);
    serving.admit_all();
    serving.engine.capture();
    for (int step = 0; step < 3; ++step) {
      serving.engine.step({1, 2});
      EXPECT_EQ(serving.engine.latest().recaptures, 1) << name_of(mode);
      EXPECT_GT(serving.engine.latest().host_synchronizations, 0) << name_of(mode);
    }
  }
}

// Enqueues two steps before a wait: the inputs of the second may be copied before the first has
// read its own.
bool differs_after_steps_in_flight(const ServingOptions& faulty) {
  ServingOptions right = faulty;
  right.policies = {};
  right.conditions = {};
  Serving eager(right), graph(faulty);
  eager.admit_all();
  graph.admit_all();
  graph.engine.capture();
  bool differ = false;
  for (int i = 0; i < 4; ++i) {
    for (int step = 0; step < 2; ++step) {
      eager.engine.step_eagerly({1, 2, 3});
      graph.engine.step({1, 2, 3});
    }
    differ = differ || graph.out() != eager.out();
  }
  return differ;
}

TEST(DecodeGraphFaults, InputsRewrittenWhileAReplayIsInFlight) {
  for (const GraphMode mode : {GraphMode::full, GraphMode::piecewise, GraphMode::breakable}) {
    auto options = with<TransfersOnTheirOwn>(mode, &Policies::transfers);
    EXPECT_FALSE(differs_after_steps_in_flight(options)) << "each step is over before the next";
    options.conditions.policy = Policy::interleaved;
    EXPECT_TRUE(differs_after_steps_in_flight(options)) << name_of(mode);
    options.policies = {};
    EXPECT_FALSE(differs_after_steps_in_flight(options)) << name_of(mode);
  }
}

TEST(DecodeGraphFaults, AReplayThatDoesNothing) {
  for (const GraphMode mode : {GraphMode::full, GraphMode::piecewise, GraphMode::breakable}) {
    EXPECT_TRUE(differs(with<cases::DeadReplays>(mode, &Policies::capture), shrinking()))
        << name_of(mode);
  }
}

}  // namespace decode_graph_faults_test

}  // namespace plumb::tests
