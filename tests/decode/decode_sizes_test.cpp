// SPDX-License-Identifier: Apache-2.0
//
// Watched steps of many requests: 512 in the small geometry, and the shape of production geometry
// in sizes that a simulator affords. Most tests take minutes, so they run only with PLUMB_FULL=1 in
// the environment.
#include <gtest/gtest.h>

#include "decode/watch/watch.h"
#include "tests/support/decode_serving.h"
#include "tests/support/long_tests.h"

namespace plumb::cases {

namespace decode_sizes_test {

using device::decode::Geometry;
using device::decode::GraphMode;

void expect_clean(const DecodeSetup& setup, const ScheduleShape& shape) {
  const WatchResult result = watch(setup, shape);
  EXPECT_TRUE(result.clean()) << setup.platform << ", " << name_of(setup.mode) << ", "
                              << text_of(shape) << "\n"
                              << result.findings.front().op << " (" << result.findings.front().call
                              << "): " << result.findings.front().text;
  EXPECT_EQ(result.steps, shape.steps);
}

// Few sizes are captured, because a watched engine keeps copies for each of them.
DecodeSetup many(const std::string& platform, GraphMode mode, Geometry geometry) {
  DecodeSetup setup;
  setup.platform = platform;
  setup.mode = mode;
  setup.geometry = std::move(geometry);
  setup.geometry.frees_window = setup.geometry.window > 0;
  setup.sample = 12;
  return setup;
}

Geometry of_512(std::vector<std::int64_t> sizes) {
  Geometry geometry = device::decode::small_geometry(512, 0, 544);
  geometry.capture_sizes = std::move(sizes);
  return geometry;
}

// One layer, with short contexts that are still longer than a top-k of 8 states keeps.
TEST(ManyRequests, InOneStepRaiseNoAlarm) {
  Geometry geometry = of_512({512});
  geometry.layers = {device::decode::Attention::c4a};
  geometry.top_k = 8;
  geometry.max_context = 72;
  expect_clean(many("sim-sm90", GraphMode::full_and_piecewise, geometry),
               {Traffic::join, Lengths::beyond_k, 2, 512, 1});
}

class FullTier : public testing::TestWithParam<GraphMode> {
 protected:
  void SetUp() override {
    if (!tests::long_tests_run()) GTEST_SKIP() << tests::kTakesMinutes;
  }
};

class ManyRequestsLong : public FullTier {};

// Batches of 512, 128, 512 requests; live counts between captured sizes; steps larger than all
// sizes.
TEST_P(ManyRequestsLong, RaiseNoAlarm) {
  const Geometry geometry = of_512({32, 256, 512});
  const char* platform = static_cast<int>(GetParam()) % 2 == 0 ? "sim-gfx942" : "sim-gfx950";
  expect_clean(many(platform, GetParam(), geometry),
               {Traffic::there_and_back, Lengths::mixed, 3, 512, 1});
  expect_clean(many(platform, GetParam(), geometry), {Traffic::random, Lengths::random, 3, 500, 2});
  expect_clean(many(platform, GetParam(), geometry), {Traffic::join, Lengths::beyond_k, 4, 512, 3});
}

TEST_P(ManyRequestsLong, WithSpeculationRaiseNoAlarm) {
  Geometry geometry = device::decode::small_geometry(128, 3, 544);
  geometry.capture_sizes = {32, 512};
  geometry.drafter = true;
  expect_clean(many("sim-sm90", GetParam(), geometry),
               {Traffic::random, Lengths::random, 3, 128, 4});
}

// Production geometry with a quarter of the heads and of the hidden size, and an eighth of the
// top-k and so of the contexts.
Geometry scaled_down(Geometry geometry) {
  geometry.heads = 4;
  geometry.hidden = 1792;
  geometry.top_k /= 8;
  geometry.index_heads = 16;
  geometry.layers.resize(2, geometry.layers.back());
  geometry.layers.front() = geometry.layers[1];
  geometry.max_context = (geometry.top_k + 64) * geometry.index_ratio;
  return geometry;
}

class ProductionShape : public FullTier {};

TEST_P(ProductionShape, RaisesNoAlarm) {
  const DecodeSetup v4 =
      many("sim-sm90", GetParam(), scaled_down(device::decode::production_geometry(64, 128)));
  expect_clean(v4, {Traffic::join, Lengths::beyond_k, 4, 64, 1});
  DecodeSetup dense = v4;
  dense.geometry.lists = device::decode::Lists::dense;
  expect_clean(dense, {Traffic::join, Lengths::beyond_k, 2, 64, 1});
  const DecodeSetup v32 =
      many("sim-sm90", GetParam(), scaled_down(device::decode::production_v32_geometry(64, 128)));
  expect_clean(v32, {Traffic::join, Lengths::beyond_k, 4, 64, 1});
}

INSTANTIATE_TEST_SUITE_P(Modes, ProductionShape,
                         testing::Values(GraphMode::full_and_piecewise, GraphMode::breakable),
                         [](const auto& mode) { return std::string(name_of(mode.param)); });

INSTANTIATE_TEST_SUITE_P(Modes, ManyRequestsLong,
                         testing::Values(GraphMode::none, GraphMode::piecewise, GraphMode::full,
                                         GraphMode::full_decode_only, GraphMode::full_and_piecewise,
                                         GraphMode::breakable),
                         [](const auto& mode) { return std::string(name_of(mode.param)); });

}  // namespace decode_sizes_test

}  // namespace plumb::cases
